package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// statePrinter prints the state of one flow.
type statePrinter struct {
	app    *app
	travel *travel
	flow   *analyze.Flow
	sides  []machine.Side
	rows   int
	paint  painter
}

const (
	rowCells   = 32
	groupCells = 8
)

// block is text of known width, a side's column of the picture. Lines may carry
// colours, so each has its width beside it.
type block struct {
	lines  []string
	widths []int
}

func (b *block) add(width int, line string) {
	b.lines, b.widths = append(b.lines, line), append(b.widths, width)
}

func (b *block) text(s string) { b.add(utf8.RuneCountInString(s), s) }

func (b *block) width() int { return slices.Max(append(b.widths, 0)) }

// picture draws the sides at a frame: beside each other, so that what one sent
// stands beside what the other received.
func (p *statePrinter) picture(ref machine.Ref, views *[2]machine.View) {
	w := p.app.writer()
	fmt.Fprintln(w, p.headline(ref))
	fmt.Fprintln(w)
	if len(p.sides) == 1 {
		p.print(p.block(p.sides[0], &views[p.sides[0]], nil))
	} else {
		left := p.block(machine.A, &views[machine.A], &views[machine.B])
		right := p.block(machine.B, &views[machine.B], &views[machine.A])
		if columns := p.app.width(); columns > 0 && left.width()+4+right.width() > columns {
			p.print(left)
			fmt.Fprintln(w)
			p.print(right)
		} else {
			p.beside(left, right)
		}
	}
	fmt.Fprintln(w)
	if len(p.sides) == 2 {
		p.beliefs(views)
	}
	for _, side := range p.sides {
		p.tables(side, &views[side])
	}
	fmt.Fprintln(w, p.paint.string(dim, p.legend(views)))
}

// headline says which packet this is.
func (p *statePrinter) headline(ref machine.Ref) string {
	s := fmt.Sprintf("flow %d  %s · frame %s", p.flow.ID, flowName(p.flow), p.travel.frame(ref))
	m, ok := p.travel.moment(ref)
	if !ok {
		return s
	}
	s += " · " + m.at.Time().Format("15:04:05.000000")
	switch {
	case m.info == "":
		return s
	case m.flow != p.flow:
		return s + fmt.Sprintf(" · of flow %d", m.flow.ID)
	case m.from == machine.A:
		return s + " · A→B  " + m.info
	}
	return s + " · B→A  " + m.info
}

func (p *statePrinter) print(b *block) {
	for _, line := range b.lines {
		fmt.Fprintln(p.app.writer(), strings.TrimRight(line, " "))
	}
}

func (p *statePrinter) beside(left, right *block) {
	width := left.width() + 4
	for i := range max(len(left.lines), len(right.lines)) {
		line := ""
		n := 0
		if i < len(left.lines) {
			line, n = left.lines[i], left.widths[i]
		}
		if i < len(right.lines) && right.lines[i] != "" {
			line += strings.Repeat(" ", width-n) + right.lines[i]
		}
		fmt.Fprintln(p.app.writer(), strings.TrimRight(line, " "))
	}
}

// block draws one side. The windows stand in the order in which they face the
// other side's, and have the same rows.
func (p *statePrinter) block(side machine.Side, v, peer *machine.View) *block {
	b := &block{}
	facts := p.flow.Facts()
	place := "far: by evidence"
	if facts.Vantage.Near(side) {
		place = "near: exact"
	}
	b.text(fmt.Sprintf("%s %s  (%s)", strings.ToUpper(side.String()), p.flow.Addr(side), place))
	for _, name := range windowOrder(side, v, peer) {
		w := findWindow(v, name)
		facing := findWindow(peer, facingName(name))
		first, last := p.rowRange(w, facing)
		p.window(b, name, w, first, last)
	}
	if len(v.Gauges) > 0 {
		b.text("")
	}
	for i := range v.Gauges {
		b.text(gaugeText(&v.Gauges[i]))
	}
	return b
}

// facingName is the peer's window that tells of the same packets.
func facingName(name string) string {
	switch {
	case strings.Contains(name, "sent"):
		return strings.Replace(name, "sent", "received", 1)
	case strings.Contains(name, "received"):
		return strings.Replace(name, "received", "sent", 1)
	}
	return ""
}

// windowOrder lists the names of the windows to draw: side A's own order, and
// for B the order of those that face A's.
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
				name = facingName(name)
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

