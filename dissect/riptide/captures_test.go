package riptide

import (
	"errors"
	"io"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/stream"
	"github.com/ackscope/ackscope/machine"
)

const pcaps = "../../testdata/pcaps"

// flow is one conversation of a capture, as the analyzer passes it on.
type flow struct {
	transport capture.Transport
	addrs     [2]netip.AddrPort
	datagrams []machine.Datagram
	conn      *stream.Conn
	graded    map[machine.Certainty]int
}

// side returns the end that has an address.
func (f *flow) side(a netip.AddrPort) machine.Side {
	if a == f.addrs[0] {
		return machine.A
	}
	return machine.B
}

// Captures and logs are read once for all tests; no test changes them.
var (
	readFlows  = map[string][]*flow{}
	readTruths = map[string]*truth{}
)

// flowsOf reads a capture: datagrams, and messages of TCP streams, by flow.
func flowsOf(t testing.TB, path string) []*flow {
	t.Helper()
	if readFlows[path] == nil {
		readFlows[path] = readCapture(t, path)
	}
	return readFlows[path]
}

func readCapture(t testing.TB, path string) (out []*flow) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	type key struct {
		low, high netip.AddrPort
		transport capture.Transport
	}
	var (
		known   = map[key]*flow{}
		decoder = capture.NewDecoder(capture.DecodeOptions{})
		frame   capture.Frame
		packet  capture.Packet
		result  stream.Output
	)
	keep := func(f *flow) {
		for _, m := range result.Messages {
			f.graded[m.Grade]++
			f.datagrams = append(f.datagrams,
				machine.Datagram{At: m.At, Ref: m.Ref, From: m.From, Bytes: append([]byte(nil), m.Bytes...), Length: m.Length})
		}
	}
	for {
		if err := in.Next(&frame); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		decoder.Decode(&frame, &packet)
		if packet.Transport != capture.UDP && packet.Transport != capture.TCP || packet.Duplicate {
			continue
		}
		k := key{packet.Src, packet.Dst, packet.Transport}
		if k.high.Compare(k.low) < 0 {
			k.low, k.high = k.high, k.low
		}
		f := known[k]
		if f == nil {
			f = &flow{
				transport: packet.Transport, addrs: [2]netip.AddrPort{packet.Src, packet.Dst},
				graded: map[machine.Certainty]int{},
			}
			if packet.Transport == capture.TCP {
				f.conn = stream.New(formats(), stream.Limits{})
			}
			known[k] = f
			out = append(out, f)
		}
		if f.conn != nil {
			f.conn.Feed(f.side(packet.Src), &packet, &result)
			keep(f)
			continue
		}
		f.datagrams = append(f.datagrams, machine.Datagram{
			At: packet.At, Ref: packet.Ref, From: f.side(packet.Src), Bytes: append([]byte(nil), packet.Payload...),
			Length: packet.Length,
		})
	}
	for _, f := range out {
		if f.conn != nil {
			f.conn.Finish(&result)
			keep(f)
		}
	}
	return out
}

func formats() (out []stream.Format) {
	for _, f := range framings {
		out = append(out, stream.Format(f))
	}
	return out
}

// captures lists the captures whose names begin with one of the prefixes.
func captures(t testing.TB, prefixes ...string) (out []string) {
	t.Helper()
	for _, p := range prefixes {
		found, err := filepath.Glob(filepath.Join(pcaps, p+"*.pcap*.gz"))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, found...)
	}
	if len(out) == 0 {
		t.Fatalf("no captures of %v in %s", prefixes, pcaps)
	}
	return out
}

// runOf returns the name of the run that a capture belongs to.
func runOf(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	return name
}
