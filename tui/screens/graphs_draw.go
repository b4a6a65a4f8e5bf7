package screens

import (
	"math"
	"strings"

	"github.com/ackscope/ackscope/graph"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/scale"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/draw"
)

// panel is one graph of the view.
type panel struct {
	name  string
	unit  string
	kinds []graph.Kind
	rate  bool // show the sum of values in each second instead of their range
	whole bool // values are whole numbers
	share bool // values are shares of 1, shown in percent
}

// text formats a value of the panel.
func (p *panel) text(v float64) string {
	if p.share {
		return number(100*v) + "%"
	}
	return number(v)
}

var panels = []panel{
	{
		name: "sequence", kinds: []graph.Kind{graph.Sequence, graph.Acked, graph.Resent, graph.Lost}, whole: true,
	},
	{name: "RTT", unit: "ms", kinds: []graph.Kind{graph.RTT, graph.Smoothed}},
	{name: "arrival", unit: "ms", kinds: []graph.Kind{graph.Bounds, graph.Arrival}},
	{name: "in flight", unit: "packets", kinds: []graph.Kind{graph.InFlight}, whole: true},
	{name: "loss so far", unit: "of packets", kinds: []graph.Kind{graph.PathLoss, graph.Loss}, share: true},
	{name: "bandwidth", unit: "B/s", kinds: []graph.Kind{graph.Bandwidth}, rate: true},
	{name: "game frame", unit: "ms", kinds: []graph.Kind{graph.Frames}},
}

// lossRows is the least height of a view that has the loss too: each graph then has five rows.
const lossRows = 34

// graphLabel is the width of what stands left of a graph: its name, the figures at the cursor,
// and the ends of its axis.
const graphLabel = 16

// rateWindows is over how many windows a rate is averaged at most. Finer ones would show single
// packets instead of a rate: at 30 packets a second, a minute has 30 packets in each.
const rateWindows = 60

// stretch is the part of the series that is on screen.
type stretch struct {
	from, span int // cells
	end        int // the last cell that has passed
	cursor     int // column
}

// curve is one series of a panel, on screen.
type curve struct {
	kind graph.Kind
	side machine.Side
	at   []graph.Cell // by half columns; N is 0 where there is nothing
}

// curves returns the series of a panel over a number of half columns.
func (g *Graphs) curves(p *panel, x stretch, halves int) (list []curve) {
	for _, kind := range p.kinds {
		for _, side := range g.sides() {
			s := &g.series.Series[kind][side]
			if s.Cells == nil {
				continue
			}
			c := curve{kind: kind, side: side}
			if p.rate {
				c.at = g.rates(s, x, halves)
			} else {
				for i := range halves {
					from, to := x.from+i*x.span/halves, x.from+(i+1)*x.span/halves
					c.at = append(c.at, s.Join(from, max(to, from+1)))
				}
			}
			list = append(list, c)
		}
	}
	return list
}

// rates returns the sum of each window, for a second. A window that has not passed yet counts as
// long as it has lasted.
func (g *Graphs) rates(s *graph.Series, x stretch, halves int) []graph.Cell {
	out := make([]graph.Cell, halves)
	windows := min(rateWindows, max(halves/2, 1), x.span)
	for w := range windows {
		from, to := x.from+w*x.span/windows, x.from+(w+1)*x.span/windows
		if from > x.end {
			break
		}
		seconds := g.series.Step().Seconds() * float64(min(to, x.end+1)-from)
		rate := s.Join(from, to).Sum / max(seconds, 1e-9)
		for i := w * halves / windows; i < (w+1)*halves/windows; i++ {
			out[i] = graph.Cell{N: 1, Min: rate, Max: rate}
		}
	}
	return out
}

// sides returns the sides whose series are shown.
func (g *Graphs) sides() []machine.Side {
	return [][]machine.Side{{machine.A, machine.B}, {machine.A}, {machine.B}}[g.only]
}

// drawPanel draws one graph. The series of A and B have their own colours and end with their
// letters. The ends of the axis and the figures at the cursor are on the left.
func (g *Graphs) drawPanel(whole, plot draw.Canvas, p *panel, x stretch) {
	list := g.curves(p, x, 2*plot.W)
	low, high := math.Inf(1), math.Inf(-1)
	for _, c := range list {
		for i := range c.at {
			if c.at[i].N > 0 {
				low, high = min(low, c.at[i].Min), max(high, c.at[i].Max)
			}
		}
	}
	whole.Text(0, 0, draw.Title, p.name)
	for y := range plot.H {
		whole.Text(graphLabel-1, y, draw.Dim, "│")
	}
	if math.IsInf(low, 1) {
		g.drawNothing(plot, p)
		return
	}
	if p.kinds[0] != graph.Sequence {
		low = min(low, 0)
	}
	if high == low {
		high = low + 1
	}
	low, high, _ = graph.Axis(low, high, max(plot.H, 2), p.whole)
	y := func(v float64) int {
		return 4*plot.H - 1 - scale.Int(scale.Float((v-low)/(high-low)*float64(4*plot.H-1)))
	}
	g.drawStalls(plot, x)
	plot.Column(x.cursor, 0, plot.H)
	b := draw.NewBraille(plot.W, plot.H)
	for i := range list {
		list[i].line(b, y, p.rate, g.only == 0 && list[i].side == machine.B)
	}
	b.Paint(plot)
	letters, named := map[int]bool{}, [2]bool{}
	for i := range list {
		list[i].signs(plot, y)
		if row := list[i].ends(y); row >= 0 && !named[list[i].side] {
			// B's letter moves down if both series end in one line.
			if letters[row] {
				row = min(row+1, plot.H-1)
			}
			letters[row], named[list[i].side] = true, true
			whole.Text(whole.W-1, row, sideRole(list[i].side), strings.ToUpper(list[i].side.String()))
		}
	}
	whole.Right(graphLabel, 0, draw.Dim, p.text(high)+"┤")
	if plot.H > 1 {
		whole.Right(graphLabel, plot.H-1, draw.Dim, p.text(low)+"┤")
	}
	g.drawFigures(whole, p, list, x, plot.H)
}

