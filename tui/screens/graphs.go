package screens

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/graph"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/scale"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// Graphs shows the figures of a flow over time. The cursor is at the selected
// packet.
type Graphs struct {
	flow   int
	series *graph.Flow
	scale  int // the whole flow is magnified 1 << scale times
	steps  int
	only   int // 0 for both sides, 1 for A, 2 for B
	work   *store.Collect

	scrubber
}

// Zoom magnifies the graphs, or shrinks them when by is negative.
func (g *Graphs) Zoom(by int) { g.scale = min(max(g.scale+by, 0), 8) }

// smoothedEvery is how many packets pass between two samples of a side's
// smoothed RTT.
const smoothedEvery = 4

// ensure starts to collect the series of the flow in focus.
func (g *Graphs) ensure(br *browser.Browser) {
	f := br.Focus()
	if f == nil || f.ID == g.flow && (g.series == nil || g.series.Last >= f.Last || g.work == nil || !g.work.Done()) {
		return
	}
	g.work.End()
	*g = Graphs{scrubber: g.scrubber, flow: f.ID, scale: g.scale, only: g.only, series: graph.NewFlow(f.First, f.Last)}
	if f.Protocol == nil || f.Protocol.NewTracker == nil {
		g.series = nil
		return
	}
	g.work = br.Store.Collect(f, -1, g.take, func() { g.series = graph.NewFlow(f.First, max(f.Last, g.series.Last)) })
}

// take adds a step of the flow to the series.
func (g *Graphs) take(r *analyze.Record, tracker machine.Tracker) bool {
	g.series.Take(r)
	if g.steps++; g.steps%smoothedEvery == 0 && r.Frame != nil {
		for _, side := range []machine.Side{machine.A, machine.B} {
			summary := tracker.Summary(side)
			g.series.Measure(side, r.Datagram.At, &summary)
		}
	}
	return true
}

// panel is one graph of the view.
type panel struct {
	name  string
	unit  string
	kinds []graph.Kind
	sum   bool // show the sum of a column's values instead of their range
}

var panels = []panel{
	{"sequence", "", []graph.Kind{graph.Sequence, graph.Acked, graph.Resent, graph.Lost}, false},
	{"RTT", "ms", []graph.Kind{graph.RTT, graph.Smoothed}, false},
	{"arrival", "ms", []graph.Kind{graph.Bounds, graph.Arrival}, false},
	{"in flight", "packets", []graph.Kind{graph.InFlight}, false},
	{"bandwidth", "B/s", []graph.Kind{graph.Bandwidth}, true},
}

// panels returns the graphs of the flow. Where its messages are not known, nothing is said of
// their arrival.
func (g *Graphs) panels() []panel {
	return slices.DeleteFunc(slices.Clone(panels), func(p panel) bool {
		arrival := &g.series.Series[graph.Arrival]
		return p.kinds[0] == graph.Bounds && arrival[0].Cells == nil && arrival[1].Cells == nil
	})
}

// NextSide switches between both sides, A alone, and B alone.
func (g *Graphs) NextSide() { g.only = (g.only + 1) % 3 }

// Draw draws the graphs below each other. The time is at the bottom.
func (g *Graphs) Draw(br *browser.Browser, c draw.Canvas) {
	g.ensure(br)
	if g.series == nil {
		c.Text(2, 1, draw.Dim, store.ErrNoFlow.Error())
		return
	}
	s := g.series
	now := s.First
	if n := br.Selected; n >= 0 && n < br.Store.Len() {
		now = br.Store.TimeAt(n)
	}
	// The cells of the series on screen; they contain the cursor.
	span := graph.Cells >> g.scale
	from := min(max(s.CellAt(now)-span/2, 0), graph.Cells-span)
	if g.scale == 0 {
		from = 0
	}
	title := fmt.Sprintf("%s of flow %d over %v", [...]string{"A and B", "A", "B"}[g.only], g.flow,
		s.TimeOf(from+span).Sub(s.TimeOf(from)).Round(time.Millisecond))
	if !g.work.Done() {
		title += ", being gathered"
	}
	if c.W >= 100 {
		title += "   x lost  r sent again"
	}
	c.Rule(0, title, true)
	label := 12
	plot := c.Part(label, 1, c.W-label-2, c.H-2) // each series ends with its letter
	panels := g.panels()
	each := max(plot.H/len(panels), 3)
	cursor := (s.CellAt(now) - from) * plot.W / span
	for i := range panels {
		height := each
		if i == len(panels)-1 {
			height = plot.H - each*i
		}
		if each*i+height > plot.H || height < 2 {
			break
		}
		g.drawPanel(c.Part(0, 1+each*i, c.W, height), plot.Part(0, each*i, plot.W, height), &panels[i], from, span, cursor)
	}
	foot := c.Part(0, c.H-1, c.W, 1)
	foot.Text(label, 0, draw.Dim, fmt.Sprintf("+%.3f s", s.TimeOf(from).Sub(br.Store.First()).Seconds()))
	foot.Right(c.W-1, 0, draw.Dim, fmt.Sprintf("+%.3f s", s.TimeOf(from+span).Sub(br.Store.First()).Seconds()))
	if plot.W < 40 {
		return // the name has no room between the times
	}
	x := label + min(max(cursor-6, 12), plot.W-26)
	foot.Text(x, 0, draw.Focus, fmt.Sprintf("▲ frame %s", br.SelectedFrame()))
}

