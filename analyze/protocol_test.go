package analyze

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// A protocol for tests: each datagram is the mark 'T', an operation and a
// 16-bit number. Its tracker hashes all that it observes, so any omitted,
// repeated or moved datagram shows.
var testProtocol = &dissect.Protocol{
	Name:     "test",
	Classify: func() dissect.Classifier { return &testClassifier{} },
	NewTracker: func(c *dissect.Config) machine.Tracker {
		return &testTracker{facts: c.Facts}
	},
}

var testRule = &machine.Rule{ID: "test-odd", Severity: machine.Warn, Summary: "an odd number"}

type testClassifier struct{ good, bad int }

func (c *testClassifier) Feed(d *machine.Datagram) {
	if len(d.Bytes) >= 4 && d.Bytes[0] == 'T' {
		c.good++
	} else {
		c.bad++
	}
}

func (c *testClassifier) Reset()     { *c = testClassifier{} }
func (c *testClassifier) Sure() bool { return c.Verdict().Settled }

func (c *testClassifier) Verdict() dissect.Verdict {
	if c.good < 3*c.bad+3 {
		return dissect.Verdict{Reason: fmt.Sprintf("test: %d of %d datagrams have the mark", c.good, c.good+c.bad)}
	}
	return dissect.Verdict{
		Config: &dissect.Config{Dialect: "t"}, Bits: float64(8 * c.good), Confidence: 1,
		Reason: "marks", Settled: c.good >= 8,
	}
}

type testTracker struct {
	facts machine.Facts
	hash  uint64
	sum   [2]machine.Summary
}

func (t *testTracker) Observe(d *machine.Datagram, out *machine.Effects) {
	if d.Bytes[1] == 'N' && t.sum[d.From].Packets > 0 {
		out.NewSession = true
		return
	}
	n := binary.LittleEndian.Uint16(d.Bytes[2:])
	t.hash = (t.hash ^ uint64(n) ^ uint64(d.From)<<32 ^ uint64(d.At)<<16) * 0x9E3779B97F4A7C15
	t.sum[d.From].Packets++
	out.Events = append(out.Events,
		machine.Event{Kind: machine.EventSent, Side: d.From, Sequence: uint32(n), At: d.At, Ref: d.Ref})
	if n%2 == 1 {
		out.Anomalies = append(out.Anomalies,
			machine.Anomaly{Rule: testRule, Side: d.From, At: d.At, Ref: d.Ref, Figures: [3]float64{float64(n)}})
	}
}

func (t *testTracker) Finish(out *machine.Effects) {
	out.Events = append(out.Events, machine.Event{Kind: machine.EventLost})
}

func (t *testTracker) Inspect(s machine.Side, v *machine.View) {
	v.Gauges = append(v.Gauges, machine.Gauge{Name: "packets", Value: float64(t.sum[s].Packets)})
}
func (t *testTracker) Summary(s machine.Side) machine.Summary { return t.sum[s] }
func (t *testTracker) Learned() machine.Facts {
	f := t.facts
	f.Liar[0] = f.Liar[0] || t.sum[0].Packets > 5
	return f
}
func (t *testTracker) Clone() machine.Tracker { c := *t; return &c }
func (t *testTracker) Size() int              { return 64 }

var (
	hostA = netip.MustParseAddrPort("10.0.0.1:1000")
	hostB = netip.MustParseAddrPort("10.0.0.2:2000")
	hostC = netip.MustParseAddrPort("[2001:db8::1]:3000")
	hostD = netip.MustParseAddrPort("[2001:db8::2]:4000")
)

// feeder builds decoded packets one after the other.
type feeder struct {
	session *Session
	frame   uint64
}

func (f *feeder) send(src, dst netip.AddrPort, payload []byte) {
	f.frame++
	f.session.Feed(nil, &capture.Packet{
		Ref: machine.MakeRef(0, f.frame), At: machine.Instant(f.frame) * 1e6, Transport: capture.UDP,
		Src: src, Dst: dst, Payload: payload, Length: len(payload), Fragments: 1,
	})
}

