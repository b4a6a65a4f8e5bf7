package analyze

import (
	"hash/maphash"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// countScope numbers the datagrams of an endpoint, and hashes them.
type countScope struct {
	n, fold uint64
	flows   map[int]bool
}

func (x *countScope) Observe(flow int, d *machine.Datagram) machine.Place {
	x.n++
	x.fold = (x.fold ^ uint64(d.Ref)<<8 ^ uint64(d.Length) ^ uint64(flow)<<40) * 0x9E3779B97F4A7C15
	x.flows[flow] = true
	return machine.Place{Number: int64(x.n), Missing: uint32(x.n % 7), Known: true}
}

func (x *countScope) Inspect(v *machine.View) {
	v.Gauges = append(v.Gauges, machine.Gauge{Name: "sent", Value: float64(x.n)},
		machine.Gauge{Name: "fold", Value: float64(x.fold >> 12)},
		machine.Gauge{Name: "flows", Value: float64(len(x.flows))})
}

func (x *countScope) Clone() machine.Scope {
	c := &countScope{n: x.n, fold: x.fold, flows: map[int]bool{}}
	for f := range x.flows {
		c.flows[f] = true
	}
	return c
}

func (x *countScope) Size() int { return 4000 }

// placeTracker also hashes the places of its datagrams.
type placeTracker struct{ foldTracker }

func (t *placeTracker) Observe(d *machine.Datagram, out *machine.Effects) {
	t.foldTracker.Observe(d, out)
	t.fold = (t.fold ^ uint64(d.Place.Number) ^ uint64(d.Place.Missing)<<32) * 0xC2B2AE3D27D4EB4F
}
func (t *placeTracker) Clone() machine.Tracker { c := *t; return &c }
func (t *placeTracker) Inspect(_ machine.Side, v *machine.View) {
	v.Gauges = append(v.Gauges, machine.Gauge{Name: "tracker", Value: float64(t.fold >> 12)})
}

// TestScopeSpansAnEndpointsFlows: the datagrams of an endpoint are counted over
// all its flows. The state at any frame, with that of the endpoint, equals a
// hash over all packets up to there.
func TestScopeSpansAnEndpointsFlows(t *testing.T) {
	seed := maphash.MakeSeed()
	counted := &dissect.Protocol{
		Name:       "counted",
		Classify:   func() dissect.Classifier { return &everything{} },
		NewTracker: func(*dissect.Config) machine.Tracker { return &placeTracker{foldTracker{seed: seed}} },
		NewScope:   func(*dissect.Config) machine.Scope { return &countScope{flows: map[int]bool{}} },
	}
	in, err := capture.Open([]string{"../testdata/pcaps/reliable-two-clients.server.pcap.gz"},
		capture.Options{Keep: capture.KeepAll})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	type kept struct {
		from, to netip.AddrPort
		flow     int
		d        machine.Datagram
	}
	var all []kept
	timeline := NewTimeline(in)
	s, err := RunTwice(in, Options{Registry: dissect.NewRegistry(counted), Sink: func(r *Record) {
		timeline.Record(r)
		k := kept{d: r.Datagram}
		if r.Flow != nil && r.Frame != nil && !r.Packet.Duplicate {
			k.flow, k.from, k.to = r.Flow.ID, r.Packet.Src, r.Packet.Dst
		}
		k.d.Bytes = slices.Clone(k.d.Bytes)
		if r.Frame != nil {
			all = append(all, k)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	timeline.Attach(s)
	if len(s.Flows()) < 2 || len(s.scopes) != 0 {
		t.Fatalf("%d flows, %d scopes left at the end; expected several flows and no scope", len(s.Flows()), len(s.scopes))
	}
	taken := 0
	for _, c := range timeline.scopes {
		taken += len(c.checkpoints)
	}
	if taken < 6 {
		t.Errorf("%d checkpoints of scopes: the test did not try them", taken)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	shared := false
	for range 100 {
		f := s.Flows()[rng.IntN(len(s.Flows()))]
		at := rng.IntN(len(all))
		got, err := timeline.StateAt(f, all[at].d.Ref)
		if err != nil {
			t.Fatal(err)
		}
		scopes := map[netip.AddrPort]*countScope{f.A: {flows: map[int]bool{}}, f.B: {flows: map[int]bool{}}}
		want := &placeTracker{foldTracker{seed: seed}}
		for i := range all[:at+1] {
			k := &all[i]
			d := k.d
			if x := scopes[k.from]; x != nil {
				d.Place = x.Observe(k.flow, &d)
			}
			if k.flow == f.ID {
				want.Observe(&d, nil)
			}
		}
		for side, end := range []netip.AddrPort{f.A, f.B} {
			var is, should machine.View
			got.Inspect(machine.Side(side), &is)
			want.Inspect(machine.Side(side), &should)
			scopes[end].Inspect(&should)
			if !slices.Equal(is.Gauges, should.Gauges) {
				t.Fatalf("flow %d side %d at frame %d: %v, a fold gives %v", f.ID, side, all[at].d.Ref.Frame(), is.Gauges,
					should.Gauges)
			}
			shared = shared || len(scopes[end].flows) > 1
		}
	}
	if !shared {
		t.Error("no endpoint had two flows: the test did not try what it is for")
	}
}

// TestScopesWithoutTrackers: a run that omits trackers asks no scope, and goroutines may share it. But
// a flow that is one of several sessions has a tracker, and then scopes see all flows.
func TestScopesWithoutTrackers(t *testing.T) {
	for _, sessions := range []bool{false, true} {
		asked := 0
		counted := *testProtocol
		counted.NewScope = func(*dissect.Config) machine.Scope { return askedScope{&asked} }
		src := &made{frames: 300, fill: func(b []byte, n int) []byte {
			b = udp(ipv4(b, 17, [4]byte{10, 0, 0, byte(n % 3)}, [4]byte{192, 0, 2, 1}, 8+4), 5000, 40000, 4)
			if sessions && n == 200 {
				return append(b, mark('N', n)...)
			}
			return append(b, mark('.', n)...)
		}}
		o := Options{Registry: dissect.NewRegistry(&counted), Sink: func(*Record) {}}
		s, err := Learn(src, o)
		if err != nil {
			t.Fatal(err)
		}
		o.Survey = s.Survey()
		if want := 3; asked == 0 || !sessions && len(s.Flows()) != want {
			t.Fatalf("sessions %v: %d flows, scopes asked %d times", sessions, len(s.Flows()), asked)
		}
		for _, o.Untracked = range []bool{false, true} {
			asked = 0
			if _, err := Run(src, o); err != nil {
				t.Fatal(err)
			}
			if apart := o.Untracked && !sessions; asked == 0 != apart || o.Survey.separable(&o) != apart {
				t.Errorf("sessions %v, untracked %v: scopes asked %d times, separable %v", sessions, o.Untracked, asked,
					!apart)
			}
			if err := src.Rewind(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// askedScope counts how often scopes are asked.
type askedScope struct{ n *int }

func (x askedScope) Observe(int, *machine.Datagram) machine.Place { *x.n++; return machine.Place{} }
func (x askedScope) Inspect(*machine.View)                        {}
func (x askedScope) Clone() machine.Scope                         { return x }
func (x askedScope) Size() int                                    { return 1 }

// TestScopesAtEnd: the protocol of a flow is found at the end of the capture. The scope of its server
// knows the server's other flow, also where goroutines shared the run.
func TestScopesAtEnd(t *testing.T) {
	for _, threads := range []int{1, 2, 3} {
		var places []int64
		counted := *testProtocol
		counted.NewScope = func(*dissect.Config) machine.Scope { return &countScope{flows: map[int]bool{}} }
		counted.NewTracker = func(c *dissect.Config) machine.Tracker {
			return &notedPlaces{testProtocol.NewTracker(c), &places}
		}
		src := &made{frames: 104, fill: func(b []byte, n int) []byte {
			client := [4]byte{10, 0, 0, byte(n / 100)}
			return append(udp(ipv4(b, 17, [4]byte{192, 0, 2, 1}, client, 8+4), 40000, 5000, 4), mark('.', n)...)
		}}
		if _, err := Run(src, Options{Registry: dissect.NewRegistry(&counted), Threads: threads}); err != nil {
			t.Fatal(err)
		}
		if n := len(places); n < 104 || !slices.Equal(places[n-4:], []int64{101, 102, 103, 104}) {
			t.Errorf("%d threads: the places of the last datagrams are %v, expected 101 to 104", threads, places[max(0, n-5):])
		}
	}
}

// notedPlaces notes the places of datagrams.
type notedPlaces struct {
	machine.Tracker
	places *[]int64
}

func (x *notedPlaces) Observe(d *machine.Datagram, out *machine.Effects) {
	*x.places = append(*x.places, d.Place.Number)
	x.Tracker.Observe(d, out)
}
