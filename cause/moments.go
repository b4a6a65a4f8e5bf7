package cause

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// together is how far apart the ends of pauses lie at most that count as one moment. A side
// that goes on after a stall sends to all its players within a frame or two. A round trip is
// measured each half second, so its rises may lie two samples apart.
// Source: definition, common cause: a moment of pauses is a few frames of 33 ms
const (
	pausesTogether = int64(100 * time.Millisecond)
	risesTogether  = int64(1500 * time.Millisecond)
)

// momentsMost is how many moments one capture shows at most.
const momentsMost = 32

// moment is one time at which several flows had an event.
type moment struct {
	from, to machine.Instant // of the ends
	flows    []int32         // indexes, in order
	took     int64           // the longest event
	frame    machine.Ref     // that ended the first
}

// happening is an event of a flow.
type happening struct {
	at   int64
	flow int32
	took int64
	ref  machine.Ref
}

// scan looks for moments among the events of some flows.
type scan struct {
	flows  []Flow
	width  int64
	sets   []set
	of     [][]int32 // the sets of each flow
	span   float64   // of the capture, in nanoseconds
	window *window
}

// set are the events of the flows of one group, or of all. Few flows that pause together are
// more of a surprise in a small group than among all.
type set struct {
	events   []happening
	expected float64 // by chance, within the width
}

// moments finds the moments at which more flows have an event than chance explains, in order
// of time. Chance shifts each flow's events by a time of its own, within the life of the flow.
// It also returns how often chance explains the least of them.
func moments(flows []Flow, list []group, of func(*Flow) []Event, width int64) (found []moment, p float64) {
	var all []happening
	for i := range flows {
		for _, e := range of(&flows[i]) {
			all = append(all, happening{int64(e.Until), int32(i), e.Took, e.Frame})
		}
	}
	if len(all) < groupLeast {
		return nil, 1
	}
	all = longest(all)
	sortHappenings(all)
	s := newScan(flows, list, all, width)
	parts, score := s.best(all)
	if len(parts) == 0 {
		return nil, 1
	}
	maxima := s.shifted(all)
	for len(found) < momentsMost && len(parts) > 0 {
		q := rarity(score, maxima, scoreSpread)
		if q > surprise {
			break
		}
		p = max(p, q)
		for _, x := range parts {
			if 2*x.score < parts[0].score {
				break // it may be chance
			}
			begin, end := between(all, x.from, x.to)
			if end-begin < groupLeast {
				continue // another part took its events
			}
			found = append(found, newMoment(all[begin:end]))
			all = slices.Delete(all, begin, end)
		}
		parts, score = s.best(all)
	}
	slices.SortFunc(found, func(x, y moment) int { return cmp.Compare(x.from, y.from) })
	return found, p
}

// scoreSpread is the least spread of a score under chance, where few events make few values.
const scoreSpread = 0.5

// eventsMost bounds the events that are compared. Of more, the longest stay.
// Source: bound, time of a verdict on many flows
const eventsMost = 200_000

// longest returns the longest events, at most eventsMost.
func longest(list []happening) []happening {
	if len(list) <= eventsMost {
		return list
	}
	slices.SortStableFunc(list, func(x, y happening) int { return cmp.Compare(y.took, x.took) })
	return list[:eventsMost]
}

func sortHappenings(list []happening) {
	slices.SortFunc(list, func(x, y happening) int {
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.flow, y.flow))
	})
}

func newScan(flows []Flow, list []group, all []happening, width int64) *scan {
	s := &scan{flows: flows, width: width, sets: make([]set, 1+len(list)), window: newWindow(len(flows))}
	s.of = make([][]int32, len(flows))
	first, last := flows[0].First, flows[0].Last
	for i := range flows {
		s.of[i] = []int32{0}
		first, last = min(first, flows[i].First), max(last, flows[i].Last)
	}
	for g := range list {
		for _, f := range list[g].flows {
			s.of[f] = append(s.of[f], int32(g+1))
		}
	}
	s.span = max(1, float64(last.Sub(first)))
	for _, h := range all {
		for _, g := range s.of[h.flow] {
			s.sets[g].expected += float64(width) / s.span
		}
	}
	return s
}

// between returns the part of a sorted list from one time to another, both included.
func between(list []happening, from, to int64) (begin, end int) {
	begin, _ = slices.BinarySearchFunc(list, from, func(h happening, at int64) int { return cmp.Compare(h.at, at) })
	end, _ = slices.BinarySearchFunc(list, to+1, func(h happening, at int64) int { return cmp.Compare(h.at, at) })
	return begin, end
}

// part is a part of time in which several flows had an event.
type part struct {
	from, to int64
	score    float64 // logarithm of the likelihood ratio of Poisson counts
}

// partsMost is how many moments of one set count together. A flow keeps as many pauses.
const partsMost = 4

