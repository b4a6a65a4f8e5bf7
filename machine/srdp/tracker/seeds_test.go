package tracker_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/machine/srdp/endpoint"
	"github.com/ackscope/ackscope/machine/srdp/tracker"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// drawn holds random conditions for one run that the grid of TestSimulated
// lacks: uneven paths, bursts, outages, and settings of its own for each
// packet. One server with a single counter of ids has several clients.
type drawn struct {
	form    wire.Form
	clients int
	path    [2]sim.Path   // to the server, and back
	rate    [2]float64    // packets a second to each peer: of clients, of the server
	frame   time.Duration // of both
	first   uint16
	limit   time.Duration
	tap     machine.Vantage
	place   float64
	seconds int
}

func draw(seed uint64) drawn {
	rng := rand.New(rand.NewPCG(seed, 0x5e5d))
	pick := func(of ...float64) float64 { return of[rng.IntN(len(of))] }
	path := func() sim.Path {
		p := sim.Path{
			Delay:  time.Duration(1+rng.IntN(120)) * time.Millisecond,
			Jitter: time.Duration(pick(0, 0, 3, 30, 150)) * time.Millisecond,
			Loss:   pick(0, 0, 0.02, 0.2, 0.4), Duplicate: pick(0, 0, 0.05, 0.3), InOrder: rng.IntN(3) == 0,
		}
		switch rng.IntN(5) {
		case 0:
			p.Bursts = sim.Gilbert{ToBad: 0.01, ToGood: 0.08}
		case 1:
			p.Outages = []sim.Outage{{From: machine.Instant(time.Second), For: 400 * time.Millisecond, Every: 3 * time.Second}}
		}
		return p
	}
	d := drawn{
		form: wire.Form(rng.IntN(2)), clients: 1 + rng.IntN(4), path: [2]sim.Path{path(), path()},
		rate:  [2]float64{pick(2, 15, 40), pick(0.5, 10, 40)},
		frame: time.Duration(pick(5, 16, 33)) * time.Millisecond, first: uint16(pick(0, 32700, 9)),
		limit: time.Duration(pick(0, 0, 700)) * time.Millisecond,
		tap:   []machine.Vantage{machine.VantageA, machine.VantageB, machine.VantageBetween}[rng.IntN(3)],
		place: 0.1 + 0.8*rng.Float64(), seconds: 5,
	}
	return d
}

// run simulates the conditions. It returns the flow of the first client as a
// tap sees it. The scopes also see all other flows that pass that tap.
func (d *drawn) run(t *testing.T, seed uint64) *observed {
	t.Helper()
	w := sim.New(seed)
	p := wire.Default().In(d.form)
	end := machine.Instant(d.seconds) * machine.Instant(time.Second)
	addressOf := func(host int) wire.Address { return wire.Address{IP: [4]byte{10, 0, 0, byte(host)}, Port: 7000} }
	host := func(i int, side machine.Side, peers map[machine.Peer]int, rate float64) *sim.Host {
		e, err := endpoint.New(endpoint.Options{Profile: &p, Side: side, First: d.first, Self: addressOf(i), Limit: d.limit})
		if err != nil {
			t.Fatal(err)
		}
		app := func(f *sim.Frame) {
			if f.Number == 0 && d.form == wire.Proxied {
				for peer := range machine.Peer(len(peers)) {
					f.Do(endpoint.Introduce(peer, addressOf(peers[peer])))
				}
			}
			for peer := range machine.Peer(len(peers)) {
				if f.Now >= end || f.Rand.Float64() >= rate*d.frame.Seconds() {
					continue
				}
				r := srdp.Request{To: peer, Bytes: make([]byte, f.Rand.IntN(100)), Flags: uint8(f.Rand.IntN(4))}
				for i := range r.Bytes {
					r.Bytes[i] = byte(f.Rand.Uint32())
				}
				if f.Rand.IntN(2) == 0 {
					r.Repeats = uint8(1 + f.Rand.IntN(5))
				}
				if f.Rand.IntN(2) == 0 {
					r.Timeout = time.Duration(100+f.Rand.IntN(300)) * time.Millisecond
				}
				f.Do(r.Submit())
			}
		}
		return w.AddHost(fmt.Sprint("host ", i), e, sim.HostOptions{
			Frame: d.frame, Phase: time.Duration(i) * 3 * time.Millisecond, FrameJitter: d.frame / 20,
			ReadDelay: 100 * time.Microsecond, App: app, EventDriven: seed%2 == 0,
		})
	}
	clients := map[machine.Peer]int{}
	for i := range d.clients {
		clients[machine.Peer(i)] = i + 1
	}
	server := host(0, machine.B, clients, d.rate[1])
	o := &observed{truth: &sim.Truth{}}
	w.Watch(func(s *sim.Step) {
		// Of the server, keep what concerns the first client.
		for _, f := range s.Facts(nil) {
			if f.Host.Index <= 1 && f.Event.Peer == 0 {
				o.truth.Facts = append(o.truth.Facts, f)
			}
		}
	})
	place := map[machine.Vantage]float64{machine.VantageA: 0, machine.VantageBetween: d.place, machine.VantageB: 1}[d.tap]
	for i := range d.clients {
		l := w.Connect(host(i+1, machine.A, map[machine.Peer]int{0: 0}, d.rate[0]), server, d.path[0], d.path[1])
		l.Tap(place, func(s sim.Tapped) {
			// A tap at the first client does not see the other clients.
			if d.tap == machine.VantageA && i > 0 {
				return
			}
			from := machine.A
			if s.From == server {
				from = machine.B
			}
			o.seen = append(o.seen, machine.Datagram{
				At: s.At, Ref: machine.MakeRef(0, uint64(len(o.seen)+1)), From: from, Bytes: s.Bytes, Length: len(s.Bytes),
				Place: machine.Place{Number: int64(i)}, // which link; the scope overwrites it
			})
			if i == 0 {
				o.last[from] = s.At
			}
		})
	}
	if err := w.Run(end.Add(4 * time.Second)); err != nil {
		t.Fatal(err)
	}
	facts := machine.Facts{Vantage: d.tap, VantageReason: "told"}
	config := configFor(d.form)
	for range 2 {
		tr := tracker.New(config, facts)
		scopes := map[int]machine.Scope{}
		scope := func(host int) machine.Scope {
			if scopes[host] == nil {
				scopes[host] = tracker.NewCounter(&config.Profile)
			}
			return scopes[host]
		}
		o.events, o.anomalies, o.messages = nil, nil, nil
		var out machine.Effects
		take := func() {
			o.events = append(o.events, out.Events...)
			o.anomalies = append(o.anomalies, out.Anomalies...)
			o.messages = append(o.messages, out.Messages...)
			out.Reset()
		}
		for i := range o.seen {
			g := o.seen[i]
			link := int(g.Place.Number)
			who := 0
			if g.From == machine.A {
				who = link + 1
			}
			g.Place = scope(who).Observe(link+1, &g)
			if link == 0 {
				tr.Observe(&g, &out)
				take()
			}
		}
		tr.Finish(&out)
		take()
		facts = tr.Learned()
		o.tracker = tr
	}
	o.learned = facts
	return o
}