func mark(op byte, n int) []byte { return []byte{'T', op, byte(n), byte(n >> 8)} }

type emitted struct {
	flow   int
	frame  uint64
	from   machine.Side
	events int
}

func run(o Options, fill func(*feeder)) (*Session, []emitted) {
	var log []emitted
	o.Registry = dissect.NewRegistry(testProtocol)
	o.Sink = func(r *Record) {
		t := emitted{frame: r.Datagram.Ref.Frame(), from: r.Datagram.From, events: len(r.Events)}
		if r.Flow != nil {
			t.flow = r.Flow.ID
		}
		log = append(log, t)
	}
	s := NewSession(o)
	fill(&feeder{session: s})
	s.Finish()
	return s, log
}

func TestBothDirectionsAreOneFlow(t *testing.T) {
	s, log := run(Options{}, func(f *feeder) {
		for i := range 10 {
			f.send(hostB, hostA, mark('.', i))
			f.send(hostA, hostB, mark('.', i))
			f.send(hostC, hostD, mark('.', i))
			f.send(hostD, hostC, mark('.', i))
		}
	})
	if len(s.Flows()) != 2 {
		t.Fatalf("%d flows, expected 2", len(s.Flows()))
	}
	for i, want := range []netip.AddrPort{hostB, hostC} {
		f := s.Flows()[i]
		if f.A != want || f.Packets != [2]uint64{10, 10} || f.Bytes != [2]uint64{40, 40} || f.Protocol != testProtocol {
			t.Errorf("flow %d: a %v, packets %v, bytes %v, protocol %v", f.ID, f.A, f.Packets, f.Bytes, f.Protocol)
		}
		if sum, ok := f.Summary(machine.B); !ok || sum.Packets != 10 {
			t.Errorf("flow %d: tracker saw %d packets of b, expected all 10 with those that were held", f.ID, sum.Packets)
		}
	}
	// Every datagram is recorded once, with the event of its own step.
	seen := map[uint64]int{}
	for _, r := range log {
		if r.frame > 0 && r.events == 1 {
			seen[r.frame]++
		}
	}
	for frame := uint64(1); frame <= 40; frame++ {
		want := 1
		if frame == 38 || frame == 40 {
			want = 2 // the last frame of each flow is named again when the flow ends
		}
		if seen[frame] != want {
			t.Errorf("frame %d told %d times with its event, expected %d", frame, seen[frame], want)
		}
	}
}

func TestUnexplainedFlowSaysWhy(t *testing.T) {
	s, log := run(Options{}, func(f *feeder) {
		for range 300 {
			f.send(hostA, hostB, []byte("noise"))
		}
	})
	f := s.Flows()[0]
	if f.Protocol != nil || f.Pending() || f.Verdict.Reason != "test: 0 of 300 datagrams have the mark" {
		t.Errorf("protocol %v, pending %v, reason %q", f.Protocol, f.Pending(), f.Verdict.Reason)
	}
	if f.Packets[0] != 300 || len(log) != 300 {
		t.Errorf("%d packets counted, %d told, expected 300", f.Packets[0], len(log))
	}
}

func TestFlowExplainedLate(t *testing.T) {
	s, _ := run(Options{}, func(f *feeder) {
		for range 70 {
			f.send(hostA, hostB, []byte("noise"))
		}
		for i := range 200 {
			f.send(hostA, hostB, mark('.', i))
		}
	})
	f := s.Flows()[0]
	if f.Protocol != testProtocol {
		t.Fatalf("unexplained: %s", f.Verdict.Reason)
	}
}

