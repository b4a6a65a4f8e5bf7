package browser

import (
	"fmt"
	"slices"
)

// Layout is what `:layout save` writes: panes, columns, theme and order.
type Layout struct {
	Theme       string   `json:"theme,omitempty"`
	Columns     []string `json:"columns,omitempty"` // columns of the packet list; empty for the default
	Time        int      `json:"time"`
	FlowSort    int      `json:"flow_sort"`
	FlowReverse bool     `json:"flow_reverse"`
	List        int      `json:"list"` // rows of the packet list beyond the default
	Tree        int      `json:"tree"` // columns of the tree beyond the default
	Maximised   bool     `json:"-"`
}

// ResetPanes restores the default sizes of the panes.
func (l *Layout) ResetPanes() { l.List, l.Tree, l.Maximised = 0, 0, false }

// Resize adds rows to the packet list and columns to the tree.
func (l *Layout) Resize(rows, columns int) {
	l.List = min(max(l.List+rows, -40), 40)
	l.Tree = min(max(l.Tree+columns, -60), 60)
}

// Bound clamps values that were read from a file.
func (l *Layout) Bound() {
	l.Time = min(max(l.Time, 0), len(TimeWords)-1)
	l.Resize(0, 0)
}

// NextTime switches to the next format of the packets' times.
func (br *Browser) NextTime() {
	br.Layout.Time = (br.Layout.Time + 1) % len(TimeWords)
	br.Say("time: %s", TimeWords[br.Layout.Time])
}

// TimeWords name the formats of a packet's time: since the start, since the
// previous packet, time of day.
var TimeWords = []string{"relative", "delta", "absolute"}

// PacketColumns are the built-in columns of the packet list.
var PacketColumns = []string{"number", "time", "flow", "dir", "from", "to", "protocol", "length", "info", "fate"}

// SetColumns sets the columns of the packet list: built-in ones or fields. No
// names restore the default.
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
