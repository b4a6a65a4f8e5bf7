// Package graph collects the records of a flow as series over time and as
// ladders. It draws series as SVG for reports and as text for terminals.
//
//	records -> Flow (series of cells) -> Plot (traces over columns) -> SVG, Text
//
// A series has a fixed number of cells, whatever the length of the flow. A cell
// keeps its smallest and its greatest value. So a column of a drawing, which
// joins several cells, never hides a peak.
package graph

import (
	"math"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/scale"
)

// Cells is the number of intervals of a series. So a flow of any length takes
// the same memory.
const Cells = 4096

// Cell summarises the values of one interval.
type Cell struct {
	N             uint32
	Min, Max, Sum float64
	Last          float64
	Ref           machine.Ref // the frame of the first value; 0 if it is not known
}

// Series is one figure of one side over a span of time.
type Series struct {
	Cells []Cell
}

func (s *Series) add(i int, v float64, ref machine.Ref) {
	if s.Cells == nil {
		s.Cells = make([]Cell, Cells)
	}
	c := &s.Cells[i]
	if c.N == 0 {
		c.Min, c.Max, c.Ref = v, v, ref
	}
	c.N++
	c.Min, c.Max, c.Sum, c.Last = min(c.Min, v), max(c.Max, v), c.Sum+v, v
}

// Join returns the cells of [from, to) as one.
func (s *Series) Join(from, to int) (out Cell) {
	for i := max(from, 0); i < min(to, len(s.Cells)); i++ {
		c := &s.Cells[i]
		if c.N == 0 {
			continue
		}
		if out.N == 0 {
			out.Min, out.Max, out.Ref = c.Min, c.Max, c.Ref
		}
		out.N += c.N
		out.Min, out.Max, out.Sum = min(out.Min, c.Min), max(out.Max, c.Max), out.Sum+c.Sum
		out.Last = c.Last
	}
	return out
}

// Kind is the kind of a figure.
type Kind uint8

const (
	Sequence  Kind = iota // of packets sent, unwrapped
	Acked                 // sequence that the side learned has arrived, unwrapped
	Lost                  // sequence that can no longer be acked, unwrapped
	Resent                // sequence of packets whose content was sent before, unwrapped
	RTT                   // samples in milliseconds, as the side took them
	InFlight              // packets sent whose fate is open; for the sequence numbers in Series only
	Bandwidth             // bytes on the wire; the sum is the figure
	Smoothed              // RTT in milliseconds, smoothed as in the side's own library
	Loss                  // share of lost packets, 0 to 1, as the side's own library computes it
	Headers               // bytes on the wire, by purpose: all headers, from the link layer to the protocol
	Acks                  // acknowledgements
	Again                 // application data that was sent again
	Goodput               // application data that was sent for the first time
	Arrival               // milliseconds from the first sending of a message to its arrival, as estimated
	Bounds                // the bounds of that
	Frames                // milliseconds that the game's frames took, as its own log says
	PathLoss              // bounds of the share of packets lost on the way, 0 to 1, of all packets so far
	Kinds
)

// Flow is the series of both sides of a flow.
type Flow struct {
	First, Last machine.Instant
	Series      [Kinds][2]Series
	// More holds the packets with separate sequence numbers (Event.Channel). The
	// first channel that is seen is in Series.
	More [2][]*Row

	rows   [2]rows
	pauses [2][]analyze.Pause // when nothing of a side was captured

	near    [2]bool // the tap sees the side's packets leave and their acks arrive
	located bool
}

// Row is the series of one channel with separate sequence numbers.
type Row struct {
	Channel uint8
	Series  [Resent + 1]Series // by Kind, Sequence to Resent
}

// rows is the packets of a side whose fate is open.
type rows struct {
	first uint8 // the channel whose series are in Flow.Series
	begun bool
	open  map[int64]open
}

type open struct {
	at     machine.Instant
	resent bool
}

// maxOpen bounds the packets with an open fate.
const maxOpen = 1 << 16

// NewFlow returns empty series of a flow over the time in which it has packets.
func NewFlow(first, last machine.Instant) *Flow {
	return &Flow{First: first, Last: max(last, first)}
}

// CellAt returns the index of the cell of an instant.
func (f *Flow) CellAt(at machine.Instant) int {
	return scale.Position(at, f.First, f.Last, Cells)
}

// Extend makes room for an instant after Last. The span doubles until it contains the instant,
// and two cells become one each time. So a live flow keeps all that was taken. A span of more
// than 146 years stays as it is.
func (f *Flow) Extend(at machine.Instant) {
	for f.Last < at && f.Last.Sub(f.First) < math.MaxInt64/2 {
		f.Last = f.Last.Add(f.Last.Sub(f.First) + 1) // CellAt has both ends inside
		for kind := range f.Series {
			for side := range f.Series[kind] {
				f.Series[kind][side].halve()
			}
		}
		for side := range f.More {
			for _, row := range f.More[side] {
				for kind := range row.Series {
					row.Series[kind].halve()
				}
			}
		}
	}
}

// halve joins the cells in pairs, into the first half of the series.
func (s *Series) halve() {
	for i := range s.Cells {
		if i < len(s.Cells)/2 {
			s.Cells[i] = s.Join(2*i, 2*i+2)
		} else {
			s.Cells[i] = Cell{}
		}
	}
}

// TimeOf returns the instant at which a cell begins.
func (f *Flow) TimeOf(cell int) machine.Instant {
	return f.First.Add(time.Duration(scale.MulDiv(int64(f.Last.Sub(f.First)), int64(cell), Cells)))
}

