package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
)

// palette is a list of all that a user can do or go to: keys, commands, flows, findings and
// fields. What is typed narrows it, best match first.
type palette struct {
	open  bool
	line  line
	items []paletteItem
	found []paletteMatch
	list  draw.List
	box   paletteBox
	left  string // what the items leave out; empty for nothing
}

// paletteBox is where the rows were drawn last, on the screen.
type paletteBox struct{ x, y, w, h int }

// paletteItem is a row of the palette.
type paletteItem struct {
	kind string // key, command, flow, finding or field
	text string // printable
	key  string // beside it: the key that does the same
	low  string // kind and text in lower case: what is matched
	do   func(m *Model)
}

// paletteMatch is an item that matches what was typed.
type paletteMatch struct {
	item   int
	points int
	at     []int // runes of its low that match
}

// paletteMost limits the flows and the findings of the palette: matching so many takes some
// milliseconds a key. Filters and the list of flows find the others.
const paletteMost = 5000

// openPalette opens the palette with all that there is now.
func (m *Model) openPalette() {
	p := &m.palette
	*p = palette{open: true, line: line{history: p.line.history}}
	p.line.set("")
	p.addKeys(m.View)
	for _, c := range commands {
		p.add("command", ":"+c.name+" "+c.args+" – "+c.help, "", func(m *Model) {
			if c.args == "" {
				m.command(c.name)
				return
			}
			m.ask(promptCommand)
			m.prompt.line.set(c.name + " ")
		})
	}
	p.addFlows(m.Store.Flows())
	for _, f := range m.o.Table.Fields() {
		p.add("field", f.Name+" – "+f.Doc, "", func(m *Model) {
			m.ask(promptFilter)
			text := m.prompt.line.String()
			if text != "" {
				text += " && "
			}
			m.prompt.line.set(text + f.Name + " ")
			m.recheck()
		})
	}
	p.narrow()
}

func (p *palette) add(kind, text, key string, do func(*Model)) {
	text = string(show.AppendClean(nil, text))
	p.items = append(p.items, paletteItem{kind, text, key, lower(kind + " " + text), do})
}

// lower returns a text in lower case, rune by rune: the places of a match are those in the text.
func lower(text string) string { return strings.Map(unicode.ToLower, text) }

// addKeys adds the keys of a view, those that work in no other view first.
func (p *palette) addKeys(v browser.View) {
	table := bindingTable()
	for _, general := range []bool{false, true} {
		for i := range table {
			b := &table[i]
			if (len(b.views) == 0) != general || !b.in(v) || b.keys[0] == "Ctrl-P" {
				continue
			}
			p.add("key", b.help, b.keys[0], func(m *Model) { b.do(m, 0) })
		}
	}
}

// addFlows adds the flows and what the rules found in them.
func (p *palette) addFlows(flows []*analyze.Flow) {
	var findings []*analyze.Finding
	for _, f := range flows[:min(len(flows), paletteMost)] {
		p.add("flow", fmt.Sprintf("%d %s %s ⇄ %s", f.ID, show.FlowName(f), f.A, f.B), "",
			func(m *Model) { m.Open(f.ID) })
		findings = append(findings, f.Findings()...)
	}
	slices.SortStableFunc(findings, func(x, y *analyze.Finding) int {
		return cmp.Compare(y.Rule.Severity, x.Rule.Severity)
	})
	for _, x := range findings[:min(len(findings), paletteMost)] {
		side := strings.ToUpper(x.Side.String())
		p.add("finding", fmt.Sprintf("%s flow %d %s: %s", x.Rule.ID, x.Flow.ID, side, x.Message()), "",
			func(m *Model) { m.screens.Findings.Show(m.Browser, x) })
	}
	if len(flows) > paletteMost || len(findings) > paletteMost {
		p.left = fmt.Sprintf("the first %s flows and findings", show.Grouped(paletteMost))
	}
}

// narrow finds the items that match what was typed, the best first.
func (p *palette) narrow() {
	query := lower(p.line.String())
	p.found, p.list = p.found[:0], draw.List{}
	for i := range p.items {
		if points, at, ok := fuzzy(query, p.items[i].low); ok {
			p.found = append(p.found, paletteMatch{i, points, at})
		}
	}
	if strings.TrimSpace(query) == "" {
		return
	}
	slices.SortStableFunc(p.found, func(x, y paletteMatch) int {
		return cmp.Or(cmp.Compare(y.points, x.points), cmp.Compare(len(p.items[x.item].low), len(p.items[y.item].low)))
	})
}

