package sim

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/ackscope/ackscope/agenda"
	"github.com/ackscope/ackscope/machine"
)

// World holds the hosts, the links and the virtual clock of one run. Its time
// is 0 at the start of the run.
type World struct {
	seed     uint64
	now      machine.Instant
	queue    agenda.Agenda[machine.Instant, func()]
	hosts    []*Host
	watchers []func(*Step)
	err      error // of an endpoint; it ends the run
	trouble  error // of an application
}

// Step is one input that a host's endpoint took, with its effects. It is valid
// only during the watcher's call.
type Step struct {
	At   machine.Instant
	Host *Host // nil outside a World
	In   machine.Input
	Out  *machine.Effects
}

// New returns an empty world. The same seed and the same setup produce the same
// run.
func New(seed uint64) *World { return &World{seed: seed} }

// Seed returns the seed of the run.
func (w *World) Seed() uint64 { return w.seed }

// Now returns the virtual time.
func (w *World) Now() machine.Instant { return w.now }

// Hosts returns the hosts in the order in which they were added.
func (w *World) Hosts() []*Host { return w.hosts }

// Watch calls f after every step of every host, in order.
func (w *World) Watch(f func(*Step)) { w.watchers = append(w.watchers, f) }

// Rand returns the stream of random numbers for name in this run.
func (w *World) Rand(name string) *rand.Rand { return Rand(w.seed, name) }

// Rand returns the stream of random numbers for name in the runs of a seed.
func Rand(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()     // not machine.Digest, since the runs of a seed must not change
	h.Write([]byte(name)) // never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// Run runs the world up to and including the given instant. An endpoint's error
// ends the run.
func (w *World) Run(until machine.Instant) error {
	for w.err == nil {
		at, ok := w.queue.Next()
		if !ok || at > until {
			break
		}
		w.now = at
		w.queue.Take()()
	}
	if w.err == nil && until > w.now {
		w.now = until
	}
	return errors.Join(w.err, w.trouble)
}

// at schedules f for instant t; calls at the same instant keep their order.
func (w *World) at(t machine.Instant, f func()) { w.queue.Add(max(t, w.now), f) }

func (w *World) fail(h *Host, in machine.Input, err error) {
	if w.err == nil {
		w.err = fmt.Errorf("seed %d, %s at %v: %T: %w", w.seed, h.Name, w.now.Sub(0), in, err)
	}
}
