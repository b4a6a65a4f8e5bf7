package article_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/article"
	"github.com/ackscope/ackscope/machine/gaffer/gaffertest"
	"github.com/ackscope/ackscope/machine/machinetest"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// sampleNet is a network and hosts for two ends of one of the series' programs.
type sampleNet struct {
	seed    uint64
	path    sim.Path
	frame   time.Duration
	event   bool
	seconds int
	watch   func(*sim.Step) // may be nil
}

// sampleNets returns networks from a clean one to a bad one.
// ACKSCOPE_SAMPLES=N gives N of them (make soak has 1,000).
func sampleNets(t *testing.T) (list []sampleNet) {
	t.Helper()
	count := 12
	if testing.Short() {
		count = 4
	}
	if n, err := strconv.Atoi(os.Getenv("ACKSCOPE_SAMPLES")); err == nil {
		count = n
	}
	for seed := range uint64(count) {
		rng := sim.Rand(seed, "net")
		list = append(list, sampleNet{
			seed: seed, event: seed%3 == 0, seconds: 12,
			frame: []time.Duration{5 * time.Millisecond, 16 * time.Millisecond, 33 * time.Millisecond}[rng.IntN(3)],
			path: sim.Path{
				Delay: time.Duration(rng.IntN(80)) * time.Millisecond, Jitter: time.Duration(rng.IntN(3)*40) * time.Millisecond,
				Loss: []float64{0, 0.05, 0.25}[rng.IntN(3)], Duplicate: []float64{0, 0.05}[rng.IntN(2)],
			},
		})
	}
	return list
}

var sampleTaps = []machine.Vantage{machine.VantageA, machine.VantageBetween, machine.VantageB}

// run lives through it, and gives what a tap at each place saw.
func (n *sampleNet) run(t *testing.T, ends [2]machine.Endpoint, apps [2]sim.App) (seen [3][]machine.Datagram) {
	t.Helper()
	w := sim.New(n.seed)
	var hosts [2]*sim.Host
	for i, name := range []string{"a", "b"} {
		hosts[i] = w.AddHost(name, ends[i], sim.HostOptions{
			Frame: n.frame, Phase: time.Duration(i) * 3 * time.Millisecond, FrameJitter: n.frame / 20, EventDriven: n.event,
			ReadDelay: 50 * time.Microsecond, App: apps[i],
		})
	}
	l := w.Connect(hosts[0], hosts[1], n.path, n.path)
	for k, at := range []float64{0, 0.5, 1} {
		l.Tap(at, func(s sim.Tapped) {
			seen[k] = append(seen[k], machine.Datagram{
				At: s.At.Add(time.Hour), Ref: machine.MakeRef(0, uint64(len(seen[k])+1)), From: machine.Side(s.From.Index),
				Bytes: s.Bytes, Length: len(s.Bytes),
			})
		})
	}
	if n.watch != nil {
		w.Watch(n.watch)
	}
	if err := w.Run(machine.Instant(n.seconds) * machine.Instant(time.Second)); err != nil {
		t.Fatal(err)
	}
	return seen
}

// honest has a judge look at what honest ends sent. It does so for each tap, from the start and from
// somewhere in the middle, whole and cut by a snap length. No side may diverge. The one at the tap,
// seen whole from the start, leaves nothing open.
func (n *sampleNet) honest(t *testing.T, p *wire.Profile, behaviours [2]string, seen [3][]machine.Datagram, fresh bool,
	name string,
) {
	t.Helper()
	for k, tap := range sampleTaps {
		for cut := range 4 {
			list := seen[k][len(seen[k])*cut/5:]
			for _, most := range []int{4, 6, 8, 9, 10, 11, 12, 13, 14, 16, 18, 24, 32, 60, 100, 300} {
				n.snapped(t, p, machine.Facts{Vantage: tap}, behaviours, list, most, name)
			}
			j, err := article.NewJudge(p, machine.Facts{Vantage: tap}, behaviours)
			if err != nil {
				t.Fatal(err)
			}
			for i := range list {
				j.Observe(&list[i])
			}
			j.Finish()
			for _, s := range []machine.Side{machine.A, machine.B} {
				o := j.Opinion(s)
				if v := o.Divergence; v != nil {
					t.Errorf("%s, tap at %v, from %d of 5 on: %v diverges in frame %d: %s: %s expected %s, got %s: %s", name, tap, cut,
						s, v.Ref.Frame(), v.Rule, v.Field, v.Expected, v.Got, v.Because)
				} else if tap.Near(s) && cut == 0 && fresh && o.Undecided > 0 {
					t.Errorf("%s, tap at %v: of %v %d packets of %d are open: %s", name, tap, s, o.Undecided, o.Compared, o.Why)
				}
			}
		}
		if n.seed == 1 && tap == machine.VantageA {
			t.Run("laws of the tracker", func(t *testing.T) {
				machinetest.Tracker(t, func() machine.Tracker { return article.NewTracker(p, machine.Facts{}) },
					seen[k][:min(len(seen[k]), 400)])
			})
		}
		tr := article.NewTracker(p, machine.Facts{})
		var out machine.Effects
		for i := range seen[k] {
			tr.Observe(&seen[k][i], &out)
		}
		if v := tr.Learned(); v.Vantage != tap && v.Vantage != machine.VantageUnknown && n.path.Delay > 4*time.Millisecond {
			t.Errorf("%s, tap at %v: taken for %v: %s", name, tap, v.Vantage, v.VantageReason)
		}
	}
}