// paletteKey handles a key while the palette is open.
func (m *Model) paletteKey(k string) {
	p := &m.palette
	switch k {
	case "Esc", "Ctrl-C":
		p.open = false
	case "Enter":
		m.choose(p.list.Cursor)
	case "Up", "Ctrl-P":
		p.list.Cursor--
	case "Down", "Ctrl-N", "Tab":
		p.list.Cursor++
	case "PgUp":
		p.list.Cursor -= p.list.Height
	case "PgDn":
		p.list.Cursor += p.list.Height
	default:
		if k == "Backspace" && len(p.line.text) == 0 {
			p.open = false
			return
		}
		had := p.line.String()
		if p.line.key(k); p.line.String() != had {
			p.narrow()
		}
	}
	p.list.Cursor = min(max(p.list.Cursor, 0), max(len(p.found)-1, 0))
}

// choose closes the palette and does what the item of a row says.
func (m *Model) choose(row int) {
	p := &m.palette
	if row < 0 || row >= len(p.found) {
		return
	}
	do := p.items[p.found[row].item].do
	*p = palette{}
	do(m)
}

// paletteClick chooses the item at a position of the screen. A click elsewhere closes the palette.
func (m *Model) paletteClick(x, y int) {
	p := &m.palette
	b := p.box
	if x < b.x || x >= b.x+b.w || y < b.y-2 || y > b.y+b.h {
		p.open = false
		return
	}
	if y >= b.y && y < b.y+b.h {
		m.choose(p.list.Top + y - b.y)
	}
}

// drawPalette draws the palette over the middle of the screen.
func (m *Model) drawPalette(c draw.Canvas) {
	p := &m.palette
	w, h := min(c.W, max(c.W*3/4, 100)), min(c.H-2, 22)
	at := paletteBox{(c.W - w) / 2, 1, w, h}
	box := c.Part(at.x, at.y, w, h)
	for y := range h {
		box.Fill(y, draw.Text)
	}
	title := "go to or do: keys, commands, flows, findings, fields"
	if p.left != "" {
		title += " (" + p.left + ")"
	}
	box.Rule(0, title, true)
	x := box.Text(1, 1, draw.Focus, "> ")
	room := box.Part(x, 1, w-x-1, 1)
	cursor := draw.TextWidth(string(p.line.text[:p.line.cursor]))
	shift := max(cursor+1-room.W, 0)
	room.Text(-shift, 0, draw.Text, p.line.String())
	box.ShowCursor(x+cursor-shift, 1)
	p.box = paletteBox{at.x, at.y + 2, w, max(h-3, 0)}
	p.list.Fit(len(p.found), p.box.h)
	for y := range p.box.h {
		i := p.list.Top + y
		if i >= len(p.found) {
			break
		}
		p.drawItem(box.Part(0, y+2, w, 1), &p.found[i], i == p.list.Cursor)
	}
	if len(p.found) == 0 {
		box.Text(2, 2, draw.Dim, "nothing matches")
	}
	box.Rule(h-1, "", false)
	box.Right(w-1, h-1, draw.Dim, " "+show.Grouped(len(p.found))+" ")
}

// drawItem draws a row: the kind, the text with the runes that match, and the key.
func (p *palette) drawItem(row draw.Canvas, found *paletteMatch, chosen bool) {
	x := &p.items[found.item]
	text, kind, lit := draw.Text, draw.Dim, draw.Key
	if chosen {
		text, kind, lit = draw.Selected, draw.Selected, draw.Lit
		row.Fill(0, draw.Selected)
		row.Text(0, 0, draw.Selected, "▶")
	}
	row.Text(1, 0, kind, x.kind)
	const left = 10 // after the longest kind
	room := row.Part(left, 0, row.W-left-draw.TextWidth(x.key)-2, 1)
	room.Text(0, 0, text, x.text)
	column, before := 0, len(x.kind)+1
	for i, r := range []rune(x.text) {
		n := draw.RuneWidth(r)
		if slices.Contains(found.at, before+i) && column+n < room.W {
			room.Text(column, 0, lit, string(r))
		}
		column += n
	}
	row.Right(row.W-1, 0, draw.Key, x.key)
}
