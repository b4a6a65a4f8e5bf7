package endpoint_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"os"
	"sort"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/stream"
	dissector "github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/machine"
)

const pcaps = "../../../testdata/pcaps"

// logged is what these tests read of a truth file: whose port is which, and the version of each
// endpoint.
type logged struct {
	server  uint16
	version map[string]string // by endpoint
	clients map[uint16]string // by port
}

var buildNames = map[string]string{"e21aef9": "dev-n", "28a8442": "dev-d"}

func readLog(t *testing.T, path string) *logged {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	l := &logged{version: map[string]string{}, clients: map[uint16]string{}}
	s := bufio.NewScanner(z)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var line struct {
			Endpoint, Event, Version string
			Port                     uint16
			LocalPort                uint16 `json:"local_port"`
			Server                   string `json:"server_address"`
		}
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		switch line.Event {
		case "start":
			if name, ok := buildNames[line.Version]; ok {
				line.Version = name
			}
			l.version[line.Endpoint] = line.Version
			if line.Endpoint == "server" {
				l.server = line.Port
			} else if a, err := netip.ParseAddrPort(line.Server); err == nil {
				l.server = a.Port()
			}
		case "local_endpoint":
			l.clients[line.LocalPort] = line.Endpoint
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return l
}

// passing is one message between an endpoint of the run and its peer. The tap is at the endpoint.
type passing struct {
	at    machine.Instant
	frame uint64
	own   bool
	bytes []byte
}

type nearFlow struct {
	name   string // of the endpoint
	passed []passing
}

// nearFlows returns the connections of a capture as the endpoint at the tap has them.
func nearFlows(t *testing.T, path string, l *logged) []*nearFlow {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	atClient := strings.Contains(path, ".client.")
	var formats []stream.Format
	for _, f := range dissector.Protocol.Framings {
		formats = append(formats, stream.Format(f))
	}
	flows, conns := map[netip.AddrPort]*nearFlow{}, map[netip.AddrPort]*stream.Conn{}
	decoder := capture.NewDecoder(capture.DecodeOptions{})
	var f capture.Frame
	var p capture.Packet
	var out stream.Output
	for {
		if err := in.Next(&f); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		decoder.Decode(&f, &p)
		if p.Transport != capture.UDP && p.Transport != capture.TCP {
			continue
		}
		client, from := p.Src, machine.A
		if p.Src.Port() == l.server {
			client, from = p.Dst, machine.B
		} else if p.Dst.Port() != l.server {
			continue
		}
		flow := flows[client]
		if flow == nil {
			flow = &nearFlow{name: "server"}
			if atClient {
				flow.name = l.clients[client.Port()]
			}
			flows[client] = flow
			conns[client] = stream.New(formats, stream.Limits{})
		}
		own := atClient == (from == machine.A)
		if p.Transport == capture.UDP {
			flow.passed = append(flow.passed, passing{f.At, f.Ref.Frame(), own, bytes.Clone(p.Payload)})
			continue
		}
		conns[client].Feed(from, &p, &out)
		for i := range out.Messages {
			m := &out.Messages[i]
			flow.passed = append(flow.passed,
				passing{m.At, m.Ref.Frame(), atClient == (m.From == machine.A), bytes.Clone(m.Bytes)})
		}
	}
	var keys []netip.AddrPort
	for k := range flows {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i].Port() < keys[j].Port() })
	var all []*nearFlow
	for _, k := range keys {
		all = append(all, flows[k])
	}
	return all
}
