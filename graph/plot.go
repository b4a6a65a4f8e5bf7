package graph

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// Names of the plots of a flow, as in command lines.
const (
	TimeSequence = "timeseq"
	RoundTrip    = "rtt"
	Window       = "window"
	Spent        = "bandwidth"
	Arrivals     = "arrival"
	FrameTimes   = "frames"
)

// Names lists them in the order of reports.
var Names = []string{TimeSequence, RoundTrip, Arrivals, Window, Spent, FrameTimes}

// Shape is how a trace is drawn.
type Shape uint8

const (
	Bars   Shape = iota // a bar from the smallest to the greatest value of each column
	Steps               // a line that stays at a value until the next point
	Levels              // the same, with a bar from the smallest to the greatest value of each column
	Line                // from point to point, through the middle of each column
	Marks               // a sign at each point
	Area                // a filled range from Low to High: stacked amounts
	Band                // a range from Low to High that each column may lie in
	Shade               // the whole height of each column, behind the other traces
)

// Point is one column of a trace.
type Point struct {
	At        float64 // seconds since the plot's First
	Low, High float64
	Last      float64     // the newest value
	N         uint32      // number of values in the column
	Ref       machine.Ref // the frame of the first value; 0 if it is not known
}

// Trace is one line of a plot.
type Trace struct {
	Name   string // for the legend
	Class  string // for colours: sent, acked, again, lost, raw, smooth, flight, loss, goodput, acks, headers, pause
	Shape  Shape
	Sign   string // of marks: one character
	Bare   bool   // of marks and shades: their height has no meaning
	Points []Point
}

// Plot is one drawing without a format: it says what to draw where, but not
// how.
type Plot struct {
	Name   string
	Title  string
	Unit   string // of the values; for "%" the values are fractions of 1
	Doc    string // description for readers who do not know such graphs, or cannot see them
	First  machine.Instant
	Span   float64       // seconds
	Column time.Duration // time that one column covers
	Low    float64
	High   float64
	Step   float64 // between ticks; 0 if there is nothing to draw
	Traces []Trace
	Whole  bool // values are whole numbers
	Joined bool // columns hold more than one value, and show the smallest and the greatest
}

// Empty reports whether there is nothing to draw.
func (p *Plot) Empty() bool { return len(p.Traces) == 0 }

// Plots returns the plots of a name for a side, with at most columns columns. They are shaded where
// nothing of the side was captured.
func (f *Flow) Plots(name string, side machine.Side, columns int) []*Plot {
	plots := f.plots(name, side, columns)
	for _, p := range plots {
		f.shade(p, side, columns)
	}
	return plots
}

func (f *Flow) plots(name string, side machine.Side, columns int) []*Plot {
	switch name {
	case TimeSequence:
		plots := []*Plot{
			f.timeSequence(side, columns, "",
				[4]*Series{&f.Series[Sequence][side], &f.Series[Acked][side], &f.Series[Resent][side], &f.Series[Lost][side]}),
		}
		for _, r := range f.More[side] { // some types of packets have sequence numbers of their own
			plots = append(plots,
				f.timeSequence(side, columns, ", in a row of their own",
					[4]*Series{&r.Series[Sequence], &r.Series[Acked], &r.Series[Resent], &r.Series[Lost]}))
		}
		return plots
	case RoundTrip:
		return []*Plot{f.roundTrip(side, columns)}
	case Window:
		plots := []*Plot{f.inFlight(side, columns)}
		if loss := f.lossShare(side, columns); !loss.Empty() {
			plots = append(plots, loss)
		}
		return plots
	case Arrivals:
		return []*Plot{f.arrivals(side, columns)}
	case Spent:
		return []*Plot{f.spent(side, columns)}
	case FrameTimes:
		return []*Plot{f.frameTimes(side, columns)}
	}
	return nil
}

func (f *Flow) plot(name, title, unit, doc string, columns int) *Plot {
	return &Plot{
		Name: name, Title: title, Unit: unit, Doc: doc, First: f.First, Span: max(f.Last.Sub(f.First).Seconds(), 1e-9),
		Column: f.Last.Sub(f.First) / time.Duration(min(columns, Cells)),
		Low:    math.Inf(1), High: math.Inf(-1),
	}
}