// TestSeeds compares flows under random conditions with the truth.
func TestSeeds(t *testing.T) {
	seeds := 40
	if text := os.Getenv("ACKSCOPE_SOAK"); text != "" {
		seeds, _ = strconv.Atoi(text)
	} else if testing.Short() {
		seeds = 8
	}
	for seed := range uint64(seeds) {
		d := draw(seed)
		t.Run(fmt.Sprintf("seed %d, %+v", seed, d), func(t *testing.T) {
			o := d.run(t, seed)
			o.hold(t, &conditions{form: d.form, tap: d.tap})
			o.holdMessages(t)
		})
	}
}

// holdMessages compares the lives of packets with the truth. What a sender at
// the tap did must be exact. What is said of other senders must not be false.
func (o *observed) holdMessages(t *testing.T) {
	t.Helper()
	copies, acked, got := map[fact]int{}, map[fact]machine.Instant{}, map[fact]int{}
	last, late := map[fact]machine.Instant{}, map[fact]bool{}
	for i := range o.truth.Facts {
		e := &o.truth.Facts[i].Event
		key := fact{side: e.Side, sequence: e.Sequence64}
		switch e.Kind {
		case machine.EventSent, machine.EventResent:
			copies[key]++
		case machine.EventAcked:
			acked[key] = o.truth.Facts[i].At
		case machine.EventReceived:
			key.side = e.Side.Other()
			got[key]++
			// A life that was quiet for long has ended, and was reported
			// without what happens to it later.
			late[key] = late[key] || got[key] > 1 && e.At.Sub(last[key]) > 1900*time.Millisecond
			last[key] = e.At
		}
	}
	wrong := 0
	fail := func(format string, args ...any) {
		if wrong++; wrong <= 6 {
			t.Errorf(format, args...)
		}
	}
	for i := range o.messages {
		m := &o.messages[i]
		key := fact{side: m.From, sequence: m.Sequence64}
		near := o.learned.Vantage.Near(m.From)
		at, heard := acked[key]
		switch {
		case near && m.Attempts != copies[key]:
			fail("%v's %d was sent %d times, and is told as %d", m.From, m.Sequence64, copies[key], m.Attempts)
		case near && heard && m.Acked != machine.Yes:
			fail("%v's %d was acknowledged at %v, and is told as %v", m.From, m.Sequence64, at, m.Acked)
		case m.Delivered == machine.Yes && got[key] == 0 && m.Certainty == machine.Certain:
			fail("%v's %d is told as delivered, and was not", m.From, m.Sequence64)
		case o.learned.Vantage.Near(m.From.Other()) && m.Delivered == machine.Yes && m.Deliveries != got[key] && !late[key]:
			fail("%v's %d was handed over %d times, and is told as %d", m.From, m.Sequence64, got[key], m.Deliveries)
		}
	}
}
