package show

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ackscope/ackscope/machine"
)

// Change is a cell of a window that has changed.
type Change struct {
	Window   string
	Sequence int64
	From, To machine.Cell
	Was, Is  bool // whether the cell was and is inside the window
	Slot     *machine.Slot
}

// ChangesOf compares the windows of one side, which it matches by name.
func ChangesOf(before, after *machine.View) []Change {
	var names []string
	for _, v := range []*machine.View{before, after} {
		for i := range v.Windows {
			if !slices.Contains(names, v.Windows[i].Name) {
				names = append(names, v.Windows[i].Name)
			}
		}
	}
	var out []Change
	for _, name := range names {
		x, y := FindWindow(before, name), FindWindow(after, name)
		first, last := int64(0), int64(-1)
		for _, w := range []*machine.Window{x, y} {
			if w != nil && len(w.Cells) > 0 {
				if last < first {
					first, last = w.First, w.First+int64(len(w.Cells))-1
				}
				first, last = min(first, w.First), max(last, w.First+int64(len(w.Cells))-1)
			}
		}
		for s := first; s <= last; s++ {
			c := Change{Window: name, Sequence: s}
			c.From, c.Was = CellAt(x, s)
			c.To, c.Is = CellAt(y, s)
			if c.Was && !c.Is || c.Was == c.Is && c.From == c.To {
				continue // the cell has left the window
			}
			if y != nil {
				if i := slices.IndexFunc(y.Slots, func(slot machine.Slot) bool { return slot.Sequence64 == s }); i >= 0 {
					c.Slot = &y.Slots[i]
				}
			}
			out = append(out, c)
		}
	}
	return out
}

// Words describes the old and the new state of the cell.
func (c *Change) Words() string {
	from := "new"
	if c.Was {
		from = CellWords[c.From]
	}
	return from + " → " + CellWords[c.To]
}

// Settled names the frame and the bit that made the change. It returns "" if
// they are unknown.
func (c *Change) Settled() string {
	if c.Slot == nil || c.Slot.SettledBy == 0 {
		return ""
	}
	return fmt.Sprintf("  by frame %d bit %d", c.Slot.SettledBy.Frame(), c.Slot.Bit)
}

// GaugeChange is a figure that has changed.
type GaugeChange struct {
	Name, Unit string
	From, To   float64
	Was, Is    bool
}

// GaugesOf compares the figures of one side.
func GaugesOf(before, after *machine.View) []GaugeChange {
	var out []GaugeChange
	find := func(v *machine.View, name string) *machine.Gauge {
		for i := range v.Gauges {
			if v.Gauges[i].Name == name {
				return &v.Gauges[i]
			}
		}
		return nil
	}
	add := func(name, unit string) {
		x, y := find(before, name), find(after, name)
		c := GaugeChange{Name: name, Unit: unit, Was: x != nil, Is: y != nil}
		if x != nil {
			c.From = x.Value
		}
		if y != nil {
			c.To = y.Value
		}
		if c.Was != c.Is || c.From != c.To {
			out = append(out, c)
		}
	}
	for _, g := range after.Gauges {
		add(g.Name, g.Unit)
	}
	for _, g := range before.Gauges {
		if find(after, g.Name) == nil {
			add(g.Name, g.Unit)
		}
	}
	return out
}

// Changes describes what has changed on one side. It returns nil if nothing
// has.
func (p *State) Changes(before, after *machine.View) (lines []string) {
	cells := ChangesOf(before, after)
	names := len("received ")
	for i := range cells {
		names = max(names, len(cells[i].Window))
	}
	// Neighbours with the same change share a line.
	for i := 0; i < len(cells); {
		j := i
		for j+1 < len(cells) && cells[j+1].Window == cells[i].Window && cells[j+1].Sequence == cells[j].Sequence+1 &&
			cells[j+1].Words() == cells[i].Words() && cells[j+1].Settled() == cells[i].Settled() {
			j++
		}
		span := strconv.FormatInt(cells[i].Sequence, 10)
		if j > i {
			span += "–" + strconv.FormatInt(cells[j].Sequence, 10)
		}
		lines = append(lines,
			fmt.Sprintf("  %-*s %13s  %s%s", names, cells[i].Window, span,
				p.Paint.String(CellStyle(cells[i].To), cells[i].Words()), cells[i].Settled()))
		i = j + 1
	}
	for _, g := range GaugesOf(before, after) {
		from, to := "–", "–"
		if g.Was {
			from = GaugeValue(g.From, g.Unit)
		}
		if g.Is {
			to = GaugeValue(g.To, g.Unit)
		}
		if from != to {
			lines = append(lines, fmt.Sprintf("  %s  %s → %s", g.Name, from, to))
		}
	}
	return lines
}
