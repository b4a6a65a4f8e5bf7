// Package graph turns what a walk over a flow tells into series over time and
// into ladders: figures and places only, for the terminal and for reports alike.
//
// Ring 4 of the house. It draws nothing.
package graph

import (
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// Cells is how many stretches of time a series has. A flow of any length takes
// the same memory.
const Cells = 4096

// Cell is what fell into one stretch.
type Cell struct {
	N             uint32
	Min, Max, Sum float64
}

// Series is one figure of one side over a span of time.
type Series struct {
	Cells []Cell
}

func (s *Series) add(i int, v float64) {
	if s.Cells == nil {
		s.Cells = make([]Cell, Cells)
	}
	c := &s.Cells[i]
	if c.N == 0 {
		c.Min, c.Max = v, v
	}
	c.N++
	c.Min, c.Max, c.Sum = min(c.Min, v), max(c.Max, v), c.Sum+v
}

// Join gives the cells of [from, to) as one.
func (s *Series) Join(from, to int) (out Cell) {
	for i := max(from, 0); i < min(to, len(s.Cells)); i++ {
		c := &s.Cells[i]
		if c.N == 0 {
			continue
		}
		if out.N == 0 {
			out.Min, out.Max = c.Min, c.Max
		}
		out.N += c.N
		out.Min, out.Max, out.Sum = min(out.Min, c.Min), max(out.Max, c.Max), out.Sum+c.Sum
	}
	return out
}

// Kind names a figure.
type Kind uint8

const (
	Sequence  Kind = iota // of packets sent, unwrapped
	Acked                 // sequence that the side learned to have arrived, unwrapped
	Lost                  // sequence that can no longer be acked, unwrapped
	Resent                // sequence of packets whose content was sent before, unwrapped
	RTT                   // samples in milliseconds, as the side took them
	InFlight              // packets sent whose fate is open
	Bandwidth             // bytes on the wire; the sum is what counts
	Kinds
)

// Flow is the series of both sides of a flow.
type Flow struct {
	First, Last machine.Instant
	Series      [Kinds][2]Series
	flight      [2]float64
	newest      [2]int64
	begun       [2]bool
}

// NewFlow begins the series of a flow over the time in which it has packets.
func NewFlow(first, last machine.Instant) *Flow {
	return &Flow{First: first, Last: max(last, first)}
}

// CellAt says in which cell an instant lies.
func (f *Flow) CellAt(at machine.Instant) int {
	span := int64(f.Last-f.First) + 1
	// In floating point, since a capture of a day has more nanoseconds than fit times Cells.
	return min(max(int(float64(at-f.First)/float64(span)*Cells), 0), Cells-1)
}

// TimeOf gives the instant at which a cell begins.
func (f *Flow) TimeOf(cell int) machine.Instant {
	return f.First + machine.Instant(float64(f.Last-f.First)*float64(cell)/Cells)
}

// Step gives the time that a cell stands for.
func (f *Flow) Step() time.Duration { return time.Duration(f.Last-f.First) / Cells }

// Take adds what a record tells.
func (f *Flow) Take(r *analyze.Record) {
	if r.Frame != nil && r.Index == 0 {
		f.Series[Bandwidth][r.Datagram.From].add(f.CellAt(r.Datagram.At), float64(r.Frame.Length))
	}
	for i := range r.Events {
		e := &r.Events[i]
		at := f.CellAt(e.At)
		switch e.Kind {
		case machine.EventSent:
			if !f.begun[e.Side] || e.Sequence64 > f.newest[e.Side] {
				f.begun[e.Side], f.newest[e.Side] = true, e.Sequence64
				f.flight[e.Side]++
			}
			f.Series[Sequence][e.Side].add(at, float64(e.Sequence64))
		case machine.EventAcked:
			f.flight[e.Side] = max(f.flight[e.Side]-1, 0)
			f.Series[Acked][e.Side].add(at, float64(e.Sequence64))
			if e.RTT >= 0 {
				f.Series[RTT][e.Side].add(at, float64(e.RTT)/1e6)
			}
		case machine.EventLost:
			f.flight[e.Side] = max(f.flight[e.Side]-1, 0)
			f.Series[Lost][e.Side].add(at, float64(e.Sequence64))
		case machine.EventResent:
			f.Series[Resent][e.Side].add(at, float64(e.Sequence64))
		default:
			continue
		}
		f.Series[InFlight][e.Side].add(at, f.flight[e.Side])
	}
}
