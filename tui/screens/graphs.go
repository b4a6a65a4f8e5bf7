package screens

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/graph"
	"github.com/ackscope/ackscope/machine"
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
	taken  machine.Instant // the newest packet in the series
	stalls []analyze.Pause
	only   int // 0 for both sides, 1 for A, 2 for B
	work   *store.Collect
	drawn  bool     // the frames of the game are in the series
	note   []string // why there are none, for people

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
	if f == nil || f.ID == g.flow {
		return
	}
	g.work.End()
	*g = Graphs{scrubber: g.scrubber, flow: f.ID, scale: g.scale, only: g.only}
	if f.Protocol == nil || f.Protocol.NewTracker == nil {
		return
	}
	g.series = graph.NewFlow(f.First, f.Last)
	g.work = br.Store.Collect(f, -1, g.take, func() {
		g.series, g.taken, g.drawn = graph.NewFlow(f.First, f.Last), 0, false
	})
}

// take adds a step of the flow to the series.
func (g *Graphs) take(r *analyze.Record, tracker machine.Tracker) bool {
	g.taken = max(g.taken, r.Datagram.At)
	g.series.Extend(g.taken)
	g.series.Take(r)
	if g.steps++; g.steps%smoothedEvery == 0 && r.Frame != nil {
		for _, side := range []machine.Side{machine.A, machine.B} {
			summary := tracker.Summary(side)
			g.series.Measure(side, r.Datagram.At, &summary)
		}
	}
	return true
}

// end returns the right edge of the graphs. While a capture grows, that is its newest packet: a
// flow that fell silent is empty up to there.
func (g *Graphs) end(br *browser.Browser) machine.Instant {
	end := g.series.Last
	if f := br.Store.Flow(g.flow); f != nil {
		end = f.Last
	}
	if br.Store.Growing() {
		end = max(end, br.Store.Last())
	}
	g.series.Extend(end)
	return end
}

// findStalls finds the longest pauses of the sides that are shown.
func (g *Graphs) findStalls(br *browser.Browser) {
	g.stalls = g.stalls[:0]
	if f := br.Store.Flow(g.flow); f != nil {
		for _, side := range g.sides() {
			g.stalls = f.Pauses(side, g.stalls)
		}
	}
}

// gatherLag is how far the series may lie behind the capture. A walk takes the packets of some
// screens at once, so it is always a little behind a live capture.
const gatherLag = 2 * time.Second

// gathering reports whether packets of the flow are still to be added.
func (g *Graphs) gathering(br *browser.Browser) bool {
	if g.work.Over() {
		return false
	}
	f := br.Store.Flow(g.flow)
	return f == nil || !br.Store.Growing() || f.Last.Sub(g.taken) > gatherLag
}

// panels returns the graphs of the flow. Where its messages are not known, nothing is said of
// their arrival. Without logs of the game, nothing is said of its frames. The loss needs a large
// screen.
func (g *Graphs) panels(br *browser.Browser, rows int) []panel {
	return slices.DeleteFunc(slices.Clone(panels), func(p panel) bool {
		switch p.kinds[0] {
		case graph.Bounds:
			return g.empty(graph.Arrival)
		case graph.Frames:
			return !br.Store.HasLogs()
		case graph.PathLoss:
			return rows < lossRows || g.empty(graph.PathLoss) && g.empty(graph.Loss)
		default:
			return false
		}
	})
}

// empty reports whether neither side has a value of a kind.
func (g *Graphs) empty(k graph.Kind) bool {
	return g.series.Series[k][machine.A].Cells == nil && g.series.Series[k][machine.B].Cells == nil
}

// drawLogs adds the frames of the game once the flow and the logs are read.
func (g *Graphs) drawLogs(br *browser.Browser) {
	f := br.Store.Flow(g.flow)
	if !br.Store.HasLogs() || g.drawn || f == nil {
		return
	}
	logs := br.Store.Logs()
	if logs == nil || !g.work.Over() {
		g.note = []string{"drawn when the whole capture is read"}
		return
	}
	g.drawn = true
	logs.Draw(f, g.series)
	g.note = logs.NoFrames(f)
	switch none := g.empty(graph.Frames); {
	case none && len(g.note) == 0:
		g.note = []string{"the log has no frames in the time of the flow"}
	case !none && len(g.note) > 0:
		br.Say("%s", strings.Join(g.note, "; "))
	}
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
	end := g.end(br)
	g.drawLogs(br)
	// The cells of the series on screen; they contain the cursor.
	whole := s.CellAt(end) + 1
	span := max(whole>>g.scale, 1)
	from := min(max(s.CellAt(now)-span/2, 0), whole-span)
	if g.scale == 0 {
		from = 0
	}
	left, right := s.TimeOf(from), min(s.TimeOf(from+span), end) // a cell may be longer than the packets in it
	title := fmt.Sprintf("%s of flow %d over %v", [...]string{"A and B", "A", "B"}[g.only], g.flow,
		right.Sub(left).Round(time.Millisecond))
	if g.only == 0 {
		title += ", B dotted"
	}
	if g.gathering(br) {
		title += ", being gathered"
	}
	g.findStalls(br)
	if c.W >= 100 {
		title += "   x lost  r sent again"
		if len(g.stalls) > 0 {
			title += "  ░ pause"
		}
	}
	c.Rule(0, title, true)
	plot := c.Part(graphLabel, 1, c.W-graphLabel-2, c.H-2) // each series ends with its letter
	panels := g.panels(br, c.H)
	each := max(plot.H/len(panels), 3)
	x := stretch{from, span, s.CellAt(end), (s.CellAt(now) - from) * plot.W / span}
	for i := range panels {
		height := each
		if i == len(panels)-1 {
			height = plot.H - each*i
		}
		if each*i+height > plot.H || height < 2 {
			break
		}
		g.drawPanel(c.Part(0, 1+each*i, c.W, height), plot.Part(0, each*i, plot.W, height), &panels[i], x)
	}
	foot := c.Part(0, c.H-1, c.W, 1)
	foot.Text(graphLabel, 0, draw.Dim, fmt.Sprintf("+%.3f s", left.Sub(br.Store.First()).Seconds()))
	foot.Right(c.W-1, 0, draw.Dim, fmt.Sprintf("+%.3f s", right.Sub(br.Store.First()).Seconds()))
	if plot.W < 40 {
		return // the name has no room between the times
	}
	at := graphLabel + min(max(x.cursor-6, 12), plot.W-26)
	foot.Text(at, 0, draw.Focus, fmt.Sprintf("▲ frame %s", br.SelectedFrame()))
}
