package gaffer_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/endpoint"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

const pcaps = "../../testdata/pcaps"

// logLine is one line of a truth file, as far as these tests read it.
type logLine struct {
	T        float64 `json:"t"`
	LT       float64 `json:"lt"` // the time that the library was told
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

func readLog(t *testing.T, run string) (lines []logLine) {
	t.Helper()
	f, err := os.Open(filepath.Join(pcaps, run+".truth.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(z)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var l logLine
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

// passing is one datagram between an endpoint of the run and its peer.
type passing struct {
	at    machine.Instant
	frame uint64
	own   bool // the endpoint sent it
	bytes []byte
	cut   int // bytes that a snap length took
}

// nearFlows gives the flows of a capture by the endpoint at the tap.
func nearFlows(t *testing.T, path string, lines []logLine) map[string][]passing {
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
	flows := map[string][]passing{}
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
		flows[name] = append(flows[name], passing{f.At, f.Ref.Frame(), own, bytes.Clone(p.Payload), p.Length - len(p.Payload)})
	}
}

func profileOf(run string) *wire.Profile {
	switch prefix, _, _ := strings.Cut(run, "-"); {
	case strings.HasPrefix(run, "plain-le"):
		return builtin(wire.Article)
	case strings.HasPrefix(run, "plain-be"):
		return builtin(wire.ArticleBE)
	case prefix == "crc32":
		return builtin(wire.ArticleCRC32).WithProtocolID(0x12345678)
	case prefix == "oldreliable":
		return builtin(wire.Reliable2017)
	}
	return builtin(wire.Reliable)
}

// TestInterop feeds a reference what a real endpoint received and has it send
// what that one sent: every datagram must be the same, byte for byte, acks
// included. When within a frame the real one read its socket is not on the
// wire; that it read in order is. So what arrived is held back, and before each
// own packet as much of it is read as makes the header come out right: if
// nothing does, the reference differs.
func TestInterop(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(pcaps, "*.pcap*"))
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	for _, path := range paths {
		run, _, _ := strings.Cut(filepath.Base(path), ".")
		switch prefix, _, _ := strings.Cut(run, "-"); prefix {
		case "reliable", "plain", "crc32", "oldreliable":
		default:
			continue
		}
		// Runs whose endpoints were not whole when the capture began with a fault of
		// their own (entries of an earlier wrap) cannot be adopted from one header;
		// which packets an application refused is not in the capture.
		if strings.Contains(run, "stalebug") || strings.Contains(run, "reject") {
			continue
		}
		if testing.Short() && strings.Contains(run, "wrap-fast") {
			continue
		}
		runs++
		t.Run(filepath.Base(path), func(t *testing.T) {
			lines := readLog(t, run)
			flows := nearFlows(t, path, lines)
			if len(flows) == 0 {
				t.Fatal("no flow of the run's endpoints")
			}
			for name, flow := range flows {
				relive(t, name, run, flow, nil)
			}
		})
	}
	if runs < 40 {
		t.Fatalf("%d captures, expected more than 40 under %s", runs, pcaps)
	}
}

// TestEstimatesAgainstLog holds the reference's own figures against those that
// the real endpoint logged each second: frame times are the log's, all else is
// as in TestInterop.
func TestEstimatesAgainstLog(t *testing.T) {
	for _, run := range []string{"reliable-clean", "reliable-loss10", "reliable-loss40", "reliable-burst", "reliable-dup10", "reliable-jitter80", "reliable-frag-heavy", "reliable-ipv6"} {
		lines := readLog(t, run)
		for _, side := range []string{"client", "server"} {
			paths, err := filepath.Glob(filepath.Join(pcaps, run+"."+side+".pcap*"))
			if err != nil || len(paths) != 1 {
				t.Fatalf("%s at the %s: %v %v", run, side, paths, err)
			}
			f := frames{at: map[uint32]machine.Instant{}, stats: map[uint32]logLine{}}
			last := uint32(0)
			for _, l := range lines {
				if l.Endpoint == side && l.Event == "sent" {
					last = l.Seq
					f.at[l.Seq] = machine.Instant(math.Round(l.LT * 1e9))
				}
				if l.Endpoint == side && l.Event == "stats" && f.at[last] == machine.Instant(math.Round(l.LT*1e9)) {
					f.stats[last] = l
				}
			}
			if len(f.stats) < 5 {
				t.Fatalf("%s at the %s: %d lines of figures", run, side, len(f.stats))
			}
			for name, flow := range nearFlows(t, paths[0], lines) {
				relive(t, run+" "+name, run, flow, &f)
			}
			t.Logf("%s at the %s: largest differences: rtt %.4f ms, loss %.4f %%, sent %.3f and acked %.3f kbit/s, in %d comparisons",
				run, side, f.worst[0], f.worst[1], f.worst[2], f.worst[3], len(f.stats))
		}
	}
}

// frames are an endpoint's frame times and figures, by the packet sent in the
// frame.
type frames struct {
	at    map[uint32]machine.Instant
	stats map[uint32]logLine
	worst [4]float64
}

// compare holds the endpoint's figures after it sent a packet against the log.
func (f *frames) compare(t *testing.T, name string, sequence uint32, e *endpoint.Endpoint) {
	t.Helper()
	l, ok := f.stats[sequence]
	if !ok {
		return
	}
	sent, acked, _ := e.Estimates().Bandwidth()
	spread := e.Estimates().Spread()
	for i, c := range []struct {
		what      string
		got, want float64
		within    float64
	}{
		// The server makes its library endpoint within the frame in which the first
		// packet comes: that one's send time is some 50 µs later than the frame's.
		{"rtt", float64(e.Estimates().RTT()) / 1e6, l.RTT, 0.06},
		{"packet_loss", e.Estimates().Loss() * 100, l.Loss, 0.0001},
		{"sent_kbps", sent, l.SentKbps, 0.06},
		{"acked_kbps", acked, l.AckedKbps, 0.06},
		{"rtt_min", spread.Least, l.RTTMin, 0.06},
		{"rtt_max", spread.Most, l.RTTMax, 0.06},
		{"rtt_avg", spread.Mean, l.RTTAvg, 0.01},
		{"jitter_avg_vs_min", spread.JitterMean, l.JitterMean, 0.06},
		{"jitter_max_vs_min", spread.JitterMost, l.JitterMost, 0.06},
		{"jitter_stddev_vs_avg", spread.JitterDeviation, l.JitterDeviation, 0.02},
	} {
		off := math.Abs(c.got - c.want)
		if i < len(f.worst) {
			f.worst[i] = max(f.worst[i], off)
		}
		if off > c.within {
			t.Errorf("%s: after packet %d: %s %.4f, the log has %.4f", name, sequence, c.what, c.got, c.want)
		}
	}
}

// relive takes one flow; with frames, in the endpoint's own time.
func relive(t *testing.T, name, run string, flow []passing, f *frames) {
	t.Helper()
	p := profileOf(run)
	o := endpoint.Options{Profile: p, Rules: gaffer.RulesOf(p)}
	if p.Fragments == wire.FragmentsReliable {
		o.FragmentAbove, o.FragmentSize, o.FragmentMost = 1024, 1024, 256
		if strings.Contains(run, "ipfrag") {
			o.FragmentAbove = 8000
		}
	}
	var e *endpoint.Endpoint
	var pending []passing
	var packet wire.Packet
	var out machine.Effects
	own, arrived, acked := 0, 0, 0
	step := func(at machine.Instant, in machine.Input) {
		out.Reset()
		if err := e.Step(at, in, &out); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, event := range out.Events {
			if event.Kind == machine.EventAcked {
				acked++
			}
		}
	}
	for i := 0; i < len(flow); i++ {
		if !flow[i].own {
			pending = append(pending, flow[i])
			continue
		}
		first := flow[i]
		err := p.Parse(first.bytes, len(first.bytes)+first.cut, &packet)
		if err != nil {
			continue // not of the protocol: the relay never forges own packets
		}
		want := packet.Header
		sent := []passing{first}
		payload := append(bytes.Clone(first.bytes[packet.PayloadOffset:]), make([]byte, first.cut)...)
		if packet.Kind == wire.KindRegular {
			payload = payload[:packet.PayloadLen]
		}
		for n := packet.FragmentCount; packet.Kind == wire.KindFragment && len(sent) < n; {
			// Fragments of one packet leave together; what arrives meanwhile does not
			// belong to them.
			if i++; i >= len(flow) {
				return
			}
			if !flow[i].own {
				pending = append(pending, flow[i])
				continue
			}
			if err := p.Parse(flow[i].bytes, len(flow[i].bytes)+flow[i].cut, &packet); err != nil || packet.Kind != wire.KindFragment {
				t.Fatalf("%s: frame %d: expected another fragment: %v", name, flow[i].frame, err)
			}
			sent = append(sent, flow[i])
			payload = append(append(payload, flow[i].bytes[packet.PayloadOffset:]...), make([]byte, flow[i].cut)...)
		}
		if e == nil {
			e = adopt(t, o, want)
		}
		now := first.at
		if f != nil {
			now = f.at[want.Sequence]
			step(now, machine.Wake{})
		}
		for n := 0; ; n++ {
			if got := e.State().Header(); got == want {
				pending = pending[n:]
				break
			} else if n == len(pending) {
				t.Fatalf("%s: frame %d: header %+v, the reference would send %+v", name, first.frame, want, got)
			}
			// What a snap length cut off is payload: any will do.
			step(now, machine.Arrive{Bytes: append(bytes.Clone(pending[n].bytes), make([]byte, pending[n].cut)...)})
			arrived++
		}
		step(now, machine.Submit{Payload: payload})
		if len(out.Transmit) != len(sent) {
			t.Fatalf("%s: frame %d: %d datagrams, the reference sends %d", name, first.frame, len(sent), len(out.Transmit))
		}
		for k, x := range out.Transmit {
			if got := x.Bytes[:len(x.Bytes)-sent[k].cut]; !bytes.Equal(got, sent[k].bytes) {
				t.Fatalf("%s: frame %d: % x, the reference sends % x", name, sent[k].frame, sent[k].bytes, got)
			}
		}
		own++
		if f != nil {
			f.compare(t, name, want.Sequence, e)
		}
	}
	if own < 20 || arrived < 10 || acked < 1 {
		t.Errorf("%s: %d packets sent, %d read, %d acked: too few to say anything", name, own, arrived, acked)
	}
}

// adopt gives a reference that stands where the real endpoint stood when it
// sent a packet with this header.
func adopt(t *testing.T, o endpoint.Options, h wire.Header) *endpoint.Endpoint {
	t.Helper()
	o.First = h.Sequence
	e, err := endpoint.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if !o.Profile.NothingReceived(h) {
		s := e.State()
		// A window can move by less than half the range at once.
		for _, q := range []uint32{h.Ack - 0xc000, h.Ack - 0x8000, h.Ack - 0x4000} {
			s.Arrive(q&0xffff, false)
		}
		s.Advance(h.Ack)
		for n := 31; n >= 0; n-- {
			if h.AckBits>>n&1 == 1 {
				s.Arrive((h.Ack-uint32(n))&0xffff, false)
			}
		}
	}
	return e
}
