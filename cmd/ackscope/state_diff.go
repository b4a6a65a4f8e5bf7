package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/machine"
)

// change is one cell that is not what it was.
type change struct {
	window   string
	sequence int64
	from, to machine.Cell
	was, is  bool // inside the window before, after
	slot     *machine.Slot
}

// changesOf compares the windows of one side, by name.
func changesOf(before, after *machine.View) []change {
	var names []string
	for _, v := range []*machine.View{before, after} {
		for i := range v.Windows {
			if !slices.Contains(names, v.Windows[i].Name) {
				names = append(names, v.Windows[i].Name)
			}
		}
	}
	var out []change
	for _, name := range names {
		x, y := findWindow(before, name), findWindow(after, name)
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
			c := change{window: name, sequence: s}
			c.from, c.was = cellAt(x, s)
			c.to, c.is = cellAt(y, s)
			if c.was && !c.is || c.was == c.is && c.from == c.to {
				continue // what slid out of the window is no news
			}
			if y != nil {
				if i := slices.IndexFunc(y.Slots, func(slot machine.Slot) bool { return slot.Sequence64 == s }); i >= 0 {
					c.slot = &y.Slots[i]
				}
			}
			out = append(out, c)
		}
	}
	return out
}

// word names what a cell was or is.
func (c *change) words() string {
	from := "new"
	if c.was {
		from = cellWords[c.from]
	}
	return from + " → " + cellWords[c.to]
}

// settled says which frame and bit made the change, where that is known.
func (c *change) settled() string {
	if c.slot == nil || c.slot.SettledBy == 0 {
		return ""
	}
	return fmt.Sprintf("  by frame %d bit %d", c.slot.SettledBy.Frame(), c.slot.Bit)
}

// gaugeChange is a figure that moved.
type gaugeChange struct {
	name, unit string
	from, to   float64
	was, is    bool
}

func gaugesOf(before, after *machine.View) []gaugeChange {
	var out []gaugeChange
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
		c := gaugeChange{name: name, unit: unit, was: x != nil, is: y != nil}
		if x != nil {
			c.from = x.Value
		}
		if y != nil {
			c.to = y.Value
		}
		if c.was != c.is || c.from != c.to {
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

// diff prints what changed on each side between two frames.
func (p *statePrinter) diff(refs []machine.Ref, views [][2]machine.View) {
	w := p.app.writer()
	fmt.Fprintf(w, "flow %d  %s · frame %s → %s\n", p.flow.ID, flowName(p.flow), p.travel.frame(refs[0]), p.travel.frame(refs[1]))
	for _, side := range p.sides {
		before, after := &views[0][side], &views[1][side]
		fmt.Fprintf(w, "\n%s\n", p.paint.string(bold, fmt.Sprintf("%s %s", strings.ToUpper(side.String()), p.flow.Addr(side))))
		cells, figures := changesOf(before, after), gaugesOf(before, after)
		if len(cells)+len(figures) == 0 {
			fmt.Fprintln(w, "  nothing")
			continue
		}
		// Neighbours that changed alike stand together.
		for i := 0; i < len(cells); {
			j := i
			for j+1 < len(cells) && cells[j+1].window == cells[i].window && cells[j+1].sequence == cells[j].sequence+1 &&
				cells[j+1].words() == cells[i].words() && cells[j+1].settled() == cells[i].settled() {
				j++
			}
			span := strconv.FormatInt(cells[i].sequence, 10)
			if j > i {
				span += "–" + strconv.FormatInt(cells[j].sequence, 10)
			}
			fmt.Fprintf(w, "  %-9s %13s  %s%s\n", cells[i].window, span, p.paint.string(cellStyle(cells[i].to), cells[i].words()), cells[i].settled())
			i = j + 1
		}
		for _, g := range figures {
			from, to := "–", "–"
			if g.was {
				from = gaugeValue(g.from, g.unit)
			}
			if g.is {
				to = gaugeValue(g.to, g.unit)
			}
			if from != to {
				fmt.Fprintf(w, "  %s  %s → %s\n", g.name, from, to)
			}
		}
	}
}
