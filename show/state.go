package show

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

const groupCells = 8

// perRow returns the number of cells in a row.
func (p *State) perRow() int64 {
	if p.Cells > 0 {
		return int64(p.Cells)
	}
	return 32
}

// State formats what both sides of a flow knew.
type State struct {
	Paint Painter
	Flow  *analyze.Flow
	Sides []machine.Side
	Rows  int // newest rows of each window; 0 for all
	Cells int // cells in a row; 0 for 32
	Width int // greatest width of a figure, whose name is cut; 0 for any
}

// Block is the column of one side in the picture. Lines may contain colours, so
// Widths has the visible width of each line.
type Block struct {
	Lines  []string
	Widths []int
}

func (b *Block) add(width int, line string) {
	b.Lines, b.Widths = append(b.Lines, line), append(b.Widths, width)
}

func (b *Block) text(s string) { b.add(utf8.RuneCountInString(s), s) }

// Width returns the columns of the widest line.
func (b *Block) Width() int { return slices.Max(append(b.Widths, 0)) }

// Block formats one side. peer is the other side, or nil if it is not drawn.
// The windows of both sides are in matching order and have the same rows.
func (p *State) Block(side machine.Side, v, peer *machine.View) *Block {
	b := &Block{}
	facts := p.Flow.Facts()
	place := "inferred from its acks"
	if facts.Vantage.Near(side) {
		place = "captured here"
	}
	b.text(fmt.Sprintf("%s %s  (%s)", strings.ToUpper(side.String()), p.Flow.Addr(side), place))
	for _, name := range windowOrder(side, v, peer) {
		w := FindWindow(v, name)
		facing := FindWindow(peer, FacingName(name))
		p.window(b, name, w, p.rowsOf(w, facing))
	}
	if len(v.Gauges) > 0 {
		b.text("")
	}
	for i := range v.Gauges {
		b.text(p.gauge(&v.Gauges[i]))
	}
	return b
}

// FacingName returns the name of the peer's window of the same packets: "sent"
// for "received", and the reverse.
func FacingName(name string) string {
	switch {
	case strings.Contains(name, "sent"):
		return strings.Replace(name, "sent", "received", 1)
	case strings.Contains(name, "received"):
		return strings.Replace(name, "received", "sent", 1)
	}
	return ""
}

// windowOrder returns the names of the windows in drawing order. Side A has its
// own order. Side B follows the order of the windows of A that face its own.
func windowOrder(side machine.Side, v, peer *machine.View) []string {
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	own := func(v *machine.View, turn bool) {
		if v == nil {
			return
		}
		for i := range v.Windows {
			name := v.Windows[i].Name
			if turn {
				name = FacingName(name)
			}
			add(name)
		}
	}
	if side == machine.A {
		own(v, false)
		own(peer, true)
	} else {
		own(peer, true)
		own(v, false)
	}
	return names
}

// FindWindow returns a side's window by its name, or nil.
func FindWindow(v *machine.View, name string) *machine.Window {
	if v == nil {
		return nil
	}
	for i := range v.Windows {
		if v.Windows[i].Name == name {
			return &v.Windows[i]
		}
	}
	return nil
}

// rowsOf returns the first sequences of the rows to draw, for a window and the
// one that faces it. They are the newest rows. If the receiver is further
// behind, the first row is replaced by the one with the receiver's newest
// packet.
func (p *State) rowsOf(w, facing *machine.Window) (rows []int64) {
	var first, last int64
	newest := int64(-1)
	for _, x := range []*machine.Window{w, facing} {
		if x == nil || len(x.Cells) == 0 {
			continue
		}
		if strings.Contains(x.Name, "received") {
			newest = x.Next
		}
		from, to := x.First, x.First+int64(len(x.Cells))
		if first == last {
			first, last = from, to
			continue
		}
		first, last = min(first, from), max(last, to)
	}
	size := p.perRow()
	start := func(sequence int64) int64 { return sequence - (sequence%size+size)%size }
	for row := start(first); row < last; row += size {
		rows = append(rows, row)
	}
	if p.Rows == 0 || len(rows) <= p.Rows {
		return rows
	}
	rows = rows[len(rows)-p.Rows:]
	if newest >= first && newest < rows[0] && p.Rows > 1 {
		rows[0] = start(newest)
	}
	return rows
}

