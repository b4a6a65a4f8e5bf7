package endpoint_test

import (
	"bytes"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/endpoint"
	"github.com/ackscope/ackscope/machine/gaffer/gaffertest"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TestInterop feeds a reference what a real endpoint received, and makes it send what
// that one sent. Every datagram must be the same, byte for byte, acks included. The
// wire does not show when within a frame the real endpoint read its socket, only that
// it read in order. So arrivals are held back. Before each own packet the reference
// reads as many of them as make its header equal. If no number does, the reference
// differs.
func TestInterop(t *testing.T) {
	runs := 0
	for _, path := range gaffertest.Captures(t, "*.pcap*") {
		run, _, _ := strings.Cut(filepath.Base(path), ".")
		switch prefix, _, _ := strings.Cut(run, "-"); prefix {
		case "reliable", "plain", "crc32", "oldreliable":
		default:
			continue
		}
		// Skip two kinds of runs. In the first the endpoints already had a fault
		// when the capture began (entries of an earlier wrap): one header does not show it.
		// In the second an application refused packets: the capture does not show which.
		if strings.Contains(run, "stalebug") || strings.Contains(run, "reject") {
			continue
		}
		if testing.Short() && strings.Contains(run, "wrap-fast") {
			continue
		}
		runs++
		t.Run(filepath.Base(path), func(t *testing.T) {
			lines := gaffertest.ReadLog(t, run)
			flows := gaffertest.NearFlows(t, path, lines)
			if len(flows) == 0 {
				t.Fatal("no flow of the run's endpoints")
			}
			for name, flow := range flows {
				replayFlow(t, name, run, flow, nil)
			}
		})
	}
	if runs < 40 {
		t.Fatalf("%d captures, expected more than 40", runs)
	}
}

// TestEstimatesAgainstLog compares the reference's estimates with those that the real
// endpoint logged each second. Frame times are the log's. Everything else is as in
// TestInterop.
func TestEstimatesAgainstLog(t *testing.T) {
	for _, run := range []string{
		"reliable-clean", "reliable-loss10", "reliable-loss40", "reliable-burst",
		"reliable-dup10", "reliable-jitter80", "reliable-frag-heavy", "reliable-ipv6",
	} {
		lines := gaffertest.ReadLog(t, run)
		for _, side := range []string{"client", "server"} {
			path := gaffertest.Capture(t, run, side)
			f := frames{at: map[uint32]machine.Instant{}, stats: map[uint32]gaffertest.LogLine{}}
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
			for name, flow := range gaffertest.NearFlows(t, path, lines) {
				replayFlow(t, run+" "+name, run, flow, &f)
			}
			t.Logf("%s at the %s: largest differences: rtt %.4f ms, loss %.4f %%, sent %.3f and acked %.3f kbit/s, in %d "+
				"comparisons",
				run, side, f.worst[0], f.worst[1], f.worst[2], f.worst[3], len(f.stats))
		}
	}
}

// frames are an endpoint's frame times and logged estimates, keyed by the packet sent
// in the frame.
type frames struct {
	at    map[uint32]machine.Instant
	stats map[uint32]gaffertest.LogLine
	worst [4]float64
}

// compare compares the endpoint's estimates after it sent a packet with the log.
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
		// The server creates its library endpoint within the frame in which the first packet
		// arrives. So that packet's send time is some 50 µs later than the frame's.
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

// replayFlow runs the reference over one flow; with f, in the endpoint's own time.
func replayFlow(t *testing.T, name, run string, flow []gaffertest.TappedDatagram, f *frames) {
	t.Helper()
	p := gaffertest.ProfileOf(run)
	o := endpoint.Options{Profile: p, Rules: gaffer.RulesOf(p)}
	if p.Fragments == wire.FragmentsReliable {
		o.FragmentAbove, o.FragmentSize, o.FragmentMost = 1024, 1024, 256
		if strings.Contains(run, "ipfrag") {
			o.FragmentAbove = 8000
		}
	}
	var e *endpoint.Endpoint
	var pending []gaffertest.TappedDatagram
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
		if !flow[i].Own {
			pending = append(pending, flow[i])
			continue
		}
		first := flow[i]
		err := p.Parse(first.Bytes, len(first.Bytes)+first.Cut, &packet)
		if err != nil {
			continue // not of the protocol: the relay never forges own packets
		}
		want := packet.Header
		sent := []gaffertest.TappedDatagram{first}
		payload := append(bytes.Clone(first.Bytes[packet.PayloadOffset:]), make([]byte, first.Cut)...)
		if packet.Kind == wire.KindRegular {
			payload = payload[:packet.PayloadLen]
		}
		for n := packet.FragmentCount; packet.Kind == wire.KindFragment && len(sent) < n; {
			// Fragments of one packet leave together. Arrivals between them do not belong to
			// them.
			if i++; i >= len(flow) {
				return
			}
			if !flow[i].Own {
				pending = append(pending, flow[i])
				continue
			}
			if err := p.Parse(flow[i].Bytes, len(flow[i].Bytes)+flow[i].Cut, &packet); err != nil ||
				packet.Kind != wire.KindFragment {
				t.Fatalf("%s: frame %d: expected another fragment: %v", name, flow[i].Frame, err)
			}
			sent = append(sent, flow[i])
			payload = append(append(payload, flow[i].Bytes[packet.PayloadOffset:]...), make([]byte, flow[i].Cut)...)
		}
		if e == nil {
			e = adopt(t, o, want)
		}
		now := first.At
		if f != nil {
			now = f.at[want.Sequence]
			step(now, machine.Wake{})
		}
		for n := 0; ; n++ {
			if got := e.State().Header(); got == want {
				pending = pending[n:]
				break
			} else if n == len(pending) {
				t.Fatalf("%s: frame %d: header %+v, the reference would send %+v", name, first.Frame, want, got)
			}
			// A snap length cuts only payload, and any payload will do.
			step(now, machine.Arrive{Bytes: append(bytes.Clone(pending[n].Bytes), make([]byte, pending[n].Cut)...)})
			arrived++
		}
		step(now, machine.Submit{Payload: payload})
		if len(out.Transmit) != len(sent) {
			t.Fatalf("%s: frame %d: %d datagrams, the reference sends %d", name, first.Frame, len(sent), len(out.Transmit))
		}
		for k, x := range out.Transmit {
			if got := x.Bytes[:len(x.Bytes)-sent[k].Cut]; !bytes.Equal(got, sent[k].Bytes) {
				t.Fatalf("%s: frame %d: % x, the reference sends % x", name, sent[k].Frame, sent[k].Bytes, got)
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

// adopt returns a reference in the state that the real endpoint had when it sent a
// packet with this header.
func adopt(t *testing.T, o endpoint.Options, h wire.Header) *endpoint.Endpoint {
	t.Helper()
	o.First = h.Sequence
	e, err := endpoint.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if !o.Profile.NothingReceived(h) {
		s := e.State()
		// A window cannot move by half the range at once: move it in steps.
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
