package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/ackscope/ackscope/machine"
)

// World holds the hosts and links of one run and its virtual clock. The zero
// of its time is the start of the run.
type World struct {
	seed     uint64
	now      machine.Instant
	queue    agenda
	hosts    []*Host
	watchers []func(*Step)
	err      error
}

// Step is one input that a host's endpoint took, and what came of it. It is
// the watcher's during the call only.
type Step struct {
	At   machine.Instant
	Host *Host
	In   machine.Input
	Out  *machine.Effects
}

// New gives an empty world. The same seed and the same building steps give the
// same run.
func New(seed uint64) *World { return &World{seed: seed} }

// Seed gives the seed of the run.
func (w *World) Seed() uint64 { return w.seed }

// Now gives the virtual time.
func (w *World) Now() machine.Instant { return w.now }

// Hosts gives the hosts in the order in which they were added.
func (w *World) Hosts() []*Host { return w.hosts }

// Watch has f called after every step of every host, in order.
func (w *World) Watch(f func(*Step)) { w.watchers = append(w.watchers, f) }

// Rand gives the stream of random numbers that belongs to name in this run.
func (w *World) Rand(name string) *rand.Rand { return Rand(w.seed, name) }

// Rand gives the stream of random numbers that belongs to name in the runs of a
// seed.
func Rand(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name)) // never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// Run moves the world on until the given instant: everything due before it or
// at it has happened. An endpoint's error ends the run.
func (w *World) Run(until machine.Instant) error {
	for w.err == nil && w.queue.len() > 0 && w.queue.first().at <= until {
		e := w.queue.pop()
		w.now = e.at
		e.do()
	}
	if w.err == nil && until > w.now {
		w.now = until
	}
	return w.err
}

// at has f called at instant t; calls of one instant keep their order.
func (w *World) at(t machine.Instant, f func()) { w.queue.push(max(t, w.now), f) }

func (w *World) fail(h *Host, in machine.Input, err error) {
	if w.err == nil {
		w.err = fmt.Errorf("seed %d, %s at %v: %T: %w", w.seed, h.Name, w.now.Sub(0), in, err)
	}
}

// agenda is a binary heap of what is due, by time and then by order of entry.
type agenda struct {
	due   []entry
	count uint64
}

type entry struct {
	at    machine.Instant
	order uint64
	do    func()
}

func (a *agenda) len() int      { return len(a.due) }
func (a *agenda) first() *entry { return &a.due[0] }

func (a *agenda) before(i, j int) bool {
	if a.due[i].at != a.due[j].at {
		return a.due[i].at < a.due[j].at
	}
	return a.due[i].order < a.due[j].order
}

func (a *agenda) push(at machine.Instant, do func()) {
	a.count++
	a.due = append(a.due, entry{at, a.count, do})
	for i := len(a.due) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.before(i, up) {
			break
		}
		a.due[i], a.due[up] = a.due[up], a.due[i]
		i = up
	}
}

func (a *agenda) pop() entry {
	top, last := a.due[0], len(a.due)-1
	a.due[0], a.due[last] = a.due[last], entry{}
	a.due = a.due[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && a.before(child+1, child) {
			child++
		}
		if !a.before(child, i) {
			break
		}
		a.due[i], a.due[child] = a.due[child], a.due[i]
		i = child
	}
	return top
}