// window draws rows of cells, with the letters of machine.Glyphs: s, a, r, … A
// row that does not follow the one above begins with ⋮.
func (p *State) window(b *Block, name string, w *machine.Window, rows []int64) {
	b.text("")
	head := name
	switch {
	case w == nil:
		head += "  unknown"
	case strings.Contains(name, "received") && w.Next >= 0:
		head += fmt.Sprintf("  newest %d", w.Next)
	case w.Next >= 0:
		head += fmt.Sprintf("  next %d", w.Next)
	default:
		head += "  nothing yet, or unknown"
	}
	if w != nil && w.Grade != machine.Certain {
		head += fmt.Sprintf("  (%s)", w.Grade)
	}
	b.add(utf8.RuneCountInString(head), p.Paint.String(Bold, head))
	if len(rows) == 0 {
		return
	}
	rowCells := p.perRow()
	label := len(strconv.FormatInt(rows[len(rows)-1]+rowCells, 10))
	for i, row := range rows {
		gap := " "
		if i > 0 && row != rows[i-1]+rowCells {
			gap = "⋮"
		}
		line := fmt.Appendf(nil, "%s%*d  ", gap, label, row)
		width := utf8.RuneCount(line)
		for i := range rowCells {
			if i > 0 && i%groupCells == 0 {
				line = append(line, ' ')
				width++
			}
			c, in := CellAt(w, row+i)
			width++
			if !in {
				line = append(line, ' ')
				continue
			}
			line = p.Paint.Text(line, CellStyle(c), string(c.Rune()))
		}
		b.add(width, string(line))
	}
}

// CellAt returns the cell of a sequence. It returns false outside the window.
func CellAt(w *machine.Window, sequence int64) (machine.Cell, bool) {
	if w == nil || sequence < w.First || sequence >= w.First+int64(len(w.Cells)) {
		return machine.CellUnknown, false
	}
	return w.Cells[sequence-w.First], true
}

// CellStyle returns the style of a cell.
func CellStyle(c machine.Cell) Style {
	switch c {
	case machine.CellUnknown, machine.CellEmpty:
		return Dim
	case machine.CellLost:
		return Red
	case machine.CellClaimed, machine.CellPartial:
		return Yellow
	case machine.CellAcked, machine.CellReceived:
		return Cyan
	case machine.CellSent:
	}
	return ""
}

// gauge formats a figure so that its value fits into the width. It cuts the
// name. The grade follows the value as far as there is room.
func (p *State) gauge(g *machine.Gauge) string {
	const leastName = 8
	text, name := GaugeText(g), []rune(g.Name)
	value := strings.TrimPrefix(text, g.Name)
	if i := strings.LastIndex(value, "  ("); i >= 0 && g.Grade != machine.Certain {
		value = value[:i] + "  …"
	}
	over := len(name) + utf8.RuneCountInString(value) - p.Width
	if p.Width == 0 || over <= 0 || len(name)-over-1 < leastName {
		return text
	}
	return string(name[:len(name)-over-1]) + "…" + strings.TrimPrefix(text, g.Name)
}

// GaugeText formats a figure with its grade.
func GaugeText(g *machine.Gauge) string {
	s := fmt.Sprintf("%s %s", g.Name, GaugeValue(g.Value, g.Unit))
	if g.Grade != machine.Certain {
		s += fmt.Sprintf("  (%s)", g.Grade)
	}
	return s
}

// GaugeValue formats a value with its unit.
func GaugeValue(v float64, unit string) string {
	number := strconv.FormatFloat(v, 'f', 2, 64)
	if v == float64(int64(v)) {
		number = strconv.FormatInt(int64(v), 10)
	}
	switch unit {
	case "":
		return number
	case "%":
		return number + "%"
	}
	if one := oneOf[unit]; v == 1 && one != "" {
		unit = one
	}
	return number + " " + unit
}

// oneOf is the singular of the units that count things.
var oneOf = map[string]string{
	"addresses": "address", "blocks": "block", "bytes": "byte", "copies": "copy", "datagrams": "datagram",
	"flows": "flow", "fragments": "fragment", "ids": "id", "messages": "message", "packets": "packet",
	"slots": "slot", "times": "time",
}

// Pair is a window of what one side sent, and the peer's window of what it
// received.
type Pair struct {
	Of             string // channel of the windows: "reliable"; empty if there is only one
	Sent, Received *machine.Window
}

