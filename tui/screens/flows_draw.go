package screens

import (
	"strings"

	"github.com/ackscope/ackscope/show/table"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
)

const (
	flowMargin = 1 // columns left of the table, for the cursor
	flowGap    = 2 // blanks between two columns
)

// Draw draws the table of flows. Below it stands what their troubles have in common, and the
// error that ended reading, if there is one.
func (t *FlowTable) Draw(br *browser.Browser, c draw.Canvas) {
	c = t.drawCause(br, drawEnd(br, c))
	t.settle(br)
	rows := c.H - 2
	t.list.Fit(len(t.Order), rows)
	// The widths follow from the flows on screen.
	columns := make([]table.Column, len(flowColumns))
	for i := range flowColumns {
		col := &flowColumns[i]
		columns[i] = table.Column{
			Title: col.name, Right: col.right, Min: draw.TextWidth(col.name) + 1, Yields: col.yields,
			Needed: i == t.sort,
		}
	}
	fitted := table.New(columns, flowGap)
	text := make([][]string, 0, max(rows, 0))
	for i := t.list.Top; i < len(t.Order) && len(text) < rows; i++ {
		line := make([]string, len(flowColumns))
		for j := range flowColumns {
			line[j] = flowColumns[j].text(br, t.Order[i])
			fitted.Note(j, draw.TextWidth(line[j]), strings.Trim(line[j], " –/") == "")
		}
		text = append(text, line)
	}
	fitted.Fit(c.W - flowMargin - 1)
	t.heads = fitted.Places()
	for _, p := range t.heads {
		name, r := flowColumns[p.Column].name, draw.Title
		if p.Column == t.sort {
			r = draw.Focus
			name += map[bool]string{false: "▴", true: "▾"}[t.reverse]
		}
		flowText(c, 0, p, r, name)
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
		for _, p := range t.heads {
			r := draw.Text
			if role := flowColumns[p.Column].role; role != nil {
				r = role(br, f)
			}
			if f.Protocol == nil {
				r = draw.Dim
			}
			if chosen {
				r = draw.Selected
			}
			flowText(row, 0, p, r, line[p.Column])
		}
	}
	if len(t.Order) == 0 {
		what := "no flow yet"
		if br.Filter != nil {
			what = "no flow matches the filter"
		} else if br.Store.Settled() {
			what = "the capture has no flow: no UDP and no TCP"
		}
		c.Text(2, 2, draw.Dim, what)
	}
}

// flowText draws the text of a column.
func flowText(c draw.Canvas, y int, p table.Place, r draw.Role, text string) {
	c.Text(flowMargin+p.Start(draw.TextWidth(text)), y, r, text)
}

// drawEnd draws the error that ended reading below the table. It returns the
// rest of the canvas.
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
