package tui

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
)

// drawAny draws a screen of any size. It requires the store's lock.
func (m *Model) drawAny(c draw.Canvas) {
	if c.W < 20 || c.H < 6 {
		c.Text(0, 0, draw.Text, "too small")
		return
	}
	m.draw(c)
}

// draw draws the whole screen. It requires the store's lock.
func (m *Model) draw(c draw.Canvas) {
	m.W, m.H = c.W, c.H
	m.begin()
	m.Store.Turn()
	for y := range c.H {
		c.Fill(y, draw.Text)
	}
	m.settleUntil()
	m.settleSaving()
	if m.View != browser.Flows && m.View != browser.Overview {
		m.Settle() // the bars show the position of the selection
	}
	m.drawTop(c.Part(0, 0, c.W, 2))
	body := c.Part(0, 2, c.W, c.H-3)
	if m.help {
		m.drawHelp(body)
	} else {
		m.screen().Draw(m.Browser, body)
	}
	m.drawBottom(c.Part(0, c.H-1, c.W, 1))
	m.drawPrompt(c)
	if m.palette.open {
		m.drawPalette(c)
	}
}

// helpHint ends the first line.
const helpHint = "  ? help "

// drawTop draws the user's position and the filter.
func (m *Model) drawTop(c draw.Canvas) {
	c.Fill(0, draw.Bar)
	x := c.Text(0, 0, draw.Bar, " ")
	where := m.View.String()
	if f := m.Focus(); m.View != browser.Flows && m.View != browser.Overview && m.Flow != 0 && f != nil {
		where = fmt.Sprintf("flows ▸ %d %s %s ⇄ %s ▸ %s", f.ID, show.FlowName(f), f.A, f.B, where)
		if c.W < 110 {
			where = fmt.Sprintf("%d %s %s ⇄ %s ▸ %s", f.ID, show.FlowName(f), f.A.Addr(), f.B.Addr(), m.View.String())
		}
	} else if m.View != browser.Flows && m.View != browser.Overview {
		where = "all flows ▸ " + where
	}
	if n := len(m.o.Files); n > 1 {
		where = fmt.Sprintf("%d/%d %s ▸ %s", m.o.File+1, n, show.AppendClean(nil, filepath.Base(m.o.Files[m.o.File])), where)
	}
	right := m.saving.progress()
	if p := m.Store.Progress(); p != "" {
		right = p + "  "
	}
	if m.View == browser.Flows || m.View == browser.Findings || m.View == browser.Overview {
		right += show.Plural(m.Store.Len(), "packet")
	} else {
		right += m.SelectedFrame() + "/" + show.Grouped(m.Store.Len())
	}
	right += helpHint
	c.Part(0, 0, c.W-draw.TextWidth(right)-1, 1).Text(x, 0, draw.Bar, where)
	c.Right(c.W, 0, draw.Bar, right)

	x = c.Text(0, 1, draw.Dim, " filter ")
	switch f := m.Filter; {
	case f == nil && m.View == browser.Flows:
		c.Text(x, 1, draw.Dim, "none: f begins one, such as flow.rtt > 80ms")
	case f == nil:
		c.Text(x, 1, draw.Dim, "none: f begins one")
	default:
		x = c.Text(x, 1, draw.Text, f.String())
		c.Text(x+1, 1, draw.Good, "valid")
	}
	if err := m.Refusal(m.View); err != nil {
		c.Right(c.W-1, 1, draw.Warn, fmt.Sprintf("  not asked about %s: all are shown", m.View.String()))
	}
	if s := m.FilterJob; s != nil && m.View != browser.Flows && m.View != browser.Findings && m.View != browser.Messages {
		text := fmt.Sprintf("%s of %s", show.Grouped(s.Rows()), show.Plural(m.Store.Len(), "packet"))
		if s.Err() != nil {
			text = s.Err().Error()
		} else if !s.Done() && m.Store.Len() > 0 {
			text += fmt.Sprintf("  (%d%% looked at)", 100*s.Scanned()/m.Store.Len())
		}
		c.Right(c.W-1, 1, draw.Dim, "  "+text)
	}
}

// hint is a key of the last line that was drawn: a click there presses it.
type hint struct {
	from, to int    // columns
	keys     string // separated by blanks
}

