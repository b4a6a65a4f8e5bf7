package screens

import (
	"fmt"
	"slices"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/graph"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/scale"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// Ladder shows the packets between both endpoints around the selected one. Time
// runs down. row is the time that one row covers.
type Ladder struct {
	row    time.Duration // 0 until the first drawing
	flow   int
	reader *store.Reader

	scrubber
}

// ladderSteps are the zoom levels.
var ladderSteps = []time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond,
	5 * time.Millisecond, 10 * time.Millisecond,
	20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second,
}

// Zoom shortens the time that a row covers, or lengthens it when by is
// negative.
func (l *Ladder) Zoom(by int) {
	for i, d := range ladderSteps {
		if d >= l.row {
			l.row = ladderSteps[min(max(i-by, 0), len(ladderSteps)-1)]
			return
		}
	}
}

// arrows returns the packets of the flow near an entry. It returns false if the
// drawing's share of steps ended before it had found all of them.
func arrows(br *browser.Browser, f *analyze.Flow, entry int, from, to machine.Instant,
	oneWay time.Duration,
) (out []graph.Arrow, all bool) {
	const most = 400 // in each direction: no screen has room for more
	vantage := f.Facts().Vantage
	add := func(n int) bool {
		at := br.Store.TimeAt(n)
		if at < from.Add(-scale.Mul(oneWay, 2)) || at > to.Add(scale.Mul(oneWay, 2)) {
			return false
		}
		e := br.Store.Entry(n)
		if e.Marks.Duplicate() {
			return true
		}
		a := graph.Arrow{
			Entry: n, From: e.Marks.From(), Tap: at, Fate: e.Marks.Fate(), Settled: e.Settled,
			Resend: e.Marks.Has(machine.EventResent),
		}
		graph.Place(&a, vantage, oneWay)
		out = append(out, a)
		return true
	}
	add(entry)
	all = true
	for _, way := range []int{-1, 1} {
		for n, i := entry, 0; i < most; i++ {
			next, how := br.Store.Beside(f, n, way)
			all = all && how != store.StepLater
			if n = next; how != store.StepFound || !add(n) {
				break
			}
		}
	}
	return out, all
}

