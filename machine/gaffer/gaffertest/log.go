package gaffertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// LogLine is one line of a truth file: the fields that these tests read.
type LogLine struct {
	T        float64 `json:"t"`
	LT       float64 `json:"lt"` // the time that the library was given
	Endpoint string  `json:"endpoint"`
	Conn     int     `json:"conn"`
	Event    string  `json:"event"`
	Seq      uint32  `json:"seq"`
	Bytes    int     `json:"bytes"`

	ClientAddr  string   `json:"client_addr"`
	ClientPorts []uint16 `json:"client_ports"`
	ServerAddr  string   `json:"server_addr"`
	ServerPort  uint16   `json:"server_port"`
	Addr        string   `json:"addr"`
	Port        uint16   `json:"port"`

	RTTSample       float64 `json:"rtt_ms"`
	RTT             float64 `json:"rtt"`
	RTTMin          float64 `json:"rtt_min"`
	RTTMax          float64 `json:"rtt_max"`
	RTTAvg          float64 `json:"rtt_avg"`
	JitterMean      float64 `json:"jitter_avg_vs_min"`
	JitterMost      float64 `json:"jitter_max_vs_min"`
	JitterDeviation float64 `json:"jitter_stddev_vs_avg"`
	Loss            float64 `json:"packet_loss"`
	SentKbps        float64 `json:"sent_kbps"`
	AckedKbps       float64 `json:"acked_kbps"`
}

// ReadLog returns the lines of a run's truth file in testdata/pcaps.
func ReadLog(t testing.TB, run string) (lines []LogLine) {
	t.Helper()
	s := bufio.NewScanner(bytes.NewReader(testenv.Unpacked(t, testenv.Capture(t, run+".truth.jsonl.gz"))))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var l LogLine
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// TappedDatagram is one datagram between an endpoint of the run and its peer.
type TappedDatagram struct {
	At    machine.Instant
	Frame uint64
	Own   bool // the endpoint sent it
	Bytes []byte
	Cut   int // bytes that the snap length cut off
}

// NearFlows returns the flows of a capture, keyed by the endpoint at the tap and its
// peer.
func NearFlows(t testing.TB, path string, lines []LogLine) map[string][]TappedDatagram {
	t.Helper()
	near := map[netip.AddrPort]bool{}
	for _, l := range lines {
		if l.Event != "scenario" {
			continue
		}
		client := strings.Contains(path, ".client.")
		loopback := strings.Contains(path, "loopback")
		if client || loopback {
			for _, p := range l.ClientPorts {
				near[netip.AddrPortFrom(netip.MustParseAddr(l.ClientAddr), p)] = true
			}
		}
		if !client || loopback {
			near[netip.AddrPortFrom(netip.MustParseAddr(l.ServerAddr), l.ServerPort)] = true
		}
	}
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	flows := map[string][]TappedDatagram{}
	decoder := capture.NewDecoder(capture.DecodeOptions{})
	var f capture.Frame
	var p capture.Packet
	for {
		if err := in.Next(&f); errors.Is(err, io.EOF) {
			return flows
		} else if err != nil {
			var cut *capture.CutError
			if errors.As(err, &cut) {
				return flows
			}
			t.Fatal(err)
		}
		decoder.Decode(&f, &p)
		if p.Transport != capture.UDP || !near[p.Src] && !near[p.Dst] {
			continue
		}
		own := near[p.Src]
		name := fmt.Sprintf("%s with %s", p.Src, p.Dst)
		if !own {
			name = fmt.Sprintf("%s with %s", p.Dst, p.Src)
		}
		flows[name] = append(flows[name],
			TappedDatagram{f.At, f.Ref.Frame(), own, bytes.Clone(p.Payload), p.Length - len(p.Payload)})
	}
}

// ProfileOf returns the dialect of a run, which its name shows.
func ProfileOf(run string) *wire.Profile {
	switch prefix, _, _ := strings.Cut(run, "-"); {
	case strings.HasPrefix(run, "plain-le"):
		return Builtin(wire.Article)
	case strings.HasPrefix(run, "plain-be"):
		return Builtin(wire.ArticleBE)
	case prefix == "crc32":
		return Builtin(wire.ArticleCRC32).WithProtocolID(0x12345678)
	case prefix == "oldreliable":
		return Builtin(wire.Reliable2017)
	}
	return Builtin(wire.Reliable)
}

// Captures returns the paths of the captures in testdata/pcaps that match a pattern.
func Captures(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testenv.Module(t), "testdata", "pcaps", pattern))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// Capture returns the path of a run's capture at a side, "client" or "server".
func Capture(t testing.TB, run, side string) string {
	t.Helper()
	paths := Captures(t, run+"."+side+".pcap*")
	if len(paths) != 1 {
		t.Fatalf("%d captures of %s at the %s, expected 1", len(paths), run, side)
	}
	return paths[0]
}

// Builtin returns a built-in profile by its name.
func Builtin(name string) *wire.Profile {
	p, _, err := wire.Builtin(name)
	if err != nil {
		panic(err)
	}
	return p
}

// Seeds returns how many seeds a test draws: SOAK_SEEDS if that is set, full under make
// full, and otherwise few.
func Seeds(full, few int) int {
	if n, err := strconv.Atoi(os.Getenv("SOAK_SEEDS")); err == nil {
		return n
	}
	if !testenv.Whole() {
		return few
	}
	return full
}
