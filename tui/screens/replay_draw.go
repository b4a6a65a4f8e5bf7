package screens

import (
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
)

// Draw draws the verdicts, and the explanation of one below.
func (t *ReplayTable) Draw(br *browser.Browser, c draw.Canvas) {
	t.ensure(br)
	t.settle(br)
	title := "replay against the references"
	if t.behaviour != "" {
		title = "replay against " + t.behaviour
	}
	if t.matrix {
		title += ", every behaviour"
	}
	w := t.work
	switch {
	case w == nil:
		title += ": the capture is being read first"
	case w.Stopped():
		title += ": stopped (R begins anew)"
	case !w.Done():
		title += fmt.Sprintf(", at work: %d%%", w.Percent())
		if w.Rewound() {
			title += ", reading again"
		}
	case w.Packets() < br.Store.Len():
		title += fmt.Sprintf(", of the first %s (R runs again)", show.Plural(w.Packets(), "packet"))
	}
	c.Rule(0, title, true)
	if w != nil && w.Err() != nil && !w.Stopped() {
		c.Text(2, 2, draw.Error, w.Err().Error())
		return
	}
	if len(t.rows) == 0 {
		if w != nil && w.Done() && !w.Stopped() {
			c.Text(2, 2, draw.Dim, "no flow here has a protocol with a reference")
		}
		return
	}
	height := min(len(t.rows)+2, c.H/2)
	switch {
	case c.H >= 30:
		height = min(len(t.rows)+2, c.H-24)
	case c.H < leastParts:
		height = c.H
	}
	rows := height - 2
	t.list.Fit(len(t.rows), rows)
	wide := c.W >= 110
	head := fmt.Sprintf("%4s  %-2s %-21s  %-26s  %-10s  ", "flow", "", "address", "behaviour", "verdict")
	if !wide {
		head = fmt.Sprintf("%4s  %-2s %-20s  %-10s  ", "flow", "", "behaviour", "verdict")
	}
	c.Text(1, 1, draw.Title, head+"why")
	for y := range rows {
		i := t.list.Top + y
		if i >= len(t.rows) {
			break
		}
		r := &t.rows[i]
		row := c.Part(0, y+2, c.W, 1)
		chosen := i == t.list.Cursor
		pick := func(want draw.Role) draw.Role {
			if chosen {
				return draw.Selected
			}
			return want
		}
		if chosen {
			row.Fill(0, draw.Selected)
			row.Text(0, 0, draw.Selected, "▶")
		}
		x := row.Text(1, 0, pick(draw.Text), fmt.Sprintf("%4d  ", r.flow.ID))
		if r.result == nil {
			row.Text(x, 0, pick(draw.Dim), "–  "+r.reason)
			continue
		}
		side := draw.SideA
		if r.result.Side == machine.B {
			side = draw.SideB
		}
		x = row.Text(x, 0, pick(side), fmt.Sprintf("%-2s ", strings.ToUpper(r.result.Side.String())))
		if wide {
			x = row.Text(x, 0, pick(side), fmt.Sprintf("%-21s  ", r.result.Addr()))
			x = row.Text(x, 0, pick(draw.Text), fmt.Sprintf("%-26s  ", r.result.Behaviour))
		} else {
			x = row.Text(x, 0, pick(draw.Text), fmt.Sprintf("%-20s  ", r.result.Behaviour))
		}
		verdict, of := strings.ToUpper(r.result.Verdict()), draw.Error
		var why string
		switch d := r.result.Divergence; {
		case d != nil:
			why = fmt.Sprintf("frame %s %s: %s expected %s, got %s", br.Store.Frame(d.Ref), d.Rule, d.Field, d.Expected, d.Got)
		case r.result.Undecided > 0:
			verdict, of = r.result.Verdict(), draw.Text
			why = fmt.Sprintf("%s of %s could not be decided", show.Grouped(r.result.Undecided),
				show.Plural(r.result.Compared, "packet"))
		default:
			verdict, of = r.result.Verdict(), draw.Good
			why = show.Plural(r.result.Compared, "packet")
		}
		if !r.result.Expected {
			of = draw.Dim
		}
		x = row.Text(x, 0, pick(of), fmt.Sprintf("%-10s  ", verdict))
		row.Text(x, 0, pick(draw.Text), why)
	}
	below := c.Part(0, height, c.W, c.H-height)
	below.Rule(0, "why", false)
	if r := t.selected(); r != nil {
		br.Text.Lines = r.explain(br.Store, below.W-2)
		br.Text.Draw(below.Part(1, 1, below.W-1, below.H-1))
	}
}
