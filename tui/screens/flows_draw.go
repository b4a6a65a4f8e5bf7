package screens

import (
	"slices"
	"strings"

	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
)

// Draw draws the table of flows; below it what made the capture end before its time.
func (t *FlowTable) Draw(br *browser.Browser, c draw.Canvas) {
	c = drawEnd(br, c)
	t.settle(br)
	rows := c.H - 2
	t.list.Fit(len(t.Order), rows)
	// The widths are those of what is shown.
	text := make([][]string, 0, rows)
	widths := make([]int, len(flowColumns))
	for i := range flowColumns {
		widths[i] = draw.TextWidth(flowColumns[i].name) + 1
	}
	for i := t.list.Top; i < len(t.Order) && len(text) < rows; i++ {
		line := make([]string, len(flowColumns))
		for j := range flowColumns {
			line[j] = flowColumns[j].text(br, t.Order[i])
			widths[j] = max(widths[j], draw.TextWidth(line[j]))
		}
		text = append(text, line)
	}
	dropped, vain := map[string]bool{}, map[string]bool{}
	total := func() (n int) {
		for i := range flowColumns {
			if !dropped[flowColumns[i].name] {
				n += widths[i] + 2
			}
		}
		return n
	}
	// What no flow has goes first, then what is needed least.
	for i := range flowColumns {
		empty := len(text) > 0
		for _, line := range text {
			empty = empty && strings.Trim(line[i], " –/") == ""
		}
		if empty && i != t.sort && total() > c.W {
			dropped[flowColumns[i].name], vain[flowColumns[i].name] = true, true
		}
	}
	for _, name := range flowDrops {
		if total() <= c.W {
			break
		}
		dropped[name] = true
	}
	// A wide one that had to go may have made room for narrower ones.
	for _, name := range slices.Backward(flowDrops) {
		if dropped[name] && !vain[name] {
			if dropped[name] = false; total() > c.W {
				dropped[name] = true
			}
		}
	}
	x := 1
	t.heads = t.heads[:0]
	for i := range flowColumns {
		col := &flowColumns[i]
		if dropped[col.name] {
			continue
		}
		t.heads = append(t.heads, flowHead{i, x, x + widths[i] + 2})
		name := col.name
		r := draw.Title
		if i == t.sort {
			r = draw.Focus
			name += map[bool]string{false: "▴", true: "▾"}[t.reverse]
		}
		if col.right {
			c.Right(x+widths[i], 0, r, name)
		} else {
			c.Text(x, 0, r, name)
		}
		x += widths[i] + 2
	}
	for x := range c.W {
		c.Text(x, 1, draw.Dim, "─")
	}
	for y, line := range text {
		f := t.Order[t.list.Top+y]
		chosen := t.list.Top+y == t.list.Cursor
		row := c.Part(0, y+2, c.W, 1)
		if chosen {
			row.Fill(0, draw.Selected)
			row.Text(0, 0, draw.Selected, "▶")
		}
		x := 1
		for i := range flowColumns {
			col := &flowColumns[i]
			if dropped[col.name] {
				continue
			}
			r := draw.Text
			if col.role != nil {
				r = col.role(br, f)
			}
			if f.Protocol == nil {
				r = draw.Dim
			}
			if chosen {
				r = draw.Selected
			}
			if col.right {
				row.Right(x+widths[i], 0, r, line[i])
			} else {
				row.Text(x, 0, r, line[i])
			}
			x += widths[i] + 2
		}
	}
	if len(t.Order) == 0 {
		what := "no flow yet"
		if br.Filter != nil {
			what = "no flow passes the filter"
		} else if br.Store.Settled() {
			what = "the capture has no flow: no UDP and no TCP"
		}
		c.Text(2, 2, draw.Dim, what)
	}
}

// drawEnd draws what made the capture end before its time, in full below what is left
// of the canvas.
func drawEnd(br *browser.Browser, c draw.Canvas) draw.Canvas {
	err := br.Store.Err()
	if err == nil {
		return c
	}
	lines := draw.WrapLine(strings.ReplaceAll(err.Error(), "\n", "; "), c.W-2)
	lines = lines[:min(len(lines), max(c.H/3, 1))]
	for y, line := range lines {
		c.Text(1, c.H-len(lines)+y, draw.Warn, line)
	}
	return c.Part(0, 0, c.W, c.H-len(lines))
}
