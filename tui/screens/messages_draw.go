package screens

import (
	"fmt"
	"strings"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
)

// Draw draws the table of messages, the life at the cursor, and the spread of
// latencies by type.
func (t *MessageTable) Draw(br *browser.Browser, c draw.Canvas) {
	t.ensure(br)
	t.settle(br)
	f := br.Store.Flow(t.flow)
	title := "messages"
	if f != nil {
		title = fmt.Sprintf("%s of flow %d by %s", show.Plural(len(t.all), "message"), f.ID, MessageColumns[t.sort])
	}
	switch {
	case t.work.Done() || t.work.Err() != nil:
	case br.Store.Growing():
		title += ", so far"
	default:
		title += ", being gathered"
	}
	if t.later != nil {
		title += ", being sorted"
	}
	if t.filtered() {
		title += fmt.Sprintf(", %s match the filter", show.Grouped(len(t.rows)))
	}
	below := min(max(c.H/3, 8), 14)
	if c.H < below+leastParts/2 {
		below = 0
	}
	rows := c.H - below - 2
	c.Rule(0, title, true)
	if len(t.all) == 0 {
		text := "no message yet"
		if t.work.Done() {
			text = "this flow carries no messages that can be told apart: profiles (--profiles) or keys (--keys) may be needed"
		}
		if t.work.Err() != nil {
			text = t.work.Err().Error()
		}
		for y, s := range strings.Split(show.Wrap(text, "", c.W-3), "\n") {
			c.Text(2, 2+y, draw.Dim, s)
		}
		return
	}
	t.list.Fit(len(t.rows), rows)
	if len(t.rows) == 0 && t.later != nil {
		return
	}
	if len(t.rows) == 0 {
		c.Text(2, 2, draw.Dim, "no message matches the filter")
		return
	}
	span := time.Duration(0)
	for i := t.list.Top; i < min(t.list.Top+rows, len(t.rows)); i++ {
		x := &t.all[t.rows[i]]
		span = max(span, x.Extent())
	}
	head := fmt.Sprintf("%-8s %-4s %-18s %8s %6s %21s %10s  ", "frame", "", "type", "id", "sends", "arrived", "held back")
	causes := c.W >= 110
	if causes {
		head += fmt.Sprintf("%-16s  ", "sent again as")
	}
	c.Text(1, 1, draw.Title, head)
	line := draw.TextWidth(head) + 1
	if line < c.W-8 {
		c.Text(line, 1, draw.Title,
			fmt.Sprintf("s sent  r again  a acked  d arrived, at some time in ═  ▒ held back, over %s", show.Wait(span)))
	}
	for y := range rows {
		i := t.list.Top + y
		if i >= len(t.rows) {
			break
		}
		x := &t.all[t.rows[i]]
		over := draw.Text
		row := c.Part(0, y+2, c.W, 1)
		if i == t.list.Cursor {
			over = draw.Selected
			row.Fill(0, over)
			row.Text(0, 0, over, "▶")
		}
		id := fmt.Sprint(x.ID)
		if x.ID < 0 {
			id = fmt.Sprintf("#%d", x.Sequence)
		}
		latency, wait := "?", ""
		switch {
		case x.Delivered == machine.Yes:
			latency = show.ArrivalText(&x.Message)
		case x.Delivered == machine.No:
			latency = "never"
		}
		if x.Wait > 0 {
			wait = show.Wait(x.Wait)
		}
		pick := func(r draw.Role) draw.Role {
			if over != draw.Text {
				return over
			}
			return r
		}
		side := draw.SideA
		if x.From == machine.B {
			side = draw.SideB
		}
		at := row.Text(1, 0, pick(draw.Text), fmt.Sprintf("%-8s ", br.Store.Frame(x.Frames[0])))
		at = row.Text(at, 0, pick(side), fmt.Sprintf("%s→%s  ", x.From, x.From.Other()))
		at = row.Text(at, 0, pick(draw.Text), draw.PadRight(draw.Cut(x.Title, 18), 18)+" "+
			fmt.Sprintf("%8s %6d ", id, x.Attempts))
		bad := draw.Text
		if x.Delivered == machine.No {
			bad = draw.Error
		}
		at = row.Text(at, 0, pick(bad), fmt.Sprintf("%21s ", latency))
		at = row.Text(at, 0, pick(draw.Warn), fmt.Sprintf("%10s  ", wait))
		if causes {
			at = row.Text(at, 0, pick(draw.Note), fmt.Sprintf("%-16s  ", draw.Cut(x.Cause, 16)))
		}
		if at < c.W-8 {
			row.Text(at, 0, pick(draw.Dim), lifeLine(br.Store, x, c.W-at-1, span))
		}
	}
	if below == 0 {
		return
	}
	foot := c.Part(0, c.H-below, c.W, below)
	width := c.W
	if c.W >= 120 {
		width = c.W / 2
		foot.Column(width, 0, below)
		t.drawSpread(foot.Part(width+1, 0, c.W-width-1, below))
	} else if t.spread {
		t.drawSpread(foot)
		return
	}
	left := foot.Part(0, 0, width, below)
	left.Rule(0, "life", false)
	if x := t.selected(); x != nil {
		br.Text.Lines = nil
		for _, s := range lifeText(br.Store, x) {
			br.Text.Lines = append(br.Text.Lines, draw.WrapLine(s, left.W-2)...)
		}
		br.Text.Draw(left.Part(1, 1, left.W-1, left.H-1))
	}
}

// drawSpread draws the spread of latencies by type.
func (t *MessageTable) drawSpread(c draw.Canvas) {
	c.Rule(0, "time to arrival by type", false)
	for y, s := range t.bars[:min(len(t.bars), max(c.H-1, 0))] {
		c.Text(1, y+1, draw.Text, s)
	}
}
