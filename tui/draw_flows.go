package tui

import (
	"slices"
	"strings"
)

// drawFlows draws the table of flows.
func (m *Model) drawFlows(c canvas) {
	t := &m.flows
	t.settle(m)
	rows := c.h - 2
	t.list.fit(len(t.order), rows)
	// The widths are those of what is shown.
	text := make([][]string, 0, rows)
	widths := make([]int, len(flowColumns))
	for i := range flowColumns {
		widths[i] = textWidth(flowColumns[i].name) + 1
	}
	for i := t.list.top; i < len(t.order) && len(text) < rows; i++ {
		line := make([]string, len(flowColumns))
		for j := range flowColumns {
			line[j] = flowColumns[j].text(m, t.order[i])
			widths[j] = max(widths[j], textWidth(line[j]))
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
		if empty && i != t.sort && total() > c.w {
			dropped[flowColumns[i].name], vain[flowColumns[i].name] = true, true
		}
	}
	for _, name := range flowDrops {
		if total() <= c.w {
			break
		}
		dropped[name] = true
	}
	// A wide one that had to go may have made room for narrower ones.
	for _, name := range slices.Backward(flowDrops) {
		if dropped[name] && !vain[name] {
			if dropped[name] = false; total() > c.w {
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
		r := roleTitle
		if i == t.sort {
			r = roleFocus
			name += map[bool]string{false: "▴", true: "▾"}[t.reverse]
		}
		if col.right {
			c.right(x+widths[i], 0, r, name)
		} else {
			c.text(x, 0, r, name)
		}
		x += widths[i] + 2
	}
	for x := range c.w {
		c.text(x, 1, roleDim, "─")
	}
	for y, line := range text {
		f := t.order[t.list.top+y]
		chosen := t.list.top+y == t.list.cursor
		row := c.part(0, y+2, c.w, 1)
		if chosen {
			row.fill(0, roleSelected)
			row.text(0, 0, roleSelected, "▶")
		}
		x := 1
		for i := range flowColumns {
			col := &flowColumns[i]
			if dropped[col.name] {
				continue
			}
			r := roleText
			if col.role != nil {
				r = col.role(m, f)
			}
			if f.Protocol == nil {
				r = roleDim
			}
			if chosen {
				r = roleSelected
			}
			if col.right {
				row.right(x+widths[i], 0, r, line[i])
			} else {
				row.text(x, 0, r, line[i])
			}
			x += widths[i] + 2
		}
	}
	if len(t.order) == 0 {
		what := "no flow yet"
		if m.packet.filter != nil {
			what = "no flow passes the filter"
		} else if m.store.pass == 3 {
			what = "the capture has no flow: no UDP and no TCP"
		}
		c.text(2, 2, roleDim, what)
	}
}