// best returns the most surprising parts of time of one set, the best first, and how
// surprising they are together. A cause that comes again is a greater surprise than one moment.
// The result is empty if no part has three flows.
func (s *scan) best(all []happening) (best []part, score float64) {
	for i := range s.sets {
		s.sets[i].events = s.sets[i].events[:0]
	}
	for _, h := range all {
		for _, g := range s.of[h.flow] {
			s.sets[g].events = append(s.sets[g].events, h)
		}
	}
	var parts [partsMost]part
	for i := range s.sets {
		x, n, sum := &s.sets[i], 0, 0.0
		for n < partsMost && len(x.events) >= groupLeast {
			begin, end, count := s.window.fullest(x.events, s.width)
			c := float64(count)
			if count < groupLeast || c <= x.expected {
				break
			}
			parts[n] = part{x.events[begin].at, x.events[end-1].at, c*math.Log(c/x.expected) - c + x.expected}
			sum += parts[n].score
			n++
			x.events = slices.Delete(x.events, begin, end)
		}
		if sum > score {
			best, score = append(best[:0], parts[:n]...), sum
		}
	}
	return best, score
}

// shifted returns the most surprising score of each round of chance.
func (s *scan) shifted(all []happening) []float64 {
	chance, moved := newChance(), make([]happening, len(all))
	maxima, shift := make([]float64, rounds), make([]float64, len(s.flows))
	if len(all) > fewEvents {
		maxima = maxima[:roundsOfMany]
	}
	for r := range maxima {
		for i := range shift {
			shift[i] = chance.Float64()
		}
		for i, h := range all {
			f := &s.flows[h.flow]
			first, span := float64(f.First), math.Max(1, float64(f.Last.Sub(f.First)))
			place := math.Mod((float64(h.at)-first)/span+shift[h.flow], 1)
			if place < 0 {
				place++
			}
			moved[i] = happening{at: int64(first + place*span), flow: h.flow}
		}
		sortHappenings(moved)
		_, maxima[r] = s.best(moved)
	}
	return maxima
}

// window counts the different flows in a part of a list.
type window struct{ inside []int32 } // events by flow

func newWindow(flows int) *window { return &window{make([]int32, flows)} }

// fullest returns the part of the sorted list that has the most different flows within width.
func (w *window) fullest(list []happening, width int64) (from, to, count int) {
	for i := range list {
		w.inside[list[i].flow] = 0
	}
	start, now := 0, 0
	for i := range list {
		if w.inside[list[i].flow]++; w.inside[list[i].flow] == 1 {
			now++
		}
		for list[i].at-list[start].at > width {
			if w.inside[list[start].flow]--; w.inside[list[start].flow] == 0 {
				now--
			}
			start++
		}
		if now > count {
			from, to, count = start, i+1, now
		}
	}
	return from, to, count
}

func newMoment(list []happening) moment {
	m := moment{from: machine.Instant(list[0].at), to: machine.Instant(list[len(list)-1].at), frame: list[0].ref}
	for _, h := range list {
		m.flows = append(m.flows, h.flow)
		m.took = max(m.took, h.took)
	}
	slices.Sort(m.flows)
	m.flows = slices.Compact(m.flows)
	return m
}

// alive reports which flows lived through a moment. Only these could have shown it.
func (m *moment) alive(flows []Flow) []bool {
	list := make([]bool, len(flows))
	for i := range flows {
		list[i] = flows[i].First < m.from && flows[i].Last > m.to
	}
	for _, i := range m.flows {
		list[i] = true
	}
	return list
}

// blame returns the group that describes the flows of a moment best, and how many of its
// flows that lived were affected. The description is the shortest: the bits that say which
// flows of the group and which outside were affected, and which group it is. The result is nil
// if no group makes it shorter by ten bits than no group does.
func (m *moment) blame(flows []Flow, list []group) (best *group, hit, of int) {
	alive := m.alive(flows)
	lived := 0
	for _, a := range alive {
		if a {
			lived++
		}
	}
	total := len(m.flows)
	affected := make([]bool, len(flows))
	for _, i := range m.flows {
		affected[i] = true
	}
	name := math.Log2(float64(len(list) + 1))
	least := math.Inf(1)
	for i := range list {
		in, n := 0, 0
		for _, x := range list[i].flows {
			if alive[x] {
				n++
			}
			if affected[x] {
				in++
			}
		}
		if in < groupLeast || 2*in < n || 2*in < total {
			continue // most of the group, and most of the affected
		}
		if outside := lived - n; outside > 0 && 2*(total-in)*n > in*outside {
			continue // the others are affected half as often or more
		}
		cost := bitsFor(in, n) + bitsFor(total-in, lived-n) + name
		if cost < least {
			least, best, hit, of = cost, &list[i], in, n
		}
	}
	if best != nil && of < lived && least+blameBits > bitsFor(total, lived) {
		return nil, 0, 0
	}
	return best, hit, of
}

// blameBits is how much shorter a group must make the description: chance makes it 10 bits
// shorter once in a thousand.
// Source: definition, common cause: a group explains a moment if chance does so once in 1,000
const blameBits = 10

// bitsFor returns how many bits say which n of all flows were affected, at their own rate.
func bitsFor(n, all int) float64 {
	if n <= 0 || n >= all {
		return 0
	}
	p := float64(n) / float64(all)
	return float64(all) * -(p*math.Log2(p) + (1-p)*math.Log2(1-p))
}