// snapped has a judge look at datagrams of which a capture holds at most so many bytes.
func (n *sampleNet) snapped(t *testing.T, p *wire.Profile, facts machine.Facts, behaviours [2]string,
	list []machine.Datagram, most int, name string,
) {
	t.Helper()
	j, err := article.NewJudge(p, facts, behaviours)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		d.Bytes = slices.Clip(d.Bytes[:min(most, len(d.Bytes))])
		j.Observe(&d)
	}
	j.Finish()
	for _, s := range []machine.Side{machine.A, machine.B} {
		if v := j.Opinion(s).Divergence; v != nil {
			t.Errorf("%s, tap at %v, %d bytes of each: %v diverges in frame %d: %s: %s expected %s, got %s: %s", name,
				facts.Vantage, most, s, v.Ref.Frame(), v.Rule, v.Field, v.Expected, v.Got, v.Because)
		}
	}
}

// TestSliceJudgeHonest: blocks both ways over bad networks.
func TestSliceJudgeHonest(t *testing.T) {
	for _, n := range sampleNets(t) {
		for _, style := range []string{"gaffer@article", "gaffer@article-sample"} {
			var ends [2]machine.Endpoint
			first := uint16(0)
			if n.seed%4 == 1 {
				first = 65533
			}
			for i := range ends {
				ends[i] = newBlocks(t,
					article.BlockOptions{Side: machine.Side(i), First: first, AsSample: style == "gaffer@article-sample"})
			}
			app := func(f *sim.Frame) {
				if f.Rand.IntN(20) == 0 {
					block := make([]byte, 1+f.Rand.IntN([]int{100, 5000, 32768}[f.Rand.IntN(3)]))
					for k := range block {
						block[k] = byte(f.Rand.Uint32())
					}
					f.Do(machine.Submit{Channel: article.ChannelBlock, Payload: block})
				}
			}
			apps := [2]sim.App{app, app}
			if n.seed%2 == 0 {
				apps[1] = nil
			}
			p := gaffertest.Builtin(wire.ArticleSlices).WithProtocolID(0x11223344)
			n.honest(t, p, [2]string{style, style}, n.run(t, ends, apps), first == 0,
				fmt.Sprintf("seed %d, %s, %+v", n.seed, style, n.path))
		}
	}
}

// TestFragmentJudgeHonest: packets of all sizes both ways over bad networks.
func TestFragmentJudgeHonest(t *testing.T) {
	for _, n := range sampleNets(t) {
		p := gaffertest.Builtin(wire.ArticleFragments).WithProtocolID(0x55667788)
		var ends [2]machine.Endpoint
		for i := range ends {
			e, err := article.NewFragments(article.FragmentOptions{
				Profile: p, Side: machine.Side(i),
				First: uint32(n.seed%2) * 65500,
			})
			if err != nil {
				t.Fatal(err)
			}
			ends[i] = e
		}
		app := func(f *sim.Frame) {
			body := make([]byte, 1+f.Rand.IntN([]int{20, 1010, 6000}[f.Rand.IntN(3)]))
			for k := range body {
				body[k] = byte(f.Rand.Uint32())
			}
			f.Do(machine.Submit{Channel: article.ChannelFragments, Type: 1 + uint32(f.Rand.IntN(3)), Payload: body})
		}
		n.honest(t, p, [2]string{"gaffer@article", "gaffer@article"}, n.run(t, ends, [2]sim.App{app, app}), true,
			fmt.Sprintf("seed %d, %+v", n.seed, n.path))
	}
}

// TestConnectJudgeHonest: a client comes and goes, more than once.
func TestConnectJudgeHonest(t *testing.T) {
	for _, n := range sampleNets(t) {
		for farewells, style := range map[int]string{1: "gaffer@article-sample", 10: "gaffer@article"} {
			client := newConnection(t, article.ConnectOptions{Side: machine.A, Seed: n.seed, Farewells: farewells})
			server := newConnection(t,
				article.ConnectOptions{
					Side: machine.B, Seed: n.seed + 1, Server: true, Farewells: farewells,
					Slots: 1 + int(n.seed%2),
				})
			asked := machine.Instant(-1)
			apps := [2]sim.App{func(f *sim.Frame) {
				switch {
				case client.Connected(0) && f.Rand.IntN(150) == 0:
					f.Do(machine.Command{Kind: machine.Disconnect})
					asked = -1
				case asked < 0 && f.Rand.IntN(30) == 0:
					f.Do(machine.Command{Kind: machine.Connect})
					asked = f.Now
				case asked >= 0 && f.Now.Sub(asked) > 11*time.Second && !client.Connected(0):
					asked = -1 // given up
				}
			}, nil}
			m := n
			m.seconds = 40
			p := gaffertest.Builtin(wire.ArticleConnect).WithProtocolID(0x12341651)
			m.honest(t, p, [2]string{style, style}, m.run(t, [2]machine.Endpoint{client, server}, apps), true,
				fmt.Sprintf("seed %d, %s, %+v", n.seed, style, n.path))
		}
	}
}
