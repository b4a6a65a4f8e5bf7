package realbuilds

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/endpoint"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// restarting is an endpoint that starts anew at some instants, on the same port, as
// a process that crashed does. Acks of its old packets may still be under way.
type restarting struct {
	machine.Endpoint
	fresh func() machine.Endpoint
	at    []machine.Instant
}

// Step implements machine.Endpoint.
func (r *restarting) Step(now machine.Instant, in machine.Input, out *machine.Effects) error {
	if len(r.at) > 0 && now >= r.at[0] {
		r.Endpoint, r.at = r.fresh(), r.at[1:]
	}
	return r.Endpoint.Step(now, in, out)
}

// Clone implements machine.Endpoint.
func (r *restarting) Clone() machine.Endpoint {
	c := *r
	c.Endpoint = r.Endpoint.Clone()
	return &c
}

// simulation is a run of two correct endpoints.
type simulation struct {
	seed       uint64
	eventClock bool
	refuse     [2]float64
	most       int // payload bytes
	rate       [2]int
	path       sim.Path
	restarts   [2][]machine.Instant
	first      uint32
	tap        float64 // 0 at the client, 1 at the server
}

func (s *simulation) String() string {
	restarts := 0
	for _, list := range s.restarts {
		restarts += len(list)
	}
	return fmt.Sprintf("%d restarts, event clock %v, refused %.2f, payload to %d, tap at %g, loss %.2f, jitter %v, "+
		"dup %.2f", restarts, s.eventClock, s.refuse, s.most, s.tap, s.path.Loss, s.path.Jitter, s.path.Duplicate)
}

const simulated = 8 * time.Second

// draw draws a simulation. Its endpoints are correct: of `reliable`, with an event
// clock, refusals, fragments and restarts.
func draw(seed uint64) *simulation {
	rng := rand.New(rand.NewPCG(seed, 3))
	some := func(n int) bool { return rng.IntN(n) == 0 }
	s := &simulation{
		seed: seed, eventClock: !some(3), most: 200, rate: [2]int{20 + rng.IntN(100), 20 + rng.IntN(100)},
		tap: []float64{0, 1, 0.5}[seed%3],
		path: sim.Path{
			Delay: time.Duration(5+rng.IntN(60)) * time.Millisecond, Loss: 0.1 * rng.Float64(),
			Jitter: time.Duration(rng.IntN(40)) * time.Millisecond, Duplicate: 0.03 * rng.Float64(),
		},
	}
	for side := range s.refuse {
		if some(2) {
			s.refuse[side] = 0.1 * rng.Float64()
		}
		if some(3) {
			at := machine.Instant(time.Second).Add(time.Duration(rng.Int64N(int64(simulated - 3*time.Second))))
			s.restarts[side] = []machine.Instant{at}
		}
	}
	if some(2) {
		s.most = 4000
	}
	if some(3) {
		s.first = 65300
	}
	return s
}