// Pairs returns the windows of what side sent, each with the peer's window of
// the same packets.
func Pairs(views *[2]machine.View, side machine.Side) (pairs []Pair) {
	v := &views[side]
	for i := range v.Windows {
		w := &v.Windows[i]
		if !strings.Contains(w.Name, "sent") {
			continue
		}
		if received := FindWindow(&views[side.Other()], FacingName(w.Name)); received != nil {
			pairs = append(pairs, Pair{strings.TrimSpace(strings.Replace(w.Name, "sent", "", 1)), w, received})
		}
	}
	return pairs
}

// Gaps lists the sequences about which sender and receiver disagree. The
// receiver has those of unknown, but the sender does not know it. The sender
// counts those of lacking as arrived, but the receiver does not have them.
func (x *Pair) Gaps() (unknown, lacking []int64) {
	for i, c := range x.Received.Cells {
		sequence := x.Received.First + int64(i)
		theirs, ok := CellAt(x.Sent, sequence)
		switch {
		case !ok:
		case c == machine.CellReceived && theirs != machine.CellAcked:
			unknown = append(unknown, sequence)
		case (c == machine.CellEmpty || c == machine.CellClaimed) && theirs == machine.CellAcked:
			lacking = append(lacking, sequence)
		}
	}
	return unknown, lacking
}

// Beliefs compares what each side believes the other has with what that side
// has.
func (p *State) Beliefs(views *[2]machine.View) (lines []string) {
	for _, side := range p.Sides {
		x, y := strings.ToUpper(side.String()), strings.ToUpper(side.Other().String())
		for _, w := range Pairs(views, side) {
			of := w.Of
			if of == "" {
				of = "packets"
			}
			line := x + " thinks " + y + " has "
			if believed, ok := newestAcked(w.Sent); ok {
				line += of + " up to " + strconv.FormatInt(believed, 10)
			} else {
				line += "no " + of + " yet"
			}
			unknown, lacking := w.Gaps()
			if len(unknown) > 0 {
				line += fmt.Sprintf("; %s also has %s", y, machine.Ranges(unknown, 8))
			}
			if len(lacking) > 0 {
				line += fmt.Sprintf("; %s does not have %s", y, machine.Ranges(lacking, 8))
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// newestAcked returns the newest sequence of which a side has read an ack. It returns
// false if there is none.
func newestAcked(w *machine.Window) (int64, bool) {
	if w.AckedKnown {
		return w.Acked, true
	}
	for i := len(w.Cells) - 1; i >= 0; i-- {
		if w.Cells[i] == machine.CellAcked {
			return w.First + int64(i), true
		}
	}
	return -1, false
}

// Tables formats the tables of a side. A blank line ends each table.
func (p *State) Tables(side machine.Side, v *machine.View) (lines []string) {
	for i := range v.Tables {
		t := &v.Tables[i]
		if len(t.Rows) == 0 {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %s", strings.ToUpper(side.String()), t.Name))
		widths := make([]int, len(t.Columns))
		rows := append([][]string{t.Columns}, t.Rows...)
		for _, row := range rows {
			for i, cell := range row {
				if i < len(widths) {
					widths[i] = max(widths[i], utf8.RuneCountInString(cell))
				}
			}
		}
		for _, row := range rows {
			line := []byte(" ")
			for i, cell := range row {
				line = append(line, ' ')
				from := len(line)
				line = AppendClean(line, cell)
				if i < len(widths) {
					line = Pad(line, from, widths[i]+1)
				}
			}
			lines = append(lines, strings.TrimRight(string(line), " "))
		}
		lines = append(lines, "")
	}
	return lines
}

// CellWords names the kinds of cells.
var CellWords = [...]string{
	machine.CellUnknown: "unknown", machine.CellEmpty: "empty", machine.CellSent: "sent", machine.CellAcked: "acked",
	machine.CellReceived: "received",
	machine.CellClaimed:  "claimed, not seen", machine.CellLost: "lost", machine.CellPartial: "some fragments",
}

// Legend explains the letters that occur in the picture.
func (p *State) Legend(views *[2]machine.View) string {
	var seen [len(CellWords)]bool
	for _, side := range p.Sides {
		for _, w := range views[side].Windows {
			for _, c := range w.Cells {
				seen[c] = true
			}
		}
	}
	var parts []string
	for c, word := range CellWords {
		if seen[c] {
			parts = append(parts, string(machine.Cell(c).Rune())+" "+word)
		}
	}
	return strings.Join(parts, "   ")
}
