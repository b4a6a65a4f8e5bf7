package tui

import (
	"slices"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// packetColumns are the built-in columns of the packet list.
var packetColumns = []string{"number", "time", "flow", "dir", "from", "to", "protocol", "length", "info", "fate"}

// cell is one column of a row.
type cell struct {
	text  string
	width int // columns that it takes; 0 for what is left
	right bool
	role  draw.Role
}

// columnsShown gives the columns for a width.
func (m *Model) columnsShown(width int) []string {
	if len(m.config.Columns) > 0 {
		return m.config.Columns
	}
	out := []string{"number", "time"}
	if m.flow == 0 {
		out = append(out, "flow")
	}
	out = append(out, "dir")
	if m.flow == 0 && width >= 140 { // what the packet says goes before
		out = append(out, "from", "to")
	}
	if m.flow == 0 && width >= 96 {
		out = append(out, "protocol")
	}
	if width >= 100 {
		out = append(out, "length")
	}
	return append(out, "info", "fate")
}

// row makes the cells of a packet's row.
func (m *Model) row(n int, columns []string) []cell {
	p := &m.packet
	if p.reader == nil {
		p.reader = m.store.NewReader()
	}
	if m.config.Time == slices.Index(timeWords, "delta") {
		p.reader.Previous = m.store.TimeAt(n - 1)
	}
	e := m.store.Entry(n)
	r, err := p.reader.Read(n)
	if err != nil {
		return []cell{{text: m.store.Frame(e.Ref), width: 8, right: true}, {text: err.Error(), role: draw.Error}}
	}
	side := draw.SideA
	if r.Datagram.From == machine.B {
		side = draw.SideB
	}
	var out []cell
	for i, name := range columns {
		var c cell
		switch name {
		case "number":
			c = cell{text: m.store.Frame(e.Ref), width: max(5, draw.TextWidth(m.store.Frame(m.store.Entry(m.store.Len()-1).Ref))), right: true}
			if mark, ok := m.markAt(n); ok {
				c.text = string(mark) + c.text
				c.role = draw.Mark
			}
			c.width++
		case "time":
			c = cell{text: string(m.appendWhen(nil, r)), width: 11, right: true, role: draw.Dim}
			if timeWords[m.config.Time] == "absolute" {
				c.width = 15
			}
		case "flow":
			c = cell{width: 4, right: true}
			if r.Flow != 0 {
				c.text = string(appendInt(nil, r.Flow))
			}
		case "dir":
			c = cell{width: 1, role: side}
			if r.Flow != 0 {
				c.text = map[machine.Side]string{machine.A: "→", machine.B: "←"}[r.Datagram.From]
			}
		case "from", "to":
			c = cell{width: 21, role: side}
			addr := r.Src
			if name == "to" {
				addr, c.role = r.Dst, draw.Text
			}
			if addr.IsValid() {
				c.text = string(show.AppendEndpoint(nil, addr, r.Transport))
			}
		case "protocol":
			c = cell{text: string(show.AppendProtocol(nil, r)), width: 15}
		case "length":
			c = cell{width: 5, right: true}
			if r.Frame != nil {
				c.text = string(appendInt(nil, r.Frame.Length))
			}
		case "info":
			c = m.infoCell(&e, r)
		case "fate":
			c = cell{text: string(appendFate(nil, m.store, &e)), width: 10}
			switch e.Marks.Fate() {
			case analyze.FateAcked:
				c.role = draw.Settled
			case analyze.FateLost:
				c.role = draw.Error
			case analyze.FateOpen:
			}
		default:
			c = m.fieldCell(i, name, r)
		}
		out = append(out, c)
	}
	return out
}

// infoCell says what the packet is, and of what gravity a rule found something.
func (m *Model) infoCell(e *analyze.Entry, r *filter.Record) cell {
	c := cell{}
	if sev, ok := e.Marks.Severity(); ok {
		c.text, c.role = string(severityLetter(sev))+" ", severityRole(sev)
	} else {
		c.text = "  "
	}
	switch {
	case e.Marks.Has(machine.EventResent):
		c.text += "resend "
	case e.Marks.Has(machine.EventDuplicate):
		c.text += "duplicate "
	case e.Marks.Has(machine.EventStale):
		c.text += "stale "
	}
	c.text += string(show.AppendInfo(nil, m.packet.reader.Reading))
	if r.Transport == capture.Fragment || r.Transport == capture.NoTransport {
		c.text += string(show.AppendProtocol(nil, r))
		c.role = draw.Dim
	}
	return c
}

// fieldCell shows a field of the user's choice.
func (m *Model) fieldCell(i int, name string, r *filter.Record) cell {
	p := &m.packet
	if chosen := strings.Join(m.config.Columns, " "); p.chosen != chosen {
		p.chosen, p.columns = chosen, make([]*filter.Column, len(m.config.Columns))
		for j, name := range m.config.Columns {
			if slices.Contains(packetColumns, name) {
				continue
			}
			if f, ok := m.o.Table.Lookup(name); ok {
				p.columns[j] = f.Column()
			}
		}
	}
	c := cell{width: min(max(len(name), 6), 18)}
	if i < len(p.columns) && p.columns[i] != nil {
		c.text = string(show.AppendClean(nil, p.columns[i].Append(nil, r, ",")))
	}
	return c
}

// appendFate writes what became of a packet, as its sender learned.
func appendFate(to []byte, s *store.Store, e *analyze.Entry) []byte {
	switch e.Marks.Fate() {
	case analyze.FateAcked:
		to = append(to, "✓ "...)
		return append(to, s.FrameAt(e.Settled)...)
	case analyze.FateLost:
		return append(to, "✗ lost"...)
	}
	return to
}

// markAt gives the mark that stands at an entry.
func (m *Model) markAt(n int) (rune, bool) {
	if n == m.sides.diff && m.sides.diff >= 0 {
		return 'Δ', true
	}
	for r, l := range m.marks {
		if l.entry == n && l.view != viewFlows {
			return r, true
		}
	}
	return 0, false
}

// rowText is a packet's row as one text.
func (m *Model) rowText(n int) string {
	if n < 0 || n >= m.store.Len() {
		return ""
	}
	var parts []string
	for _, c := range m.row(n, m.columnsShown(200)) {
		if s := strings.TrimSpace(c.text); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "  ")
}