// run returns the capture and the logs of both endpoints.
func (s *simulation) run(t *testing.T) (*tape, map[string]*endpointLog) {
	t.Helper()
	profile, _, err := wire.Builtin(wire.Reliable)
	if err != nil {
		t.Fatal(err)
	}
	rules := gaffer.RulesOf(profile)
	w := sim.New(s.seed)
	logs := map[string]*endpointLog{}
	var hosts [2]*sim.Host
	for side := range hosts {
		fresh := func(first uint32) machine.Endpoint {
			e, err := endpoint.New(endpoint.Options{
				Profile: profile, Rules: rules, Side: machine.Side(side), EventClock: s.eventClock, First: first,
				PeerFirst: first, FragmentAbove: 1024, FragmentSize: 1024, FragmentMost: 16,
			})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		who := role(side == 0)
		logs[who] = &endpointLog{times: map[logged][]float64{}, end: float64(epoch)/1e9 + simulated.Seconds()}
		e := &restarting{fresh(s.first), func() machine.Endpoint { return fresh(0) }, s.restarts[side]}
		hosts[side] = w.AddHost(who, e,
			sim.HostOptions{
				Frame: time.Second / time.Duration(s.rate[side]), EventDriven: s.eventClock, Refuse: s.refuse[side],
				Stop: machine.Instant(simulated), App: func(f *sim.Frame) {
					f.Do(machine.Submit{
						Channel: messages.ChannelPacket, Payload: sim.Noise(f.Rand, 16+f.Rand.IntN(s.most-15)),
					})
				},
			})
	}
	w.Watch(func(step *sim.Step) {
		l := logs[step.Host.Name]
		for _, e := range step.Out.Events {
			if e.Kind == machine.EventReceived || e.Kind == machine.EventAcked {
				k := logged{e.Kind.String(), e.Sequence}
				l.times[k] = append(l.times[k], float64(step.At+epoch)/1e9)
			}
		}
	})
	p := &tape{}
	link := w.Connect(hosts[0], hosts[1], s.path, s.path)
	link.Tap(s.tap, func(x sim.Tapped) { s.captured(t, p, &x) })
	if err := w.Run(machine.Instant(simulated + time.Second)); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return p, logs
}

// epoch is when the simulations begin.
const epoch = machine.Instant(1_700_000_000e9)

var ends = [2]netip.AddrPort{netip.MustParseAddrPort("10.9.0.1:30000"), netip.MustParseAddrPort("10.9.0.2:40000")}

// captured adds a frame. What came over the network has passed some routers.
func (s *simulation) captured(t *testing.T, p *tape, x *sim.Tapped) {
	t.Helper()
	e := capture.Envelope{Src: ends[0], Dst: ends[1], TTL: 64, ID: uint16(len(p.frames))}
	position := s.tap
	if x.From.Index == 1 {
		e.Src, e.Dst = e.Dst, e.Src
		position = 1 - s.tap
	}
	if position > 0 {
		e.TTL -= 2
	}
	b, err := capture.AppendUDP(nil, e, x.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	p.frames = append(p.frames, capture.Frame{
		Ref: machine.MakeRef(0, uint64(len(p.frames)+1)), At: x.At + epoch, LinkType: capture.LinkRaw,
		Length: len(b), Data: b,
	})
}

// wrong returns what is wrong with what Ackscope says of the run.
func (s *simulation) wrong(t *testing.T, p *tape, logs map[string]*endpointLog) (list []string) {
	t.Helper()
	x := say(t, s.String(), p)
	for _, a := range x.accused() {
		list = append(list, "an honest side is accused: "+a.String())
	}
	tap := map[float64]string{0: client, 1: server}[s.tap]
	list = append(list, denied(x, logs, tap, 0)...)
	if why := x.impossibleCounts(); why != "" {
		list = append(list, why)
	}
	for _, rule := range slices.Sorted(maps.Keys(x.errors)) {
		list = append(list, fmt.Sprintf("finding %s, %s, about correct endpoints", rule, x.errors[rule]))
	}
	return list
}

// strict is how many of the simulations every run of the tests has. What is wrong
// with them stands in open.
const strict = 10

// TestSimulated: replay accuses no side of 100 simulated runs of correct endpoints,
// and the facts that it calls certain agree with what the endpoints did.
func TestSimulated(t *testing.T) {
	runs := uint64(strict)
	if testenv.Whole() {
		runs = 100
	}
	found := map[string][]string{}
	for seed := range runs {
		s := draw(seed)
		p, logs := s.run(t)
		wrong := s.wrong(t, p, logs)
		name := fmt.Sprintf("simulated %d", seed)
		if seed < strict {
			check(t, name, wrong)
			continue
		}
		for _, w := range wrong {
			w = fmt.Sprintf("%s (%s): %s", name, s, w)
			found[causeOf(w)] = append(found[causeOf(w)], w)
		}
	}
	report(t, found)
}
