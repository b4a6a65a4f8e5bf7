package endpoint_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/endpoint"
	"github.com/ackscope/ackscope/machine/gaffer/gaffertest"
	"github.com/ackscope/ackscope/machine/machinetest"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// naive is the ack system written without sequence buffers: maps keyed by unwrapped
// numbers. It forgets nothing; arithmetic decides what is too old.
type naive struct {
	window   int64 // both buffers' entries
	next     int64
	sentAt   map[int64]machine.Instant
	acked    map[int64]bool
	received map[int64]bool
	newest   int64 // -1 before the first
}

func newNaive(window int) *naive {
	return &naive{
		window: int64(window), sentAt: map[int64]machine.Instant{}, acked: map[int64]bool{},
		received: map[int64]bool{}, newest: -1,
	}
}

func (n *naive) send(now machine.Instant) wire.Header {
	h := wire.Header{Sequence: uint32(n.next & 0xffff), Ack: uint32(n.newest & 0xffff)}
	for i := range int64(32) {
		if n.received[n.newest-i] {
			h.AckBits |= 1 << i
		}
	}
	n.sentAt[n.next] = now
	n.next++
	return h
}

// arrive processes the peer's packet. The test knows the packet's true number, and the
// true numbers that its header named. It returns the packet's fate, and what it acked,
// from the newest back.
func (n *naive) arrive(packet int64, names []int64, now machine.Instant) (fate machine.EventKind, acked []int64) {
	if n.newest-packet >= n.window {
		return machine.EventStale, nil
	}
	if n.received[packet] {
		return machine.EventDuplicate, nil
	}
	n.received[packet] = true
	n.newest = max(n.newest, packet)
	for _, a := range names {
		if _, sent := n.sentAt[a]; sent && !n.acked[a] && n.next-1-a < n.window {
			n.acked[a] = true
			acked = append(acked, a)
		}
	}
	return machine.EventReceived, acked
}

// TestNaiveModel runs two endpoints and two naive ones through the same random traffic,
// over several wraps of the sequence.
func TestNaiveModel(t *testing.T) {
	for _, profile := range []string{"article", "reliable"} {
		t.Run(profile, func(t *testing.T) {
			for seed := range uint64(2) {
				againstNaive(t, profile, seed)
			}
		})
	}
}

type datagramInFlight struct {
	from   int
	packet int64
	names  []int64
	bytes  []byte
}