// points joins the cells of a series to columns.
func (f *Flow) points(s *Series, columns int) (out []Point) {
	if s.Cells == nil {
		return nil
	}
	columns = min(columns, Cells)
	span := f.Last.Sub(f.First).Seconds()
	for i := range columns {
		from, to := i*Cells/columns, (i+1)*Cells/columns
		if c := s.Join(from, to); c.N > 0 {
			out = append(out, Point{
				At: span * float64(from+to) / 2 / Cells, Low: c.Min, High: c.Max, Last: c.Last,
				N: c.N, Ref: c.Ref,
			})
		}
	}
	return out
}

// add adds a trace to the plot if it has points, and extends the range of
// values.
func (p *Plot) add(t Trace) {
	if len(t.Points) == 0 {
		return
	}
	for i := range t.Points {
		x := &t.Points[i]
		p.Low, p.High = min(p.Low, x.Low), max(p.High, x.High)
		p.Joined = p.Joined || x.N > 1
	}
	p.Traces = append(p.Traces, t)
}

// done completes the range of the values.
func (p *Plot) done(zero bool) *Plot {
	if p.Empty() {
		p.Low, p.High = 0, 1
		return p
	}
	if zero {
		p.Low = min(p.Low, 0)
	}
	if p.High <= p.Low {
		p.High = p.Low + 1
	}
	p.Low, p.High, p.Step = Axis(p.Low, p.High, axisTicks, p.Whole)
	return p
}

// axisTicks is about how many values the axis of a plot has.
const axisTicks = 5

func sideWord(side machine.Side) string {
	if side == machine.A {
		return "A"
	}
	return "B"
}

// timeSequence is tcptrace's time-sequence graph: what was sent when, and up to
// which sequence number the sender knew that it had arrived.
func (f *Flow) timeSequence(side machine.Side, columns int, which string, s [4]*Series) *Plot {
	p := f.plot(TimeSequence, "Time–sequence, "+sideWord(side)+" sends"+which, "",
		"Each packet that the side sent, by time and sequence number; the line is the newest one that the side knew to "+
			"have arrived. What stands above the line was on its way; a flat line is a stall.", columns)
	p.Whole = true
	p.add(Trace{Name: "sent", Class: "sent", Shape: Bars, Points: f.points(s[0], columns)})
	line := f.points(s[1], columns)
	top := math.Inf(-1)
	for i := range line {
		top = max(top, line[i].High)
		line[i].Low, line[i].High, line[i].Last = top, top, top
	}
	p.add(Trace{Name: "acked up to", Class: "acked", Shape: Steps, Points: line})
	p.add(Trace{Name: "sent again", Class: "again", Shape: Marks, Sign: "R", Points: f.points(s[2], columns)})
	p.add(Trace{Name: "lost", Class: "lost", Shape: Marks, Sign: "×", Points: f.points(s[3], columns)})
	return p.done(false)
}

func (f *Flow) roundTrip(side machine.Side, columns int) *Plot {
	p := f.plot(RoundTrip, "Round-trip time of "+sideWord(side)+"'s packets", "ms",
		"Each sample is the time from a packet to its ack, as the side measured it. Where its library measures none, it is "+
			"the time between both in the capture. The line is what the library smooths and sets its timers by.", columns)
	p.add(Trace{Name: "samples", Class: "raw", Shape: Bars, Points: f.points(&f.Series[RTT][side], columns)})
	p.add(Trace{Name: "smoothed", Class: "smooth", Shape: Line, Points: f.points(&f.Series[Smoothed][side], columns)})
	return p.done(true)
}

func (f *Flow) arrivals(side machine.Side, columns int) *Plot {
	p := f.plot(Arrivals, "Arrival of "+sideWord(side)+"'s messages", "ms",
		"How long each message took from its first sending to its arrival, by the time of that sending. The band is what "+
			"the capture proves: not less, not more. The line is the estimate.", columns)
	p.add(Trace{Name: "bounds", Class: "raw", Shape: Band, Points: f.points(&f.Series[Bounds][side], columns)})
	p.add(Trace{Name: "estimate", Class: "smooth", Shape: Line, Points: f.points(&f.Series[Arrival][side], columns)})
	return p.done(true)
}