func findWindow(v *machine.View, name string) *machine.Window {
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

// rowRange gives the rows to draw of a window and the one that faces it: whole
// rows, the newest ones. last is after the end; both 0 for nothing.
func (p *statePrinter) rowRange(w, facing *machine.Window) (first, last int64) {
	found := false
	for _, x := range []*machine.Window{w, facing} {
		if x == nil || len(x.Cells) == 0 {
			continue
		}
		from, to := x.First, x.First+int64(len(x.Cells))
		if !found {
			first, last, found = from, to, true
			continue
		}
		first, last = min(first, from), max(last, to)
	}
	first -= (first%rowCells + rowCells) % rowCells
	if rest := (last%rowCells + rowCells) % rowCells; rest != 0 {
		last += rowCells - rest
	}
	if p.rows > 0 {
		first = max(first, last-int64(p.rows)*rowCells)
	}
	return first, last
}

// window draws rows of cells: s, a, r, ... as machine.Glyphs has them.
func (p *statePrinter) window(b *block, name string, w *machine.Window, first, last int64) {
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
	b.add(utf8.RuneCountInString(head), p.paint.string(bold, head))
	label := len(strconv.FormatInt(last, 10))
	for row := first; row < last; row += rowCells {
		line := fmt.Appendf(nil, " %*d  ", label, row)
		from := len(line)
		width := from
		for i := range int64(rowCells) {
			if i > 0 && i%groupCells == 0 {
				line = append(line, ' ')
				width++
			}
			c, in := cellAt(w, row+i)
			width++
			if !in {
				line = append(line, ' ')
				continue
			}
			line = p.paint.text(line, cellStyle(c), string(c.Rune()))
		}
		b.add(width, string(line))
	}
}

// cellAt gives the cell of a sequence; false outside of the window.
func cellAt(w *machine.Window, sequence int64) (machine.Cell, bool) {
	if w == nil || sequence < w.First || sequence >= w.First+int64(len(w.Cells)) {
		return machine.CellUnknown, false
	}
	return w.Cells[sequence-w.First], true
}

func cellStyle(c machine.Cell) style {
	switch c {
	case machine.CellUnknown, machine.CellEmpty:
		return dim
	case machine.CellLost:
		return red
	case machine.CellClaimed, machine.CellPartial:
		return yellow
	case machine.CellAcked, machine.CellReceived:
		return cyan
	case machine.CellSent:
	}
	return ""
}

// gaugeText writes a figure with what is known of it.
func gaugeText(g *machine.Gauge) string {
	s := fmt.Sprintf("%s %s", g.Name, gaugeValue(g.Value, g.Unit))
	if g.Grade != machine.Certain {
		s += fmt.Sprintf("  (%s)", g.Grade)
	}
	return s
}

func gaugeValue(v float64, unit string) string {
	number := strconv.FormatFloat(v, 'f', 2, 64)
	if v == float64(int64(v)) {
		number = strconv.FormatInt(int64(v), 10)
	}
	switch unit {
	case "":
		return number
	case "%":
		return number + "%"
	case "packets":
		if v == 1 {
			return "1 packet"
		}
	}
	return number + " " + unit
}

// beliefs says what each side believes the other has beside what it really has.
func (p *statePrinter) beliefs(views *[2]machine.View) {
	w := p.app.writer()
	for _, side := range p.sides {
		sent, received := findWindow(&views[side], "sent"), findWindow(&views[side.Other()], "received")
		if sent == nil || received == nil {
			continue
		}
		x, y := strings.ToUpper(side.String()), strings.ToUpper(side.Other().String())
		believed, _ := newestOf(sent, machine.CellAcked)
		line := x + " believes " + y + " has: "
		if believed < 0 {
			line += "nothing yet"
		} else {
			line += "…" + strconv.FormatInt(believed, 10)
		}
		var ahead []int64
		for i, c := range received.Cells {
			sequence := received.First + int64(i)
			if theirs, ok := cellAt(sent, sequence); c == machine.CellReceived && ok && theirs != machine.CellAcked {
				ahead = append(ahead, sequence)
			}
		}
		if len(ahead) > 0 {
			line += fmt.Sprintf("   %s has besides: %s", y, sequenceRanges(ahead, 8))
		}
		fmt.Fprintln(w, line)
	}
	fmt.Fprintln(w)
}

// newestOf finds the last cell of a kind.
func newestOf(w *machine.Window, c machine.Cell) (int64, bool) {
	for i := len(w.Cells) - 1; i >= 0; i-- {
		if w.Cells[i] == c {
			return w.First + int64(i), true
		}
	}
	return -1, false
}

// sequenceRanges writes rising numbers with runs drawn together, at most so many parts.
func sequenceRanges(list []int64, most int) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		part := strconv.FormatInt(list[i], 10)
		if j > i {
			part += "–" + strconv.FormatInt(list[j], 10)
		}
		parts = append(parts, part)
		i = j + 1
	}
	if n := len(parts); n > most {
		parts = append(parts[:1:1], append([]string{"…"}, parts[n-most+1:]...)...)
	}
	return strings.Join(parts, ", ")
}

// tables writes what is neither a window nor a figure.
func (p *statePrinter) tables(side machine.Side, v *machine.View) {
	w := p.app.writer()
	for i := range v.Tables {
		t := &v.Tables[i]
		if len(t.Rows) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", strings.ToUpper(side.String()), t.Name)
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
				line = appendClean(line, cell)
				if i < len(widths) {
					line = pad(line, from, widths[i]+1)
				}
			}
			fmt.Fprintln(w, strings.TrimRight(string(line), " "))
		}
		fmt.Fprintln(w)
	}
}

var cellWords = [...]string{
	machine.CellUnknown: "unknown", machine.CellEmpty: "empty", machine.CellSent: "sent", machine.CellAcked: "acked", machine.CellReceived: "received",
	machine.CellClaimed: "claimed, not seen", machine.CellLost: "lost", machine.CellPartial: "some fragments",
}

// legend names the glyphs that the picture has.
func (p *statePrinter) legend(views *[2]machine.View) string {
	var seen [len(cellWords)]bool
	for _, side := range p.sides {
		for _, w := range views[side].Windows {
			for _, c := range w.Cells {
				seen[c] = true
			}
		}
	}
	var parts []string
	for c, word := range cellWords {
		if seen[c] {
			parts = append(parts, string(machine.Cell(c).Rune())+" "+word)
		}
	}
	return strings.Join(parts, "   ")
}
