package riptide

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// truth is the log that the endpoints of a run wrote.
type truth struct {
	lines     []truthLine
	connected map[int][]truthLine // the server's lines of that event, by client id
	version   map[string]string   // library of each endpoint
	ports     map[uint16]string   // endpoint of a client's port at its own side
	outer     map[uint16]string   // endpoint of a client's port at its relay, toward the server
	server    uint16              // port
}

type truthLine struct {
	T         float64      `json:"t"`
	Endpoint  string       `json:"endpoint"`
	Event     string       `json:"event"`
	Mode      string       `json:"mode"`
	MessageID *uint16      `json:"message_id"`
	Seq       *uint16      `json:"seq"`
	Values    []truthValue `json:"values"`
	ClientID  int          `json:"client_id"`
	Remote    string       `json:"remote"`
	ToAll     bool         `json:"to_all"`
	Version   string       `json:"version"`
	Port      uint16       `json:"port"`
	LocalPort uint16       `json:"local_port"`
	Client    string       `json:"client"`
	Outer     string       `json:"relay_toward_server"`
	Server    string       `json:"server_address"`
	Connect   []truthValue `json:"connect_values"`
	Reject    []truthValue `json:"reject_values"`
	Kick      []truthValue `json:"kick_values"`
}

type truthValue struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
	Bits  string          `json:"bits"` // IEEE, hexadecimal, high byte first
	Width int             `json:"width"`
}

// truthOf reads the log of the run that a capture belongs to.
func truthOf(t testing.TB, capture string) *truth {
	t.Helper()
	run := runOf(capture)
	if readTruths[run] == nil {
		readTruths[run] = readTruth(t, capture)
	}
	return readTruths[run]
}

func readTruth(t testing.TB, capture string) *truth {
	t.Helper()
	f, err := os.Open(filepath.Join(pcaps, runOf(capture)+".truth.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	tr := &truth{
		version: map[string]string{}, ports: map[uint16]string{}, outer: map[uint16]string{},
		connected: map[int][]truthLine{},
	}
	relays := map[uint16]string{}
	sc := bufio.NewScanner(z)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		var l truthLine
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			t.Fatalf("%s: %v", capture, err)
		}
		tr.lines = append(tr.lines, l)
		switch {
		case l.Event == "connected" && l.Endpoint == "server" && l.Remote != "":
			tr.connected[l.ClientID] = append(tr.connected[l.ClientID], l)
		case l.Event == "start" && l.Endpoint != "relay":
			tr.version[l.Endpoint] = l.Version
			if l.Port != 0 {
				tr.server = l.Port
			}
			if tr.server == 0 && l.Server != "" {
				tr.server = netip.MustParseAddrPort(l.Server).Port()
			}
		case l.Event == "local_endpoint":
			tr.ports[l.LocalPort] = l.Endpoint
		case l.Event == "flow":
			relays[netip.MustParseAddrPort(l.Client).Port()] = l.Outer
		}
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	for inner, outer := range relays {
		tr.outer[netip.MustParseAddrPort(outer).Port()] = tr.ports[inner]
	}
	return tr
}

// endpoint returns the name of the endpoint with an address in a capture, or "". The address is a
// port of the server or of a client. A relay's port belongs to the client behind it.
func (tr *truth) endpoint(a netip.AddrPort) string {
	if a.Port() == tr.server {
		return "server"
	}
	if e := tr.ports[a.Port()]; e != "" {
		return e
	}
	return tr.outer[a.Port()]
}

// wantBuilds returns the builds that a sender's packets should show, for its version.
func wantBuilds(version string) (name string, narrow []string) {
	switch {
	case version == "2.1.0" || version == "2.1.2":
		return version, []string{"2.1.0-2.1.2"}
	case version == "2.2.1":
		return version, []string{"2.2.0-2.2.1", "2.2.1"}
	case version == "e21aef9":
		return "dev-n", []string{"dev-n"}
	case version == "28a8442":
		return "dev-d", []string{"dev-d"}
	case strings.HasPrefix(version, "pytide"):
		return version, []string{version}
	}
	return version, []string{version}
}