func (f *Flow) inFlight(side machine.Side, columns int) *Plot {
	p := f.plot(Window, "In flight from "+sideWord(side), "packets",
		"Packets that the side had sent and whose fate it did not know yet. A cross is a packet that can no longer be acked.",
		columns)
	p.Whole = true
	flight := f.points(&f.Series[InFlight][side], columns)
	p.add(Trace{Name: "in flight", Class: "flight", Shape: Levels, Points: flight})
	var lost []Point
	i := 0
	for _, x := range f.points(&f.Series[Lost][side], columns) {
		for i+1 < len(flight) && flight[i+1].At <= x.At {
			i++
		}
		x.Low, x.High = 0, 0
		if i < len(flight) {
			x.Low, x.High = flight[i].High, flight[i].High
		}
		lost = append(lost, x)
	}
	p.add(Trace{Name: "lost", Class: "lost", Shape: Marks, Sign: "×", Points: lost})
	return p.done(true)
}

func (f *Flow) lossShare(side machine.Side, columns int) *Plot {
	p := f.plot("loss", "Loss of "+sideWord(side)+"'s packets", "%",
		"The share of its packets that did not reach the peer. The band is what the capture proves of all packets up to "+
			"then: not less, not more. The line is what the side holds for lost, as its own library computes it.", columns)
	p.add(Trace{Name: "bounds so far", Class: "raw", Shape: Band, Points: f.points(&f.Series[PathLoss][side], columns)})
	estimate := f.points(&f.Series[Loss][side], columns)
	p.add(Trace{Name: "the library's estimate", Class: "loss", Shape: Line, Points: estimate})
	if p.High < 0.01 && !p.Empty() {
		p.High = 0.01 // hardly any loss: the axis ends at 1 %
	}
	return p.done(true)
}

// shade shades the longest times in which nothing of the side was captured.
func (f *Flow) shade(p *Plot, side machine.Side, columns int) {
	if p.Empty() {
		return
	}
	columns = min(columns, Cells)
	if p.Name == Spent {
		columns = min(columns, SpentColumns)
	}
	var points []Point
	for i := range columns {
		from, to := i*Cells/columns, (i+1)*Cells/columns
		if slices.ContainsFunc(f.pauses[side], func(x analyze.Pause) bool {
			return f.CellAt(x.Until.Add(-x.Took)) < to && f.CellAt(x.Until) >= from
		}) {
			at := p.Span * float64(from+to) / 2 / Cells
			points = append(points, Point{At: at, Low: p.Low, High: p.High, Last: p.High, N: 1})
		}
	}
	if len(points) > 0 { // first, so that it is behind the others
		p.Traces = slices.Insert(p.Traces, 0, Trace{
			Name: "nothing captured", Class: "pause", Shape: Shade, Bare: true, Points: points,
		})
	}
}

// frameTimes draws how long the frames of the side's game took.
func (f *Flow) frameTimes(side machine.Side, columns int) *Plot {
	p := f.plot(FrameTimes, "Frames of "+sideWord(side)+"'s game", "ms",
		"How long each frame of the game took, as its own log says. Where it is shaded, nothing of the side was captured.",
		columns)
	p.add(Trace{Name: "frame", Class: "raw", Shape: Bars, Points: f.points(&f.Series[Frames][side], columns)})
	return p.done(true)
}

// SpentColumns is the largest number of columns that bandwidth is averaged
// over. Finer columns would show single packets instead of a rate.
const SpentColumns = 120

func (f *Flow) spent(side machine.Side, columns int) *Plot {
	columns = min(columns, SpentColumns)
	p := f.plot(Spent, "Bandwidth from "+sideWord(side), "B/s", "", columns)
	p.Doc = fmt.Sprintf("Bytes on the wire each second, averaged over %s, by what they were for: headers are all of "+
		"them, from the link's to the protocol's.", Length(p.Column))
	base := make([]float64, columns)
	for _, x := range []struct {
		kind        Kind
		name, class string
	}{
		{Goodput, "goodput", "goodput"},
		{Again, "sent again", "again"},
		{Acks, "acks", "acks"},
		{Headers, "headers", "headers"},
	} {
		s := &f.Series[x.kind][side]
		if s.Cells == nil {
			continue
		}
		span := p.Span
		var points []Point
		some := false
		for i := range columns {
			from, to := i*Cells/columns, (i+1)*Cells/columns
			c := s.Join(from, to)
			rate := c.Sum / (span * float64(to-from) / Cells)
			some = some || c.N > 0
			points = append(points,
				Point{At: span * float64(from+to) / 2 / Cells, Low: base[i], High: base[i] + rate, N: min(c.N, 1)})
			base[i] += rate
		}
		if some {
			p.add(Trace{Name: x.name, Class: x.class, Shape: Area, Points: points})
		}
	}
	return p.done(true)
}
