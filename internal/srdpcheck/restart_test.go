package srdpcheck

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp/endpoint"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// restart is when the endpoints of some roles end, and begin anew on the same
// port. They know nothing of before then, and number from the start.
type restart struct {
	at    machine.Instant
	down  time.Duration // the port has no reader
	roles [2]bool       // by sim.Role
}

// mortal is an endpoint that ends once. Another one takes its place.
type mortal struct {
	machine.Endpoint
	next     func(now machine.Instant, out *machine.Effects) (machine.Endpoint, error) // nil once it has begun
	ends, up machine.Instant
}

// Step implements machine.Endpoint. What arrives or is submitted in between is
// lost.
func (m *mortal) Step(now machine.Instant, in machine.Input, out *machine.Effects) (err error) {
	switch {
	case now >= m.ends && now < m.up:
		return nil
	case now >= m.up && m.next != nil:
		if m.Endpoint, err = m.next(now, out); err != nil {
			return err
		}
		m.next = nil
	}
	return m.Endpoint.Step(now, in, out)
}

// Deadline implements machine.Endpoint.
func (m *mortal) Deadline() (machine.Instant, bool) {
	due, ok := m.Endpoint.Deadline()
	if ok && m.next != nil && due >= m.ends {
		return m.up, true
	}
	return due, ok
}

// mortal returns an endpoint that ends and begins as the scenario says.
func (s *scenario) mortal(p *wire.Profile, e *end, build func() (machine.Endpoint, error)) (machine.Endpoint, error) {
	first, err := build()
	r := s.restart
	if err != nil || r == nil || !r.roles[e.role] {
		return first, err
	}
	return &mortal{
		Endpoint: first, ends: r.at, up: r.at.Add(r.down),
		next: func(now machine.Instant, out *machine.Effects) (machine.Endpoint, error) {
			x, err := build()
			if err != nil || e.second || p.Form != wire.Proxied {
				return x, err
			}
			for n, peer := range e.talk.peers {
				a, _ := wire.AddressOf(peer)
				if err = x.Step(now, endpoint.Introduce(machine.Peer(n), a), out); err != nil {
					return nil, err
				}
			}
			return x, nil
		},
	}, nil
}

// TestRestart ends endpoints in the middle of a run, and begins them anew on the
// same port. That is no fault of either side: no divergence and no finding about
// it may be certain. Events are not compared with the log. A new process may have
// forgotten what it received, and no packet says so.
func TestRestart(t *testing.T) {
	var sum partTally
	for _, seed := range seeds(16, 300) {
		s := draw(seed)
		if s.path.Delay < time.Millisecond {
			continue
		}
		rng := rand.New(rand.NewPCG(seed, 8))
		s.restart = &restart{
			at:    machine.Instant(time.Second + time.Duration(rng.IntN(4000))*time.Millisecond),
			down:  []time.Duration{0, 30 * time.Millisecond, 400 * time.Millisecond}[rng.IntN(3)],
			roles: [][2]bool{sim.Client: {true, false}, sim.Server: {false, true}, 2: {true, true}}[rng.IntN(3)],
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			o := s.simulate(t)
			sum.add(o.holdPart(t, s, &part{
				name: fmt.Sprintf("restart %+v", *s.restart), whole: true, accusations: true,
				keep: func(int) bool { return true },
			}))
		})
	}
	t.Logf("restarts: %v", &sum)
}
