package gaffer

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
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
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// readTap reads the UDP datagrams of one of the shipped captures.
func readTap(t testing.TB, path string) (out []tapped) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
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
		if d.Decode(&f, &p); p.Transport != capture.UDP || p.Duplicate {
			continue
		}
		dg := machine.Datagram{At: p.At, Ref: p.Ref, Bytes: bytes.Clone(p.Payload), Length: p.Length}
		flow, known := flows[[2]netip.AddrPort{p.Src, p.Dst}]
		if back, other := flows[[2]netip.AddrPort{p.Dst, p.Src}]; other {
			flow, known, dg.From = back, true, machine.B
		}
		if !known {
			flow = len(flows)
			flows[[2]netip.AddrPort{p.Src, p.Dst}] = flow
		}
		out = append(out, tapped{dg, flow, p.Src, p.Dst})
	}
}

// classify returns the verdict on each flow of a capture. It asks as the analyzer does:
// at the first datagram that settles the verdict, or at the 64th.
func classify(protocol *dissect.Protocol, tap []tapped) map[int]dissect.Verdict {
	verdicts := map[int]dissect.Verdict{}
	classifiers := map[int]dissect.Classifier{}
	fed := map[int]int{}
	for i := range tap {
		d := &tap[i]
		if _, done := verdicts[d.flow]; done {
			continue
		}
		c := classifiers[d.flow]
		if c == nil {
			c = protocol.Classify()
			classifiers[d.flow] = c
		}
		c.Feed(&d.Datagram)
		if fed[d.flow]++; c.Sure() || fed[d.flow] == 64 {
			verdicts[d.flow] = c.Verdict()
		}
	}
	for flow, c := range classifiers {
		if _, done := verdicts[flow]; !done {
			verdicts[flow] = c.Verdict()
		}
	}
	return verdicts
}

// runs returns the shipped captures whose names begin with a prefix.
func runs(t testing.TB, prefix string) []string {
	t.Helper()
	any := testenv.Capture(t, "README.md")
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(any), prefix+"*.pcap*.gz"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no captures of %s: %v", prefix, err)
	}
	return paths
}

func runName(path string) string { name, _, _ := strings.Cut(filepath.Base(path), "."); return name }

// sentLine is a packet as its sender logged it.
type sentLine struct {
	Endpoint  string `json:"endpoint"`
	Conn      int    `json:"conn"`
	Event     string `json:"event"`
	Seq       int    `json:"seq"`
	Bytes     int    `json:"bytes"`
	Datagrams int    `json:"datagrams"`
	Ack       uint32 `json:"ack"`
	AckBits   string `json:"ack_bits"`
	Hex       string `json:"hex"`
	Addr      string `json:"addr"`
	Port      uint16 `json:"port"`
	// Of the article's runs.
	Type      int    `json:"type"`
	Fragments int    `json:"fragments"`
	Chunk     int    `json:"chunk"`
	Slice     int    `json:"slice"`
	NumSlices int    `json:"num_slices"`
	UDPBytes  int    `json:"udp_bytes"`
	Acked     string `json:"acked"`
	FNV       string `json:"fnv1a32"`
}