// drawPanel draws one graph. The series of A and B have their own colours and
// end with their letters. The range and the figures at the cursor are on the
// left.
func (g *Graphs) drawPanel(whole, plot draw.Canvas, p *panel, from, span, cursor int) {
	low, high := math.Inf(1), math.Inf(-1)
	column := func(k graph.Kind, side machine.Side, x int) graph.Cell {
		a, b := from+x*span/(2*plot.W), from+(x+1)*span/(2*plot.W)
		c := g.series.Series[k][side].Join(a, max(b, a+1))
		if p.sum && c.N > 0 {
			seconds := g.series.Step().Seconds() * float64(max(b-a, 1))
			c.Max = c.Sum / max(seconds, 1e-9)
			c.Min = c.Max
		}
		return c
	}
	sides := [][]machine.Side{{machine.A, machine.B}, {machine.A}, {machine.B}}[g.only]
	for x := range 2 * plot.W {
		for _, k := range p.kinds {
			for _, side := range sides {
				if c := column(k, side, x); c.N > 0 {
					low, high = min(low, c.Min), max(high, c.Max)
				}
			}
		}
	}
	whole.Text(0, 0, draw.Title, p.name)
	if math.IsInf(low, 1) {
		plot.Text(1, plot.H/2, draw.Dim, "nothing in this stretch")
		return
	}
	if p.kinds[0] != graph.Sequence {
		low = min(low, 0)
	}
	if high == low {
		high = low + 1
	}
	b := draw.NewBraille(plot.W, plot.H)
	letters, named := map[int]bool{}, [2]bool{}
	y := func(v float64) int {
		return 4*plot.H - 1 - scale.Int(scale.Float((v-low)/(high-low)*float64(4*plot.H-1)))
	}
	for _, k := range p.kinds {
		for _, side := range sides {
			if seriesGlyphs[k] != "" {
				continue
			}
			last := -1
			for x := range 2 * plot.W {
				c := column(k, side, x)
				if c.N == 0 {
					continue
				}
				last = y(c.Max)
				b.Line(int64(x), int64(last), int64(x), int64(y(c.Min)), seriesRole(k, side), 1)
			}
			if last >= 0 && !named[side] {
				named[side] = true
				// The side's letter stands where its series ends. B's letter moves down
				// if both end there.
				row := last / 4
				if letters[row] {
					row = min(row+1, plot.H-1)
				}
				letters[row] = true
				whole.Text(whole.W-1, row, sideRole(side), strings.ToUpper(side.String()))
			}
		}
	}
	plot.Column(cursor, 0, plot.H)
	b.Paint(plot)
	for _, k := range p.kinds {
		for _, side := range sides {
			for x := range 2 * plot.W {
				if c := column(k, side, x); seriesGlyphs[k] != "" && c.N > 0 {
					plot.Text(x/2, y(c.Max)/4, seriesRole(k, side), seriesGlyphs[k])
				}
			}
		}
	}
	whole.Text(0, 1, draw.Dim, strings.TrimSpace(number(high)+" "+p.unit))
	// The figure of each side at the cursor.
	row := 2
	for _, side := range sides {
		at := g.figure(p, side, func(k graph.Kind, x int) graph.Cell { return column(k, side, x) }, 2*cursor)
		if at.N > 0 && row < plot.H-1 {
			x := whole.Text(0, row, sideRole(side), strings.ToUpper(side.String())+" ")
			whole.Text(x, row, draw.Text, number(at.Max))
			row++
		}
	}
	if plot.H > 2 {
		whole.Text(0, plot.H-1, draw.Dim, number(low))
	}
}

// figure returns the value at a column, or near it: from one column after it to
// eight before. It takes the first series of the panel that has a value there.
func (g *Graphs) figure(p *panel, side machine.Side, column func(graph.Kind, int) graph.Cell, at int) (c graph.Cell) {
	for _, k := range p.kinds {
		if seriesGlyphs[k] != "" || g.series.Series[k][side].Cells == nil {
			continue
		}
		for x := at + 1; x >= max(at-8, 0); x-- {
			if c = column(k, x); c.N > 0 {
				return c
			}
		}
	}
	return c
}

// seriesGlyphs are the letters of series that are drawn as letters, since
// colour alone must not carry meaning.
var seriesGlyphs = [graph.Kinds]string{graph.Lost: "x", graph.Resent: "r"}

func seriesRole(k graph.Kind, side machine.Side) draw.Role {
	switch k {
	case graph.Lost:
		return draw.Error
	case graph.Resent:
		return draw.Warn
	case graph.Acked:
		return draw.Good
	}
	return sideRole(side)
}