func againstNaive(t *testing.T, profile string, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 77))
	p := gaffertest.Builtin(profile)
	var real [2]*endpoint.Endpoint
	var model [2]*naive
	for i := range real {
		e, err := endpoint.New(endpoint.Options{
			Profile: p, Rules: gaffer.RulesOf(p), Side: machine.Side(i),
			EventClock: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		real[i], model[i] = e, newNaive(gaffer.RulesOf(p).Received)
	}
	// Loss changes every 1,500 packets: nearly none, or nearly all.
	var air []datagramInFlight
	var out machine.Effects
	parsed := new(wire.Packet)
	for now := machine.Instant(0); model[0].next < 70000; now++ {
		loss := []float64{0.02, 0.5, 0.99, 0.9995}[model[0].next/1500%4]
		if rng.IntN(2) == 0 || len(air) == 0 {
			i := rng.IntN(2)
			out.Reset()
			if err := real[i].Step(now, machine.Submit{}, &out); err != nil {
				t.Fatal(err)
			}
			want := model[i].send(now)
			got := out.Transmit[0].Bytes
			if err := p.Parse(got, len(got), parsed); err != nil || parsed.Header != want {
				t.Fatalf("seed %d, packet %d of side %d: header %+v (%v), expected %+v", seed, model[i].next-1, i,
					parsed.Header, err, want)
			}
			f := datagramInFlight{from: i, packet: model[i].next - 1, bytes: append([]byte(nil), got...)}
			for b := range int64(32) {
				if want.AckBits>>b&1 == 1 {
					f.names = append(f.names, model[i].newest-b)
				}
			}
			if rng.Float64() >= loss {
				air = append(air, f)
				if rng.IntN(20) == 0 {
					air = append(air, f)
				}
			}
			continue
		}
		// Usually in order, sometimes any datagram in flight, sometimes delayed for long.
		k := 0
		if rng.IntN(3) == 0 {
			k = rng.IntN(len(air))
		}
		if len(air) > 1 && rng.IntN(200) == 0 {
			air = append(air[1:], air[0])
			continue
		}
		f := air[k]
		air = append(air[:k], air[k+1:]...)
		to := 1 - f.from
		if model[f.from].next-f.packet > 30000 {
			continue // older than half the range: serial arithmetic cannot order it
		}
		fate, acked := model[to].arrive(f.packet, f.names, now)
		out.Reset()
		if err := real[to].Step(now, machine.Arrive{Bytes: f.bytes}, &out); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%v %d", fate, f.packet&0xffff)
		for _, a := range acked {
			want += fmt.Sprintf(" acked %d %v", a, now.Sub(model[to].sentAt[a]))
		}
		got := ""
		for _, e := range out.Events {
			if e.Kind == machine.EventAcked {
				got += fmt.Sprintf(" acked %d %v", e.Sequence64, time.Duration(e.RTT))
			} else {
				got += fmt.Sprintf("%v %d", e.Kind, e.Sequence)
			}
		}
		if got != want {
			t.Fatalf("seed %d, %d's packet %d arrives: %s, expected %s", seed, f.from, f.packet, got, want)
		}
	}
}

// TestFalseAcks shows the fault that the article warns of. A receiver that never clears
// old entries acks, after a wrap under 99 % loss, packets that it never got. It also
// shows that the remedy works.
func TestFalseAcks(t *testing.T) {
	for _, stale := range []bool{true, false} {
		p := gaffertest.Builtin("article")
		rules := *gaffer.RulesOf(p)
		rules.NoStaleClear = stale
		w := sim.New(5)
		accepted := [2]map[int64]bool{{}, {}}
		top := [2]int64{}
		falseAcks := 0
		var hosts [2]*sim.Host
		for i, name := range []string{"a", "b"} {
			e, err := endpoint.New(endpoint.Options{Profile: p, Rules: &rules, Side: machine.Side(i)})
			if err != nil {
				t.Fatal(err)
			}
			hosts[i] = w.AddHost(name, e, sim.HostOptions{Frame: 20 * time.Millisecond, App: func(f *sim.Frame) {
				for range 20 { // a packet a millisecond
					f.Do(machine.Submit{})
				}
			}})
		}
		w.Connect(hosts[0], hosts[1], sim.Path{Loss: 0.99, Delay: time.Millisecond},
			sim.Path{Loss: 0.9, Delay: time.Millisecond})
		w.Watch(func(s *sim.Step) {
			me, peer := s.Host.Index, 1-s.Host.Index
			for _, e := range s.Out.Events {
				switch e.Kind {
				case machine.EventSent:
					top[me] = e.Sequence64
				case machine.EventReceived:
					accepted[me][top[peer]-(top[peer]-int64(e.Sequence))&0xffff] = true
				case machine.EventAcked:
					if !accepted[peer][e.Sequence64] {
						falseAcks++
					}
				}
			}
		})
		if err := w.Run(machine.Instant(140 * time.Second)); err != nil { // two wraps
			t.Fatal(err)
		}
		t.Logf("first listing %v: %d false acks among %d packets", stale, falseAcks, top[0])
		if stale && falseAcks == 0 {
			t.Error("the article's first listing told no false acks over two wraps at 99 % loss, expected some")
		}
		if !stale && falseAcks > 0 {
			t.Errorf("%d false acks with the remedy in place", falseAcks)
		}
	}
}

// TestEndpointLaws runs the laws of machinetest over both endpoints of a simulation.
func TestEndpointLaws(t *testing.T) {
	for seed := range uint64(8) {
		s := gaffertest.DrawSoak(seed)
		s.Seconds = 2
		journal, err := s.Record(seed)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			var script []machinetest.Timed
			for _, e := range journal.Entries {
				if e.Host == i {
					script = append(script, machinetest.Timed{At: e.At, In: e.In})
				}
			}
			t.Run(fmt.Sprintf("seed %d side %d %s", seed, i, s.Profile), func(t *testing.T) {
				machinetest.Endpoint(t, func() machine.Endpoint {
					e, err := endpoint.New(s.Endpoint(machine.Side(i)))
					if err != nil {
						t.Fatal(err)
					}
					return e
				}, script)
			})
		}
	}
}