// drawNothing says why a graph is empty.
func (g *Graphs) drawNothing(plot draw.Canvas, p *panel) {
	lines := []string{"nothing in this stretch"}
	if p.kinds[0] == graph.Frames && g.empty(graph.Frames) {
		lines = lines[:0]
		for _, text := range g.note {
			lines = append(lines, strings.Split(show.Wrap(text, "", plot.W-2), "\n")...)
		}
	}
	top := max((plot.H-len(lines))/2, 0)
	for i, text := range lines {
		if top+i < plot.H {
			plot.Text(1, top+i, draw.Dim, text)
		}
	}
}

// drawFigures writes the unit and the figure of each side at the cursor.
func (g *Graphs) drawFigures(whole draw.Canvas, p *panel, list []curve, x stretch, height int) {
	row := 1
	if p.unit != "" && height > 2+len(g.sides()) {
		whole.Text(0, row, draw.Dim, p.unit)
		row++
	}
	for _, side := range g.sides() {
		if at, ok := figure(list, side, 2*x.cursor); ok && row < height-1 {
			end := whole.Text(0, row, sideRole(side), strings.ToUpper(side.String())+" ")
			whole.Text(end, row, draw.Text, p.text(at.Max))
			row++
		}
	}
}

// drawStalls shades the longest pauses of the sides that are shown.
func (g *Graphs) drawStalls(plot draw.Canvas, x stretch) {
	for _, p := range g.stalls {
		from := (g.series.CellAt(p.Until.Add(-p.Took)) - x.from) * plot.W / x.span
		to := (g.series.CellAt(p.Until) - x.from) * plot.W / x.span
		for column := max(from, 0); column <= min(to, plot.W-1); column++ {
			for y := range plot.H {
				plot.Text(column, y, draw.Dim, "░")
			}
		}
	}
}

// line draws the curve's dots. Two windows of a rate are joined, since both last. A dotted curve has
// every other dot, so that two sides can be told apart without colours.
func (c *curve) line(b *draw.Braille, y func(float64) int, rate, dotted bool) {
	if seriesGlyphs[c.kind] != "" {
		return
	}
	before := -1
	for i := range c.at {
		if c.at[i].N == 0 {
			before = -1
			continue
		}
		from, to := y(c.at[i].Max), y(c.at[i].Min)
		if rate && before >= 0 {
			from = before
		}
		before = to
		every := int64(1)
		if dotted {
			every = 2
		}
		if from == to && i%int(every) != 0 {
			continue
		}
		role := seriesRole(c.kind, c.side)
		if c.kind == graph.PathLoss { // its ends: what is between them is most of the graph
			b.Line(int64(i), int64(from), int64(i), int64(from), role, 1)
			from = to
		}
		b.Line(int64(i), int64(from), int64(i), int64(to), role, every)
	}
}

// signs draws a curve of letters.
func (c *curve) signs(plot draw.Canvas, y func(float64) int) {
	if sign := seriesGlyphs[c.kind]; sign != "" {
		for i := range c.at {
			if c.at[i].N > 0 {
				plot.Text(i/2, y(c.at[i].Max)/4, seriesRole(c.kind, c.side), sign)
			}
		}
	}
}

// ends returns the line in which the curve ends; -1 for a curve of letters or without values.
func (c *curve) ends(y func(float64) int) int {
	for i := len(c.at) - 1; i >= 0 && seriesGlyphs[c.kind] == ""; i-- {
		if c.at[i].N > 0 {
			return y(c.at[i].Max) / 4
		}
	}
	return -1
}

// figure returns the value of a side at a half column, or near it: from one after it to eight
// before. It takes the first curve that has a value there.
func figure(list []curve, side machine.Side, at int) (graph.Cell, bool) {
	for i := range list {
		c := &list[i]
		if seriesGlyphs[c.kind] != "" || c.side != side {
			continue
		}
		for x := min(at+1, len(c.at)-1); x >= max(at-8, 0); x-- {
			if c.at[x].N > 0 {
				return c.at[x], true
			}
		}
	}
	return graph.Cell{}, false
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