// drawBottom draws the last notice, or the keys of the view.
func (m *Model) drawBottom(c draw.Canvas) {
	m.hints = m.hints[:0]
	if m.Note != "" {
		r := draw.Note
		if m.Bad {
			r = draw.Error
		}
		c.Text(1, 0, r, m.Note)
		return
	}
	x := 1
	if m.keys.count > 0 || m.keys.pending != "" {
		x = c.Text(x, 0, draw.Mark, countText(m.keys.count)+m.keys.pending+" ")
	}
	for _, h := range m.hintsOf() {
		if end := x + len(h[0]) + draw.TextWidth(h[1]) + 2; end < c.W {
			c.Text(c.Text(x, 0, draw.Key, h[0])+1, 0, draw.Dim, h[1])
			m.hints = append(m.hints, hint{x, end - 1, h[0]})
			x = end + 1
		}
	}
}

// hintsOf returns the keys for the last line, each with a word for what it does. After the first
// key of a sequence they are those that may follow.
func (m *Model) hintsOf() (list [][2]string) {
	if m.help {
		return [][2]string{{"q", "close"}, {"/", "search"}, {"j", "down"}, {"k", "up"}, {"Space", "a page on"}}
	}
	for _, b := range bindingTable() {
		if !b.in(m.View) {
			continue
		}
		if first := m.keys.pending; first != "" {
			for _, keys := range b.keys {
				if next, ok := strings.CutPrefix(keys, first+" "); ok {
					list = append(list, [2]string{next, cmp.Or(b.hint, b.help)})
				}
			}
			continue
		}
		tables := m.View == browser.Flows || m.View == browser.Messages || m.View == browser.Findings
		if strings.Contains(b.keys[0], " ") || b.hint == "" || b.hint == m.View.String() || tables && b.hint == "pane" {
			continue
		}
		list = append(list, [2]string{b.keys[0], b.hint})
	}
	return list
}

// clickBar handles a click into the first two lines or the last one. It returns false for a click
// elsewhere.
func (m *Model) clickBar(x, y int) bool {
	switch {
	case y == 0:
		if x >= m.W-len(helpHint) {
			m.Key("?")
		}
	case y == 1 && !m.help:
		m.Key("f")
	case y == m.H-1:
		for _, h := range m.hints {
			if x >= h.from && x < h.to {
				for k := range strings.FieldsSeq(h.keys) {
					m.Key(k)
				}
				break
			}
		}
	default:
		return false
	}
	return true
}

// drawPrompt draws the line being edited over the last line of the screen, and
// its completions above.
func (m *Model) drawPrompt(c draw.Canvas) {
	p := &m.prompt
	if p.kind == promptNone {
		c.HideCursor()
		return
	}
	y := c.H - 1
	label := " " + promptLabels[p.kind]
	if p.filters() {
		y = 1
		label += " "
	}
	for x := range c.W {
		c.Text(x, y, draw.Text, " ")
	}
	x := c.Text(0, y, draw.Focus, label)
	status := ""
	statusRole := draw.Good
	switch p.check.state {
	case checkValid:
		status = "valid"
	case checkInvalid:
		status, statusRole = "invalid", draw.Error
	case checkIncomplete:
		status, statusRole = "incomplete", draw.Warn
	case checkEmpty:
	}
	room := c.Part(0, y, c.W-len(status)-2, 1)
	text := p.line.String()
	shift := max(x+draw.TextWidth(string(p.line.text[:p.line.cursor]))+1-room.W, 0)
	room.Part(x, 0, room.W-x, 1).Text(-shift, 0, draw.Text, text)
	c.Right(c.W-1, y, statusRole, status)
	c.ShowCursor(x-shift+draw.TextWidth(string(p.line.text[:p.line.cursor])), y)
	if p.check.text != "" {
		below := c.Part(0, y+1, c.W, 1)
		below.Fill(0, draw.Text)
		below.Text(1, 0, statusRole, p.check.text)
	}
	if len(p.shown) > 0 {
		at := y + 1
		if !p.filters() {
			at = y - 1
		}
		box := c.Part(0, at, c.W, 1)
		box.Fill(0, draw.Bar)
		x, from := 1, max(p.chosen-2, 0)
		for i := from; i < len(p.shown) && x < c.W; i++ {
			r := draw.Bar
			if i == p.chosen {
				r = draw.Lit
			}
			x = box.Text(x, 0, r, " "+p.shown[i]+" ")
		}
		if f, ok := m.o.Table.Lookup(p.shown[max(p.chosen, 0)]); ok && p.filters() {
			doc := c.Part(0, at+1, c.W, 1)
			doc.Fill(0, draw.Text)
			doc.Text(1, 0, draw.Dim, f.Kind.String()+": "+f.Doc)
		}
	}
}
