package screens

import (
	"strings"
	"time"

	"github.com/ackscope/ackscope/filter"
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
	columns := make([]table.Column, len(flowColumns))
	for i := range flowColumns {
		col := &flowColumns[i]
		columns[i] = table.Column{
			Title: col.name, Right: col.right, Min: draw.TextWidth(col.name) + 1, Yields: col.yields,
		}
		if i == t.sort { // the user asked for it
			columns[i].Needed, columns[i].Yields = true, 0
		}
	}
	fitted := table.New(columns, flowGap)
	t.measure(br, c.W)
	text := make([][]string, 0, max(rows, 0))
	for i := t.list.Top; i < len(t.Order) && len(text) < rows; i++ {
		line := make([]string, len(flowColumns))
		for j := range flowColumns {
			line[j] = flowColumns[j].text(br, t.Order[i])
			t.widths.note(j, line[j])
		}
		text = append(text, line)
	}
	for j, x := range t.widths.columns {
		if len(t.Order) > 0 {
			fitted.Note(j, x.width, !x.filled)
		}
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

// flowWidths are the widths of the columns' texts. They only grow until the view or the order
// changes: columns that came and went while a user scrolls could not be read.
type flowWidths struct {
	columns []columnWidth
	filter  *filter.Filter
	sort    int
	room    int       // columns of the view
	pass    int       // of the store: the second run replaces the flows
	flows   int       // flows at the last measuring
	made    time.Time // FlowTable.made at the last measuring
}

type columnWidth struct {
	width  int
	filled bool // some flow has a text
}

// measuredFlows limits the flows whose texts are measured at once: all of a usual capture, and
// some milliseconds of work.
const measuredFlows = 512

// note records a text of a column.
func (x *flowWidths) note(column int, text string) {
	c := &x.columns[column]
	c.width = max(c.width, draw.TextWidth(text))
	c.filled = c.filled || strings.Trim(text, " –/") != ""
}

// measure measures the texts of all flows, or of some that are spread evenly over the list. The
// flows on screen are measured when they are drawn.
func (t *FlowTable) measure(br *browser.Browser, room int) {
	x := &t.widths
	if x.columns == nil || x.filter != br.Filter || x.sort != t.sort || x.room != room ||
		x.pass != br.Store.Pass() {
		*x = flowWidths{
			columns: make([]columnWidth, len(flowColumns)), filter: br.Filter, sort: t.sort, room: room,
			pass: br.Store.Pass(),
		}
	}
	if x.flows == len(t.Order) && x.made.Equal(t.made) {
		return
	}
	x.flows, x.made = len(t.Order), t.made
	every := (len(t.Order)-1)/measuredFlows + 1
	for i := 0; i < len(t.Order); i += every {
		for j := range flowColumns {
			x.note(j, flowColumns[j].text(br, t.Order[i]))
		}
	}
}
