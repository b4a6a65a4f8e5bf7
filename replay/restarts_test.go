package replay_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/endpoint"
	"github.com/ackscope/ackscope/replay"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// restarting is an endpoint that begins anew at certain times. A process that starts again has
// an empty socket; a library that is reset goes on with what lies in it.
type restarting struct {
	machine.Endpoint

	options endpoint.Options
	times   []machine.Instant
	process bool
	emptied machine.Instant // datagrams of this frame lay in the old socket
}

func (e *restarting) Step(now machine.Instant, in machine.Input, out *machine.Effects) error {
	if _, wakes := in.(machine.Wake); wakes && len(e.times) > 0 && now >= e.times[0] {
		e.times = e.times[1:]
		fresh, err := endpoint.New(e.options)
		if err != nil {
			return err
		}
		e.Endpoint, e.emptied = fresh, now
	}
	if _, arrives := in.(machine.Arrive); arrives && e.process && now == e.emptied && now > 0 {
		return nil
	}
	return e.Endpoint.Step(now, in, out)
}

// restartRun is one run of two right endpoints of which some restart, as taps at A, at B and
// between them see it.
type restartRun struct {
	frames   [3][]capture.Frame
	restarts int
}

func newRestartRun(t *testing.T, seed uint64) (x restartRun) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 31))
	p, _, err := wire.Builtin("reliable")
	if err != nil {
		t.Fatal(err)
	}
	w := sim.New(seed)
	ends := [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:30000"), netip.MustParseAddrPort("10.0.0.2:40000")}
	const length = 16 * time.Second
	var hosts [2]*sim.Host
	large := []float64{0, 0.1}[rng.IntN(2)]
	first := time.Duration(rng.Int64N(int64(10*time.Second))) + time.Second
	for i := range hosts {
		o := endpoint.Options{
			Profile: p, Rules: gaffer.RulesOf(p), Side: machine.Side(i), EventClock: rng.IntN(2) == 0,
			FragmentAbove: 1024, FragmentSize: 1024, FragmentMost: 16,
		}
		e, err := endpoint.New(o)
		if err != nil {
			t.Fatal(err)
		}
		r := &restarting{Endpoint: e, options: o, process: rng.IntN(2) == 0}
		if which := seed % 3; which == 2 || which == uint64(i) {
			at := first
			if i == 1 {
				at += time.Duration(rng.Int64N(int64(400 * time.Millisecond)))
			}
			r.times = append(r.times, machine.Instant(at))
			x.restarts++
		}
		play := func(f *sim.Frame) {
			if f.Now >= machine.Instant(length) {
				return
			}
			n := 1 + f.Rand.IntN(100)
			if f.Rand.Float64() < large {
				n = 1025 + f.Rand.IntN(3000)
			}
			f.Do(machine.Submit{Payload: sim.Noise(f.Rand, n)})
		}
		hosts[i] = w.AddHost([]string{"a", "b"}[i], r, sim.HostOptions{
			Frame:  time.Second / time.Duration(20+rng.IntN(60)),
			Phase:  time.Duration(i) * 7 * time.Millisecond,
			Refuse: []float64{0, 0, 0.03}[rng.IntN(3)], App: play, FrameJitter: 2 * time.Millisecond,
		})
	}
	path := sim.Path{
		Delay: time.Duration(10+rng.IntN(60)) * time.Millisecond, Jitter: time.Duration(rng.IntN(40)) * time.Millisecond,
		Loss: []float64{0, 0.03, 0.1}[rng.IntN(3)], Duplicate: []float64{0, 0.03}[rng.IntN(2)],
	}
	link := w.Connect(hosts[0], hosts[1], path, path)
	for i, at := range []float64{0, 1, 0.5} {
		link.Tap(at, func(seen sim.Tapped) {
			d := machine.Datagram{At: seen.At, From: machine.Side(seen.From.Index), Bytes: seen.Bytes}
			f := framed(&d, ends, len(x.frames[i])+1)
			f.Ref = machine.MakeRef(0, uint64(len(x.frames[i])+1))
			x.frames[i] = append(x.frames[i], f)
		})
	}
	if err := w.Run(machine.Instant(length + time.Second)); err != nil {
		t.Fatal(err)
	}
	return x
}

// TestRestarts: an endpoint starts anew on the same addresses, and its peer goes on. Neither breaks
// a rule: at no tap does a side diverge, and no finding is an error. `make honest` runs more.
func TestRestarts(t *testing.T) {
	runs, from := 24, 0
	if n, err := strconv.Atoi(os.Getenv("ACKSCOPE_RESTARTS")); err == nil {
		runs, from = n, 1000
	}
	for seed := from; seed < from+runs; seed++ {
		x := newRestartRun(t, uint64(seed))
		for i, frames := range x.frames {
			at := [...]string{"first host", "second host", "between"}[i]
			v := [...]machine.Vantage{machine.VantageA, machine.VantageB, machine.VantageBetween}[i]
			if frames[0].Data[15] == 2 && v != machine.VantageBetween {
				v = machine.VantageA + machine.VantageB - v // the second host spoke first, and is side A
			}
			name := fmt.Sprintf("seed %d, tap at %s", seed, at)
			if sessions := holdHonest(t, name, frames, &v); sessions < 2 || sessions > 1+x.restarts {
				t.Errorf("%s: %d sessions, expected %d restarts to divide the flow", name, sessions, x.restarts)
			}
		}
	}
}

// holdHonest fails where a side of a capture of right endpoints is accused, by replay or by a
// finding that is an error.
func holdHonest(t *testing.T, name string, frames []capture.Frame, at *machine.Vantage) (sessions int) {
	t.Helper()
	o := analyze.Options{Registry: registry(), Vantage: at}
	f, err := replay.Run(name, &altered{frames: frames}, replay.Options{Analysis: o})
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Results {
		r := &f.Results[i]
		if d := r.Divergence; d != nil {
			t.Errorf("%s: flow %d %s: frame %d: %v: %s: %s expected %s, got %s: %s", name, r.Flow.ID, r.Side, d.Ref.Frame(),
				r.Certainty(), d.Rule.ID, d.Field, d.Expected, d.Got, d.Because)
		}
		if r.Undecided > r.Compared {
			t.Errorf("%s: flow %d %s: %d of %d packets could not be decided", name, r.Flow.ID, r.Side, r.Undecided, r.Compared)
		}
	}
	for _, x := range findingsOf(t, frames, o) {
		if x.Rule.Severity == machine.Error {
			t.Errorf("%s: flow %d: %v finding %s of %s, %d times, first in frame %d", name, x.Flow.ID, x.Certainty, x.Rule.ID,
				x.Side, x.Count, x.Refs[0].Frame())
		}
	}
	return len(f.Results) / 2
}

// findingsOf returns the findings of a capture.
func findingsOf(t *testing.T, frames []capture.Frame, o analyze.Options) (list []*analyze.Finding) {
	t.Helper()
	s, err := analyze.RunTwice(&altered{frames: frames}, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Flows() {
		list = append(list, f.Findings()...)
	}
	return list
}
