package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// drawMessages draws the table of messages, the life of the one at the cursor
// and how long deliveries took, by type.
func (m *Model) drawMessages(c canvas) {
	t := &m.messages
	t.ensure(m)
	t.settle(m)
	f := m.store.flowByID(t.flow)
	title := "messages"
	if f != nil {
		title = fmt.Sprintf("%s of flow %d by %s", show.Plural(len(t.all), "message"), f.ID, messageColumns[t.sort])
	}
	if t.work != nil && !t.work.done {
		title += ", being gathered"
	}
	if t.later != nil {
		title += ", being sorted"
	}
	if t.sieved() {
		title += fmt.Sprintf(", %s pass the filter", show.Grouped(len(t.rows)))
	}
	below := min(max(c.h/3, 8), 14)
	if c.h < below+leastParts/2 {
		below = 0
	}
	rows := c.h - below - 2
	c.rule(0, title, true)
	if len(t.all) == 0 {
		text := "no message yet"
		if t.work == nil || t.work.done {
			text = "this flow carries no messages that can be told apart: profiles (--profiles) or keys (--keys) may be needed"
		}
		if t.work != nil && t.work.err != nil {
			text = t.work.err.Error()
		}
		for y, s := range strings.Split(show.Wrap(text, "", c.w-3), "\n") {
			c.text(2, 2+y, roleDim, s)
		}
		return
	}
	t.list.fit(len(t.rows), rows)
	if len(t.rows) == 0 && t.later != nil {
		return
	}
	if len(t.rows) == 0 {
		c.text(2, 2, roleDim, "no message passes the filter")
		return
	}
	span := time.Duration(0)
	for i := t.list.top; i < min(t.list.top+rows, len(t.rows)); i++ {
		x := &t.all[t.rows[i]]
		span = max(span, x.latency())
		if x.AckedBy != 0 {
			span = max(span, x.AckedAt.Sub(x.At))
		}
	}
	head := fmt.Sprintf("%-8s %-4s %-18s %8s %6s %10s %10s  ", "frame", "", "type", "id", "sends", "latency", "held back")
	causes := c.w >= 110
	if causes {
		head += fmt.Sprintf("%-16s  ", "sent again as")
	}
	c.text(1, 1, roleTitle, head)
	line := textWidth(head) + 1
	if line < c.w-8 {
		c.text(line, 1, roleTitle, fmt.Sprintf("s sent  r again  a acked  d delivered  ▒ held back, over %s", waitText(span)))
	}
	for y := range rows {
		i := t.list.top + y
		if i >= len(t.rows) {
			break
		}
		x := &t.all[t.rows[i]]
		over := roleText
		row := c.part(0, y+2, c.w, 1)
		if i == t.list.cursor {
			over = roleSelected
			row.fill(0, over)
			row.text(0, 0, over, "▶")
		}
		id := fmt.Sprint(x.ID)
		if x.ID < 0 {
			id = fmt.Sprintf("#%d", x.Sequence)
		}
		latency, wait := "?", ""
		switch {
		case x.Delivered == machine.Yes:
			latency = waitText(x.latency())
		case x.Delivered == machine.No:
			latency = "never"
		}
		if x.Wait > 0 {
			wait = waitText(x.Wait)
		}
		pick := func(r role) role {
			if over != roleText {
				return over
			}
			return r
		}
		side := roleSideA
		if x.From == machine.B {
			side = roleSideB
		}
		at := row.text(1, 0, pick(roleText), fmt.Sprintf("%-8s ", m.store.Frame(x.Frames[0])))
		at = row.text(at, 0, pick(side), fmt.Sprintf("%s→%s  ", x.From, x.From.Other()))
		at = row.text(at, 0, pick(roleText), padRight(cut(x.name, 18), 18)+" "+fmt.Sprintf("%8s %6d ", id, x.Attempts))
		bad := roleText
		if x.Delivered == machine.No {
			bad = roleError
		}
		at = row.text(at, 0, pick(bad), fmt.Sprintf("%10s ", latency))
		at = row.text(at, 0, pick(roleWarn), fmt.Sprintf("%10s  ", wait))
		if causes {
			at = row.text(at, 0, pick(roleNote), fmt.Sprintf("%-16s  ", cut(x.cause, 16)))
		}
		if at < c.w-8 {
			row.text(at, 0, pick(roleDim), x.lifeLine(m.store, c.w-at-1, span))
		}
	}
	if below == 0 {
		return
	}
	foot := c.part(0, c.h-below, c.w, below)
	width := c.w
	if c.w >= 120 {
		width = c.w / 2
		foot.column(width, 0, below)
		t.drawSpread(foot.part(width+1, 0, c.w-width-1, below))
	} else if t.spread {
		t.drawSpread(foot)
		return
	}
	left := foot.part(0, 0, width, below)
	left.rule(0, "life", false)
	if x := t.selected(); x != nil {
		m.text.lines = nil
		for _, s := range x.lines(m.store) {
			m.text.lines = append(m.text.lines, wrapLine(s, left.w-2)...)
		}
		m.drawText(left.part(1, 1, left.w-1, left.h-1))
	}
}

// drawSpread draws how long deliveries took, by type.
func (t *messageTable) drawSpread(c canvas) {
	c.rule(0, "time to delivery by type", false)
	for y, s := range t.bars[:min(len(t.bars), max(c.h-1, 0))] {
		c.text(1, y+1, roleText, s)
	}
}

// cut shortens a text to so many columns.
func cut(s string, n int) string {
	if textWidth(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