// Step returns the time that a cell covers.
func (f *Flow) Step() time.Duration { return f.Last.Sub(f.First) / Cells }

// Take adds a record.
func (f *Flow) Take(r *analyze.Record) {
	if r.Frame != nil && r.Index == 0 {
		f.Series[Bandwidth][r.Datagram.From].add(f.CellAt(r.Datagram.At), float64(r.Frame.Length), r.Frame.Ref)
	}
	if len(r.Events) > 0 && !f.located && r.Flow != nil {
		v := r.Flow.Facts().Vantage
		f.located, f.near = true, [2]bool{v.Near(machine.A), v.Near(machine.B)}
	}
	for i := range r.Events {
		f.event(&r.Events[i])
	}
	for i := range r.Messages {
		f.arrival(&r.Messages[i])
	}
}

// arrival adds how long a message took, at the time of its first sending.
func (f *Flow) arrival(m *machine.Message) {
	about := m.About()
	if about < 0 {
		return
	}
	at := f.CellAt(m.At)
	f.Series[Arrival][m.From].add(at, float64(about)/1e6, m.Frames[0])
	least, most, _ := m.Latency()
	f.Series[Bounds][m.From].add(at, float64(least)/1e6, m.Frames[0])
	f.Series[Bounds][m.From].add(at, float64(most)/1e6, m.Frames[0])
}

func (f *Flow) event(e *machine.Event) {
	kind := Sequence
	side := &f.rows[e.Side]
	// The capture may never show the fate of packets in other rows.
	counts := !side.begun || side.first == e.Channel
	switch e.Kind {
	case machine.EventSent:
		if side.open == nil {
			side.open = map[int64]open{}
		}
		if counts && len(side.open) < maxOpen {
			side.open[e.Sequence64] = open{at: e.At}
		}
	case machine.EventAcked:
		kind = Acked
		if counts {
			f.sample(e, side.open[e.Sequence64])
			delete(side.open, e.Sequence64)
		}
	case machine.EventLost:
		kind = Lost
		if counts {
			delete(side.open, e.Sequence64)
		}
	case machine.EventResent:
		kind = Resent
		if o, ok := side.open[e.Sequence64]; ok && counts {
			o.resent = true
			side.open[e.Sequence64] = o
		}
	default:
		return
	}
	at := f.CellAt(e.At)
	f.row(e.Side, e.Channel, kind).add(at, float64(e.Sequence64), e.Ref)
	if counts {
		f.Series[InFlight][e.Side].add(at, float64(len(side.open)), e.Ref)
	}
}

// sample adds a round-trip time. That is the side's own sample or, if its
// library takes none from acks, the time at the tap between a packet and its
// ack. A packet that was sent again yields no sample (Karn's rule).
func (f *Flow) sample(e *machine.Event, o open) {
	rtt := time.Duration(e.RTT)
	if rtt < 0 {
		if o.at == 0 || o.resent || !f.near[e.Side] || e.Channel != 0 {
			return // packets of other rows are acked only when their receiver next sends something
		}
		rtt = e.At.Sub(o.at)
	}
	f.Series[RTT][e.Side].add(f.CellAt(e.At), float64(rtt)/1e6, e.Ref)
}

// row returns the series of a kind and a channel.
func (f *Flow) row(side machine.Side, channel uint8, kind Kind) *Series {
	r := &f.rows[side]
	if !r.begun {
		r.begun, r.first = true, channel
	}
	if channel == r.first {
		return &f.Series[kind][side]
	}
	for _, x := range f.More[side] {
		if x.Channel == channel {
			return &x.Series[kind]
		}
	}
	x := &Row{Channel: channel}
	f.More[side] = append(f.More[side], x)
	return &x.Series[kind]
}

// Measure adds what is known at an instant. The side's own library computes the smoothed round-trip
// time and the loss. The capture bounds the loss on the way.
func (f *Flow) Measure(side machine.Side, at machine.Instant, s *machine.Summary) {
	i := f.CellAt(at)
	if s.RTT >= 0 {
		f.Series[Smoothed][side].add(i, float64(s.RTT)/1e6, 0)
	}
	if s.Loss >= 0 {
		f.Series[Loss][side].add(i, s.Loss, 0)
	}
	if least, most := s.Bounds.Share(); least >= 0 {
		f.Series[PathLoss][side].add(i, least, 0)
		f.Series[PathLoss][side].add(i, most, 0)
	}
}

// Spend adds bytes on the wire by purpose.
func (f *Flow) Spend(side machine.Side, at machine.Instant, headers, acks, again, goodput float64) {
	i := f.CellAt(at)
	for j, v := range [...]float64{headers, acks, again, goodput} {
		if v > 0 {
			f.Series[Headers+Kind(j)][side].add(i, v, 0)
		}
	}
}

// Frame adds a frame of the side's game, as its own log says, and how many milliseconds it took.
// Frames outside the flow's time are left out.
func (f *Flow) Frame(side machine.Side, at machine.Instant, ms float64) {
	if at >= f.First && at <= f.Last {
		f.Series[Frames][side].add(f.CellAt(at), ms, 0)
	}
}

// Pauses takes the longest pauses of both sides from the flow, at its end: times in which nothing of
// a side was captured. Its plots are shaded there.
func (f *Flow) Pauses(x *analyze.Flow) {
	for _, side := range []machine.Side{machine.A, machine.B} {
		f.pauses[side] = x.Pauses(side, f.pauses[side][:0])
	}
}
