package browser

import (
	"fmt"
	"slices"
)

// Layout is what `:layout save` keeps: panes, columns, theme and order.
type Layout struct {
	Theme       string   `json:"theme,omitempty"`
	Columns     []string `json:"columns,omitempty"` // of the packet list; none for the usual
	Time        int      `json:"time"`
	FlowSort    int      `json:"flow_sort"`
	FlowReverse bool     `json:"flow_reverse"`
	List        int      `json:"list"` // rows that the packet list has more than usual
	Tree        int      `json:"tree"` // columns that the tree has more than usual
	Maximised   bool     `json:"-"`
}

// ResetPanes returns the panes their usual sizes.
func (l *Layout) ResetPanes() { l.List, l.Tree, l.Maximised = 0, 0, false }

// Resize gives the packet list more rows, and the tree more columns.
func (l *Layout) Resize(rows, columns int) {
	l.List = min(max(l.List+rows, -40), 40)
	l.Tree = min(max(l.Tree+columns, -60), 60)
}

// Bound puts what was read from a file within its bounds.
func (l *Layout) Bound() {
	l.Time = min(max(l.Time, 0), len(TimeWords)-1)
	l.Resize(0, 0)
}

// NextTime shows the time of packets in the next way.
func (br *Browser) NextTime() {
	br.Layout.Time = (br.Layout.Time + 1) % len(TimeWords)
	br.Say("time: %s", TimeWords[br.Layout.Time])
}

// TimeWords name the ways in which the time of a packet is shown: since the start, since
// the packet before, of day.
var TimeWords = []string{"relative", "delta", "absolute"}

// PacketColumns are the built-in columns of the packet list.
var PacketColumns = []string{"number", "time", "flow", "dir", "from", "to", "protocol", "length", "info", "fate"}

// SetColumns chooses the columns of the packet list: built-in ones, or fields; none for
// the usual.
func (br *Browser) SetColumns(names []string) {
	for _, name := range names {
		if slices.Contains(PacketColumns, name) {
			continue
		}
		if _, ok := br.Table.Lookup(name); !ok {
			text := fmt.Sprintf("no column or field %q", name)
			if near := br.Table.Suggest(name); near != "" {
				text += "; did you mean " + near + "?"
			}
			br.Fail("%s", text)
			return
		}
	}
	br.Layout.Columns = names
}
