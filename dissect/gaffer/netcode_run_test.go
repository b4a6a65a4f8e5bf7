package gaffer

import (
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect/gaffer/netcode"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/schema/yamlfile"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// yojimboRuns are the recorded runs of yojimbo. Each has a tap at the client and one at
// the server.
var yojimboRuns = []string{
	"yojimbo-clean", "yojimbo-testmsgs-loss10", "yojimbo-blocks-loss30", "yojimbo-two-clients",
	"yojimbo-single-channel-type", "yojimbo-packet-fragments", "yojimbo-denied-full", "yojimbo-wrong-key",
	"yojimbo-server-kick",
}

// logLine is one line of a run's log; see testdata/pcaps/README.md.
type logLine struct {
	T         float64         `json:"t"`
	Endpoint  string          `json:"endpoint"`
	Conn      int             `json:"conn"`
	Event     string          `json:"event"`
	Seq       int             `json:"seq"`
	Bytes     int             `json:"bytes"`
	Ack       int             `json:"ack"`
	AckBits   string          `json:"ack_bits"`
	Channel   int             `json:"channel"`
	ID        int             `json:"id"`
	Type      int             `json:"type"`
	Bits      int             `json:"bits"`
	Body      json.RawMessage `json:"body"`
	NcSeq     uint64          `json:"nc_seq,string"`
	Key8      string          `json:"key8"`
	Plain     string          `json:"plain"`
	Key       string          `json:"key"`
	Direction string          `json:"direction"`
	Addr      string          `json:"addr"`
	Port      uint16          `json:"port"`
	Client    int             `json:"client_index"`
	Dir       string          `json:"dir"`  // of what the relay dropped
	Head      string          `json:"head"` // its first bytes

	// Of config lines.
	ProtocolID  string       `json:"protocol_id"`
	PrivateKey  string       `json:"private_key"`
	Schema      string       `json:"message_schema"`
	Types       int          `json:"num_message_types"`
	Channels    []logChannel `json:"channels"`
	Fragment    int          `json:"packetFragmentSize"`
	TickHz      float64      `json:"tick_hz"`
	Harness     string       `json:"name"`
	ClientAddr  netip.Addr   `json:"client_addr"`
	ClientPorts []uint16     `json:"client_ports"`
	ServerAddr  netip.Addr   `json:"server_addr"`
	ServerPort  uint16       `json:"server_port"`
}

type logChannel struct {
	Type              string `json:"type"`
	DisableBlocks     bool   `json:"disableBlocks"`
	MaxMessages       int    `json:"maxMessagesPerPacket"`
	MaxBlockSize      int    `json:"maxBlockSize"`
	BlockFragmentSize int    `json:"blockFragmentSize"`
	SendQueue         int    `json:"messageSendQueueSize"`
	ReceiveQueue      int    `json:"messageReceiveQueueSize"`
}

// yojimboRun is one run's log.
type yojimboRun struct {
	name   string
	lines  []logLine
	config logLine // of the server
	server netip.AddrPort
	client []netip.AddrPort
}

func readYojimboRun(t testing.TB, name string) *yojimboRun {
	t.Helper()
	f, err := os.Open(testenv.Capture(t, name+".truth.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	r := &yojimboRun{name: name}
	scan := bufio.NewScanner(z)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var l logLine
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			t.Fatalf("%s: %v in %.200s", name, err, scan.Bytes())
		}
		switch {
		case l.Event == "scenario":
			r.server = netip.AddrPortFrom(l.ServerAddr, l.ServerPort)
			for _, p := range l.ClientPorts {
				r.client = append(r.client, netip.AddrPortFrom(l.ClientAddr, p))
			}
		case l.Event == "config" && l.Endpoint == "server":
			r.config = l
		}
		r.lines = append(r.lines, l)
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	if len(r.client) == 0 || r.config.PrivateKey == "" {
		t.Fatalf("%s: the log has no scenario or no config", name)
	}
	return r
}

// keys returns the run's key file, read as a user's would be.
func (r *yojimboRun) keys(t testing.TB) *netcode.Keys {
	t.Helper()
	text := fmt.Sprintf(`{"servers": [{"protocol_id": "0x%s", "private_key": "%s"}]}`, r.config.ProtocolID,
		r.config.PrivateKey)
	k, err := readKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// tapped is a datagram as it passed a tap, with its flow's addresses.
type tapped struct {
	machine.Datagram
	flow     int            // from 0, by first appearance
	src, dst netip.AddrPort // of the datagram
}

// tap reads the UDP datagrams of a run's capture.
func (r *yojimboRun) tap(t testing.TB, at string) (out []tapped) {
	t.Helper()
	in, err := capture.Open([]string{testenv.Capture(t, r.name+"."+at+".pcap.gz")}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	d := capture.NewDecoder(capture.DecodeOptions{})
	var f capture.Frame
	var p capture.Packet
	flows := map[[2]netip.AddrPort]int{}
	for {
		if err := in.Next(&f); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		d.Decode(&f, &p)
		if p.Transport != capture.UDP {
			continue
		}
		dg := machine.Datagram{At: p.At, Ref: p.Ref, Bytes: append([]byte(nil), p.Payload...), Length: p.Length}
		flow, known := flows[[2]netip.AddrPort{p.Src, p.Dst}]
		if back, other := flows[[2]netip.AddrPort{p.Dst, p.Src}]; other {
			flow, known = back, true
			dg.From = machine.B
		}
		if !known {
			flow = len(flows)
			flows[[2]netip.AddrPort{p.Src, p.Dst}] = flow
		}
		out = append(out, tapped{dg, flow, p.Src, p.Dst})
	}
}

// netcodeProfile reads the clear part of netcode datagrams.
func netcodeProfile(t testing.TB) *wire.Profile {
	t.Helper()
	p, _, err := wire.Builtin(wire.Netcode)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func key8(k [wire.KeyLen]byte) string { return hex.EncodeToString(k[:4]) }

// readKeys reads a key file as the program does.
func readKeys(text string) (*netcode.Keys, error) {
	var f netcode.KeyFile
	if err := yamlfile.Read([]byte(text), "keys.yaml", &f); err != nil {
		return nil, err
	}
	return netcode.NewKeys(&f)
}