func readLog(t testing.TB, run string) (lines []sentLine) {
	t.Helper()
	f, err := os.Open(testenv.Capture(t, run+".truth.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(z); ; {
		var l sentLine
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return lines
		} else if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
}

// TestCapturesAgainstLogs: in every capture of the family the dialect is found without
// help. Every header is the one that its sender logged, in value and in bytes.
func TestCapturesAgainstLogs(t *testing.T) {
	for prefix, dialect := range map[string]string{
		"reliable-": wire.Reliable, "plain-le-": wire.Article, "plain-be-": wire.ArticleBE, "crc32-": wire.ArticleCRC32,
		"oldreliable-": wire.Reliable2017,
	} {
		for _, path := range runs(t, prefix) {
			t.Run(filepath.Base(path), func(t *testing.T) { checkHeaders(t, path, dialect) })
		}
	}
}

type sentKey struct {
	endpoint string
	conn     int
	seq      uint32
}

func checkHeaders(t *testing.T, path, dialect string) {
	tap := readTap(t, path)
	verdicts := classify(Protocol, tap)
	sent := map[sentKey]sentLine{}
	conns := map[uint16]int{}
	for i := range 4 {
		conns[uint16(30000+i)] = i
	}
	for _, l := range readLog(t, runName(path)) {
		switch l.Event {
		case "sent":
			sent[sentKey{l.Endpoint, l.Conn, uint32(l.Seq)}] = l
		case "peer":
			conns[l.Port] = l.Conn
		}
	}
	matched, unlogged, unread := 0, 0, 0
	for i := range tap {
		d := &tap[i]
		v := verdicts[d.flow]
		if v.Config == nil || v.Config.Dialect != dialect {
			t.Fatalf("flow %d is taken for %+v, want %s", d.flow, v, dialect)
		}
		p := v.Config.Profile.(*wire.Profile)
		var pk wire.Packet
		if err := p.Parse(d.Bytes, d.Length, &pk); err != nil {
			if d.Length > 3 {
				t.Errorf("frame %d: %v", d.Ref.Frame(), err)
			}
			unread++
			continue
		}
		// Clients send to the relay's address. The relay sends from another one, to which the
		// server answers.
		key := sentKey{"client", conns[d.src.Port()], pk.Sequence}
		if client, ok := conns[d.dst.Port()]; ok && !fromServerLeg(d) {
			key = sentKey{"server", client, pk.Sequence}
		}
		l, ok := sent[key]
		if !ok {
			unlogged++ // sent before logging began
			continue
		}
		matched++
		if !pk.HasHeader {
			continue // a fragment after the first
		}
		want, err := strconv.ParseUint(l.AckBits, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if pk.Header != (wire.Header{Sequence: uint32(l.Seq), Ack: l.Ack, AckBits: want}) {
			t.Fatalf("frame %d: header %+v, its sender logged %+v", d.Ref.Frame(), pk.Header, l)
		}
		logged, err := hex.DecodeString(l.Hex)
		if err != nil {
			t.Fatal(err)
		}
		if len(logged) > 0 && !bytes.Equal(d.Bytes[:len(logged)], logged) {
			t.Fatalf("frame %d: %x, its sender logged %s", d.Ref.Frame(), d.Bytes[:len(logged)], l.Hex)
		}
		if l.Datagrams == 1 && pk.PayloadLen != l.Bytes {
			t.Fatalf("frame %d: %d bytes of payload, its sender logged %d", d.Ref.Frame(), pk.PayloadLen, l.Bytes)
		}
		// Written again, it is the same.
		if len(d.Bytes) == d.Length {
			if again := p.Append(nil, &pk, d.Bytes[pk.PayloadOffset:pk.PayloadOffset+pk.PayloadLen]); !bytes.Equal(
				again, d.Bytes) {
				t.Fatalf("frame %d: written again as %x, was %x", d.Ref.Frame(), again, d.Bytes)
			}
		}
	}
	if matched < len(tap)*95/100-unread {
		t.Errorf("%d of %d datagrams were logged (%d not, %d not read)", matched, len(tap), unlogged, unread)
	}
	if unread > 0 && !strings.Contains(path, "truncate") {
		t.Errorf("%d datagrams could not be read", unread)
	}
	if dialect == wire.ArticleCRC32 {
		for _, v := range verdicts {
			if id := v.Config.Profile.(*wire.Profile).ProtocolID; id == nil || *id != 0x12345678 {
				t.Errorf("the protocol id is not solved: %v", id)
			}
		}
	}
}

// fromServerLeg reports whether a datagram goes to the server. On the loopback device
// both legs pass one tap.
func fromServerLeg(d *tapped) bool { return d.dst.Port() == 40000 || d.dst.Port() == 40001 }

// TestLinkTypes uses captures with other link types. They hold the first packets of a
// clean run of reliable.
func TestLinkTypes(t *testing.T) {
	for _, path := range runs(t, "linktype-") {
		for flow, v := range classify(Protocol, readTap(t, path)) {
			if v.Config == nil || v.Config.Dialect != wire.Reliable {
				t.Errorf("%s: flow %d: %+v", filepath.Base(path), flow, v)
			}
		}
	}
}

// TestNetcodeIsFound: without the keys, yojimbo is netcode.
func TestNetcodeIsFound(t *testing.T) {
	for _, path := range runs(t, "yojimbo-") {
		tap := readTap(t, path)
		for flow, v := range classify(Protocol, tap) {
			if v.Config == nil || v.Config.Dialect != wire.Netcode {
				t.Errorf("%s: flow %d: %+v", filepath.Base(path), flow, v)
			}
		}
		if strings.Contains(path, "wrong-key") || strings.Contains(path, "denied") {
			continue // some flows end with nothing sent but requests
		}
		for flow, v := range classify(Protocol, late(tap, 60)) {
			if v.Config == nil || v.Config.Dialect != wire.Netcode {
				t.Errorf("%s, met in the middle: flow %d: %+v", filepath.Base(path), flow, v)
			}
		}
	}
}

// late drops the first n datagrams.
func late(tap []tapped, n int) []tapped { return tap[min(n, len(tap)):] }

// TestHardFlows: a capture may begin anywhere, hold one direction only, or end after a
// few packets.
func TestHardFlows(t *testing.T) {
	for prefix, dialect := range map[string]string{
		"reliable-": wire.Reliable, "plain-le-": wire.Article, "plain-be-": wire.ArticleBE, "crc32-": wire.ArticleCRC32,
		"oldreliable-": wire.Reliable2017,
	} {
		for _, path := range runs(t, prefix) {
			tap := readTap(t, path)
			if len(tap) == 0 || strings.Contains(path, "two-clients") || strings.Contains(path, "both-legs") {
				continue // one flow is enough
			}
			check := func(what string, part []tapped, mayMiss bool) {
				t.Helper()
				for _, v := range classify(Protocol, part) {
					switch {
					case v.Config == nil && !mayMiss:
						t.Errorf("%s, %s: not found: %s", filepath.Base(path), what, v.Reason)
					case v.Config != nil && v.Config.Dialect != dialect:
						t.Errorf("%s, %s: taken for %s (%s)", filepath.Base(path), what, v.Config.Dialect, v.Reason)
					}
				}
			}
			// If most packets are lost, a hundred datagrams may hold one of the other side.
			sparse := strings.Contains(path, "loss98") || strings.Contains(path, "sparse")
			for _, from := range []int{1, 7, 100, 333, 700} {
				check(fmt.Sprintf("from datagram %d on", from), late(tap, from), sparse)
				check(fmt.Sprintf("ten datagrams from %d on", from), late(tap, from)[:min(10, len(late(tap, from)))], true)
			}
			for _, side := range []machine.Side{machine.A, machine.B} {
				var one []tapped
				for _, d := range tap {
					if d.From == side {
						d.From = machine.A
						one = append(one, d)
					}
				}
				check("only side "+side.String(), one, true)
			}
			var twice []tapped
			for i, d := range tap {
				twice = append(twice, d)
				if i%3 == 0 {
					twice = append(twice, d)
				}
				if i%5 == 0 {
					junk := d
					junk.Bytes = junk.Bytes[:min(1+i%3, len(junk.Bytes))]
					junk.Length = len(junk.Bytes)
					twice = append(twice, junk)
				}
			}
			check("with copies and stumps", twice, sparse)
			var cut []tapped
			for _, d := range tap {
				d.Bytes = d.Bytes[:min(18, len(d.Bytes))]
				cut = append(cut, d)
			}
			check("cut to 18 bytes", cut, sparse)
		}
	}
}