func TestNewSessionIsANewFlow(t *testing.T) {
	fill := func(f *feeder) {
		for i := range 20 {
			op := byte('.')
			if i == 5 || i == 12 { // while held, and later
				op = 'N'
			}
			f.send(hostA, hostB, mark(op, i))
			f.send(hostB, hostA, mark('.', i))
		}
	}
	s, _ := run(Options{}, fill)
	var got [][3]uint64
	for _, f := range s.Flows() {
		sum, _ := f.Summary(machine.A)
		got = append(got, [3]uint64{uint64(f.Session), sum.Packets, f.FirstRef.Frame()})
	}
	want := [][3]uint64{{1, 5, 1}, {2, 7, 11}, {3, 8, 25}}
	if !slices.Equal(got, want) {
		t.Errorf("session, packets, first frame of flows: %v, expected %v", got, want)
	}
	// A second run that starts with the survey of the first finds the same flows.
	again, _ := run(Options{Survey: s.Survey()}, fill)
	for i, f := range again.Flows() {
		if f.Session != s.Flows()[i].Session || f.Packets != s.Flows()[i].Packets {
			t.Errorf("flow %d: %v packets in the second run, %v in the first", f.ID, f.Packets, s.Flows()[i].Packets)
		}
	}
}

func TestSurveyReachesTheSecondRun(t *testing.T) {
	fill := func(f *feeder) {
		for i := range 20 {
			f.send(hostA, hostB, mark('.', i))
		}
	}
	first, _ := run(Options{}, fill)
	var firstFacts machine.Facts
	s := NewSession(Options{Registry: dissect.NewRegistry(testProtocol), Survey: first.Survey(), Sink: func(r *Record) {
		if r.N == 0 {
			firstFacts = r.Flow.tracker.(*testTracker).facts
		}
	}})
	fill(&feeder{session: s})
	if !firstFacts.Liar[0] {
		t.Error("the second run's tracker does not know at its first packet what the first run learned")
	}
	v := machine.VantageB
	s, _ = run(Options{Vantage: &v}, fill)
	if got := s.Flows()[0].Facts(); got.Vantage != v || got.VantageReason == "" {
		t.Errorf("vantage %v because %q, expected the user's word", got.Vantage, got.VantageReason)
	}
}

func TestTrackersAreBounded(t *testing.T) {
	s, _ := run(Options{MaxTrackers: 10}, func(f *feeder) {
		for i := range 100 {
			peer := netip.AddrPortFrom(hostB.Addr(), uint16(i+1))
			for n := range 9 {
				f.send(hostA, peer, mark('.', n))
			}
			if s := f.session; s.trackers > 10 {
				t.Fatalf("%d trackers after %d flows, expected at most 10", s.trackers, i+1)
			}
		}
	})
	for _, f := range s.Flows() {
		if sum, ok := f.Summary(machine.A); !ok || sum.Packets != 9 {
			t.Errorf("flow %d lost its summary: %d packets of 9", f.ID, sum.Packets)
		}
	}
}

func TestCaptureDuplicatesStayOutOfState(t *testing.T) {
	s, _ := run(Options{}, func(f *feeder) {
		for i := range 10 {
			f.send(hostA, hostB, mark('.', 2*i))
			f.frame++
			f.session.Feed(nil, &capture.Packet{
				Ref: machine.MakeRef(0, f.frame), Transport: capture.UDP, Src: hostA, Dst: hostB,
				Payload: mark('.', 2*i), Length: 4, Duplicate: true,
			})
		}
	})
	f := s.Flows()[0]
	if sum, _ := f.Summary(machine.A); sum.Packets != 10 || f.Duplicates != 10 || f.Packets[0] != 10 {
		t.Errorf("tracker saw %d, flow %d, duplicates %d; expected 10 each", sum.Packets, f.Packets[0], f.Duplicates)
	}
	if l := f.Findings(); len(l) != 1 || l[0].Rule != captureDuplicate || l[0].Count != 10 {
		t.Errorf("findings %v, expected one of capture-duplicate with 10 occurrences", l)
	}
}

func TestFindingsGather(t *testing.T) {
	s, _ := run(Options{}, func(f *feeder) {
		for i := range 100 {
			f.send(hostA, hostB, mark('.', i))
		}
	})
	l := s.Flows()[0].Findings()
	if len(l) != 1 || l[0].Count != 50 || len(l[0].Refs) != keepRefs || l[0].Refs[1].Frame() != 4 ||
		l[0].Figures[0] != 99 {
		t.Fatalf("findings %+v, expected one with 50 occurrences, 16 frames, worst figure 99", l)
	}
}
