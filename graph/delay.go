package graph

import (
	"math"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Delays are the outcomes of one direction's packets between two taps, over
// time.
type Delays struct {
	span   Flow
	delay  Series // in milliseconds
	lost   Series
	copies Series
}

// NewDelays returns an empty series over the time in which packets passed.
func NewDelays(first, last machine.Instant) *Delays {
	return &Delays{span: Flow{First: first, Last: last}}
}

// Crossed adds a packet with its delay from tap to tap. ref is its frame at the
// first tap.
func (d *Delays) Crossed(at machine.Instant, delay time.Duration, ref machine.Ref) {
	d.delay.add(d.span.CellAt(at), float64(delay)/1e6, ref)
}

// Lost adds a packet that was lost between the taps.
func (d *Delays) Lost(at machine.Instant, ref machine.Ref) { d.lost.add(d.span.CellAt(at), 0, ref) }

// Copied adds a copy that was made between the taps.
func (d *Delays) Copied(at machine.Instant, delay time.Duration, ref machine.Ref) {
	d.copies.add(d.span.CellAt(at), float64(delay)/1e6, ref)
}

// Plot draws them over at most columns columns.
func (d *Delays) Plot(title string, columns int) *Plot {
	p := d.span.plot("delay", title, "ms",
		"How long packets took from one place of capture to the other, by the time at the first. A cross at the bottom is "+
			"a packet that the second never had, a plus a copy that was made on the way.", columns)
	p.add(Trace{Name: "delay", Class: "raw", Shape: Bars, Points: d.span.points(&d.delay, columns)})
	p.add(Trace{Name: "doubled", Class: "again", Shape: Marks, Sign: "+", Points: d.span.points(&d.copies, columns)})
	crosses := d.span.points(&d.lost, columns)
	for i := range crosses { // at the bottom of the plot
		crosses[i].Low, crosses[i].High = min(0, finite(p.Low)), min(0, finite(p.Low))
	}
	p.add(Trace{Name: "lost", Class: "lost", Shape: Marks, Sign: "×", Bare: true, Points: crosses})
	return p.done(true)
}

func finite(v float64) float64 {
	if math.IsInf(v, 0) {
		return 0
	}
	return v
}
