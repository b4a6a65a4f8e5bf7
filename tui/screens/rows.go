package screens

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// cell is one column of a row.
type cell struct {
	text  string
	width int // columns of the screen; 0 for the remaining ones
	right bool
	role  draw.Role
}

// columnsShown returns the columns that fit a width.
func columnsShown(br *browser.Browser, width int) []string {
	if len(br.Layout.Columns) > 0 {
		return br.Layout.Columns
	}
	out := []string{"number", "time"}
	if br.Flow == 0 {
		out = append(out, "flow")
	}
	out = append(out, "dir")
	if br.Flow == 0 && width >= 140 { // the packet's summary needs the room on narrower screens
		out = append(out, "from", "to")
	}
	if br.Flow == 0 && width >= 96 {
		out = append(out, "protocol")
	}
	if width >= 100 {
		out = append(out, "length")
	}
	return append(out, "info", "fate")
}

// row returns the cells of a packet's row.
func (p *PacketView) row(br *browser.Browser, n int, columns []string) []cell {
	if p.reader == nil {
		p.reader = br.Store.NewReader()
	}
	if br.Layout.Time == slices.Index(browser.TimeWords, "delta") {
		p.reader.Previous = br.Store.TimeAt(n - 1)
	}
	e := br.Store.Entry(n)
	r, err := p.reader.Read(n)
	if err != nil {
		return []cell{{text: br.Store.Frame(e.Ref), width: 8, right: true}, {text: err.Error(), role: draw.Error}}
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
			c = cell{
				text:  br.Store.Frame(e.Ref),
				width: max(5, draw.TextWidth(br.Store.Frame(br.Store.Entry(br.Store.Len()-1).Ref))), right: true,
			}
			if mark, ok := p.markAt(br, n); ok {
				c.text = string(mark) + c.text
				c.role = draw.Mark
			}
			c.width++
		case "time":
			c = cell{text: string(appendWhen(br, nil, r)), width: 11, right: true, role: draw.Dim}
			if browser.TimeWords[br.Layout.Time] == "absolute" {
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
			c = p.infoCell(&e, r)
		case "fate":
			c = cell{text: string(appendFate(nil, br.Store, &e)), width: 10}
			switch e.Marks.Fate() {
			case analyze.FateAcked:
				c.role = draw.Settled
			case analyze.FateLost:
				c.role = draw.Error
			case analyze.FateOpen:
			}
		default:
			c = p.fieldCell(br, i, name, r)
		}
		out = append(out, c)
	}
	return out
}

// infoCell summarises the packet, and marks the gravest finding at it.
func (p *PacketView) infoCell(e *analyze.Entry, r *filter.Record) cell {
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
	c.text += string(show.AppendInfo(nil, p.reader.Reading))
	if r.Transport == capture.Fragment || r.Transport == capture.NoTransport {
		c.text += string(show.AppendProtocol(nil, r))
		c.role = draw.Dim
	}
	return c
}

// fieldCell shows a field that the user chose as a column.
func (p *PacketView) fieldCell(br *browser.Browser, i int, name string, r *filter.Record) cell {
	if chosen := strings.Join(br.Layout.Columns, " "); p.chosen != chosen {
		p.chosen, p.columns = chosen, make([]*filter.Column, len(br.Layout.Columns))
		for j, name := range br.Layout.Columns {
			if slices.Contains(browser.PacketColumns, name) {
				continue
			}
			if f, ok := br.Table.Lookup(name); ok {
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

// appendFate appends the fate of a packet, as its sender learned it.
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

// markAt returns the user's mark at an entry.
func (p *PacketView) markAt(br *browser.Browser, n int) (rune, bool) {
	if n == p.state.diff && p.state.diff >= 0 {
		return 'Δ', true
	}
	for r, l := range br.Marks {
		if l.Entry == n && l.View != browser.Flows {
			return r, true
		}
	}
	return 0, false
}

// rowText returns a packet's row as one text.
func (p *PacketView) rowText(br *browser.Browser, n int) string {
	if n < 0 || n >= br.Store.Len() {
		return ""
	}
	var parts []string
	for _, c := range p.row(br, n, columnsShown(br, 200)) {
		if s := strings.TrimSpace(c.text); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "  ")
}

// appendWhen appends the text of the time column.
func appendWhen(br *browser.Browser, to []byte, r *filter.Record) []byte {
	at := r.Datagram.At
	switch browser.TimeWords[br.Layout.Time] {
	case "delta":
		return show.AppendSeconds(to, int64(at.Sub(r.Previous)), 6)
	case "absolute":
		return at.Time().AppendFormat(to, "15:04:05.000000")
	}
	return show.AppendSeconds(to, int64(at.Sub(r.Start)), 6)
}

func appendInt(to []byte, n int) []byte { return strconv.AppendInt(to, int64(n), 10) }