// Draw draws both endpoints as lines, and packets as arrows between them.
// Arrows of lost packets end half way. The packets that the selected one
// settles are highlighted.
func (l *Ladder) Draw(br *browser.Browser, c draw.Canvas) {
	f := br.Focus()
	n := br.Selected
	if f == nil || n < 0 || n >= br.Store.Len() {
		c.Text(2, 1, draw.Dim, "no flow here")
		return
	}
	oneWay, known := graph.OneWay(f)
	if l.row == 0 || l.flow != f.ID {
		l.flow, l.row = f.ID, 2*time.Millisecond
		for _, d := range ladderSteps {
			if l.row = d; scale.Mul(d, int64(c.H)) > scale.Mul(oneWay/2, 5) && d >= time.Millisecond {
				break
			}
		}
		l.row = thin(br, f, n, l.row, c.H-2)
	}
	rows := c.H - 2
	label := 16
	if c.W < 100 {
		label = 12
	}
	title := fmt.Sprintf("ladder of flow %d, %v a row", f.ID, l.row)
	if !known {
		title += ", flat: the way's length is not known"
	}
	defer func() { c.Rule(0, title, true) }()
	width := c.W - 2*label
	if width < 10 || rows < 3 {
		return
	}
	c.Text(label-2, 1, draw.SideA, "A "+f.A.String())
	c.Right(label+width+2, 1, draw.SideB, f.B.String()+" B")
	now := br.Store.TimeAt(n)
	from := now.Add(-scale.Mul(l.row, int64(rows)) / 2)
	to := from.Add(scale.Mul(l.row, int64(rows)))
	// y counts dots from the first row. A packet years away has a position far
	// off the screen.
	y := func(t machine.Instant) int64 { return scale.MulDiv(int64(t.Sub(from)), 4, int64(l.row)) }
	row := func(dots int64) int { return 2 + scale.Int(min(max(dots/4, -3), int64(rows))) } // -3 is above the head
	b := draw.NewBraille(width-2, rows)
	area := c.Part(label+1, 2, width-2, rows)
	c.Column(label, 2, rows)
	c.Column(label+width-1, 2, rows)
	if known && oneWay > to.Sub(from) {
		title += ", the way takes " + show.Wait(oneWay) + ": more than fits here"
	}
	list, all := arrows(br, f, n, from, to, oneWay)
	if !all {
		title += ", only the nearest packets: the flow's others lie too far away in the file"
	}
	type text struct {
		x, y int
		role draw.Role
		s    string
		left bool
	}
	var texts []text
	// Later arrows cover earlier ones: the selected packet comes last.
	slices.SortStableFunc(list, func(x, y graph.Arrow) int { return weightOf(&x, n) - weightOf(&y, n) })
	for i := range list {
		a := &list[i]
		x0, x1 := int64(0), int64(2*b.W-1)
		if a.From == machine.B {
			x0, x1 = x1, x0
		}
		r := draw.Dim
		switch {
		case a.Entry == n:
			r = draw.Focus
		case a.Settled == n:
			r = draw.Good
		case a.Fate == analyze.FateLost:
			r = draw.Error
		case a.Resend:
			r = draw.Warn
		}
		y0, y1 := y(a.Leaves), y(a.Arrives)
		if a.Fate == analyze.FateLost {
			xm, ym := x0+(x1-x0)*3/5, scale.Add(y0, scale.MulDiv(scale.Sub(y1, y0), 3, 5))
			b.Line(x0, y0, xm, ym, r, 2)
			texts = append(texts, text{label + 1 + int(xm/2), row(ym), r, "✗", true})
		} else {
			b.Line(x0, y0, x1, y1, r, 1)
		}
		s := br.Store.FrameAt(a.Entry)
		if a.Entry == n {
			s = "▶" + s
		}
		if a.Settled == n {
			s = "✓" + s
		}
		head := row(y0)
		if y0 < 0 || head >= 2+rows {
			continue
		}
		if a.From == machine.A {
			texts = append(texts, text{label - 1, head, r, s, false})
		} else {
			texts = append(texts, text{label + width + 1, head, r, s, true})
		}
	}
	b.Paint(area)
	taken := map[[2]int]bool{}
	name := func(t text) {
		if t.y < 2 || t.y >= 2+rows {
			return
		}
		if t.left {
			c.Text(t.x, t.y, t.role, t.s)
		} else {
			c.Right(t.x, t.y, t.role, t.s)
		}
	}
	// The labels of the selected packet and of those that it settles come first.
	// A second label in the same row would cover them.
	for _, first := range []bool{true, false} {
		for _, t := range texts {
			key := [2]int{t.x, t.y}
			if (t.role == draw.Focus || t.role == draw.Good) == first && (!taken[key] || t.s == "✗") {
				taken[key] = true
				name(t)
			}
		}
	}
	l.drawNote(br, c, f, n)
}

// weightOf returns the position of an arrow in the drawing order: plain
// packets, resends, lost packets, packets that the selected one settles, the
// selected one.
func weightOf(a *graph.Arrow, selected int) int {
	switch {
	case a.Entry == selected:
		return 4
	case a.Settled == selected:
		return 3
	case a.Fate == analyze.FateLost:
		return 2
	case a.Resend:
		return 1
	}
	return 0
}

// thin returns the time that a row covers, at most row. Around the entry about
// two packets fall on a row.
func thin(br *browser.Browser, f *analyze.Flow, n int, row time.Duration, rows int) time.Duration {
	from, to, packets := n, n, 0
	for range rows {
		if before, how := br.Store.Beside(f, from, -1); how == store.StepFound {
			from = before
			packets++
		}
		if next, how := br.Store.Beside(f, to, 1); how == store.StepFound {
			to = next
			packets++
		}
	}
	if packets < rows {
		return row
	}
	each := br.Store.TimeAt(to).Sub(br.Store.TimeAt(from)) / time.Duration(rows)
	for i := len(ladderSteps) - 1; i > 0; i-- {
		if ladderSteps[i] <= max(each, time.Millisecond) {
			return min(ladderSteps[i], row)
		}
	}
	return row
}

// drawNote draws a summary of the selected packet in the middle of the head.
func (l *Ladder) drawNote(br *browser.Browser, c draw.Canvas, f *analyze.Flow, n int) {
	if l.reader == nil {
		l.reader = br.Store.NewReader()
	}
	if _, err := l.reader.Read(n); err != nil || c.W < 70 {
		return
	}
	s := fmt.Sprintf(" %s %s ", br.SelectedFrame(), show.AppendInfo(nil, l.reader.Reading))
	room := c.W - 2*(14+draw.TextWidth(f.B.String()))
	if draw.TextWidth(s) > room {
		return
	}
	c.Text((c.W-draw.TextWidth(s))/2, 1, draw.Focus, s)
}
