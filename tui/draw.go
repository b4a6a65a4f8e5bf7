package tui

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/draw"
)

// leastParts is the height from which on a view is parted in two: below that the
// list has all of it.
const leastParts = 9

// drawAny paints a screen of any size. It wants the store's lock held.
func (m *Model) drawAny(c draw.Canvas) {
	if c.W < 20 || c.H < 6 {
		c.Text(0, 0, draw.Text, "too small")
		return
	}
	m.draw(c)
}

// draw paints the whole screen. It wants the store's lock held.
func (m *Model) draw(c draw.Canvas) {
	m.w, m.h = c.W, c.H
	m.store.Turn()
	for y := range c.H {
		c.Fill(y, draw.Text)
	}
	m.settleHunt()
	m.settleSaving()
	if m.view != viewFlows {
		// The bars tell where the selection is: it must be settled before.
		m.packet.settle(m, 0)
	}
	m.drawTop(c.Part(0, 0, c.W, 2))
	body := c.Part(0, 2, c.W, c.H-3)
	if m.help {
		m.drawHelp(body)
	} else {
		switch m.view {
		case viewFlows:
			m.drawFlows(m.drawEnd(body))
		case viewPackets:
			m.drawPackets(body)
		case viewState:
			m.drawState(body)
		case viewLadder:
			m.drawLadder(body)
		case viewGraphs:
			m.drawGraphs(body)
		case viewMessages:
			m.drawMessages(body)
		case viewFindings:
			m.drawFindings(body)
		case viewAutopsy:
			m.drawAutopsy(body)
		case viewReplay:
			m.drawReplay(body)
		case viewCount:
		}
	}
	m.drawBottom(c.Part(0, c.H-1, c.W, 1))
	m.drawPrompt(c)
}

// drawEnd draws what made the capture end before its time, in full below what is left
// of the canvas.
func (m *Model) drawEnd(c draw.Canvas) draw.Canvas {
	err := m.store.Err()
	if err == nil {
		return c
	}
	lines := draw.WrapLine(strings.ReplaceAll(err.Error(), "\n", "; "), c.W-2)
	lines = lines[:min(len(lines), max(c.H/3, 1))]
	for y, line := range lines {
		c.Text(1, c.H-len(lines)+y, draw.Warn, line)
	}
	return c.Part(0, 0, c.W, c.H-len(lines))
}

// drawTop draws where one is, and the filter.
func (m *Model) drawTop(c draw.Canvas) {
	c.Fill(0, draw.Bar)
	x := c.Text(0, 0, draw.Bar, " ")
	where := viewNames[m.view]
	if f := m.focus(); m.view != viewFlows && m.flow != 0 && f != nil {
		where = fmt.Sprintf("flows ▸ %d %s %s ⇄ %s ▸ %s", f.ID, show.FlowName(f), f.A, f.B, where)
		if c.W < 110 {
			where = fmt.Sprintf("%d %s %s ⇄ %s ▸ %s", f.ID, show.FlowName(f), f.A.Addr(), f.B.Addr(), viewNames[m.view])
		}
	} else if m.view != viewFlows {
		where = "all flows ▸ " + where
	}
	if n := len(m.o.Files); n > 1 {
		where = fmt.Sprintf("%d/%d %s ▸ %s", m.o.File+1, n, show.AppendClean(nil, filepath.Base(m.o.Files[m.o.File])), where)
	}
	right := m.saving.progress()
	if p := m.store.Progress(); p != "" {
		right = p + "  "
	}
	if m.view == viewFlows || m.view == viewFindings {
		right += show.Plural(m.store.Len(), "packet")
	} else {
		right += m.selectedRef() + "/" + show.Grouped(m.store.Len())
	}
	right += "  ? help "
	c.Part(0, 0, c.W-draw.TextWidth(right)-1, 1).Text(x, 0, draw.Bar, where)
	c.Right(c.W, 0, draw.Bar, right)

	x = c.Text(0, 1, draw.Dim, " filter ")
	switch f := m.packet.filter; {
	case f == nil && m.view == viewFlows:
		c.Text(x, 1, draw.Dim, "none: f begins one, such as flow.rtt > 80ms")
	case f == nil:
		c.Text(x, 1, draw.Dim, "none: f begins one")
	default:
		x = c.Text(x, 1, draw.Text, f.String())
		c.Text(x+1, 1, draw.Good, "valid")
	}
	if err := m.refusal(m.asks(), viewNames[m.view]); err != nil {
		c.Right(c.W-1, 1, draw.Warn, fmt.Sprintf("  not asked about %s: all are shown", viewNames[m.view]))
	}
	if s := m.packet.sieve; s != nil && m.view != viewFlows && m.view != viewFindings && m.view != viewMessages {
		text := fmt.Sprintf("%s of %s", show.Grouped(s.Rows()), show.Plural(m.store.Len(), "packet"))
		if s.Err() != nil {
			text = s.Err().Error()
		} else if !s.Done() && m.store.Len() > 0 {
			text += fmt.Sprintf("  (%d%% looked at)", 100*s.Scanned()/m.store.Len())
		}
		c.Right(c.W-1, 1, draw.Dim, "  "+text)
	}
}

// drawBottom draws what was told last, or the keys that matter here.
func (m *Model) drawBottom(c draw.Canvas) {
	if m.note != "" {
		r := draw.Note
		if m.bad {
			r = draw.Error
		}
		c.Text(1, 0, r, m.note)
		return
	}
	x := 1
	if m.keys.count > 0 || m.keys.pending != "" {
		x = c.Text(x, 0, draw.Mark, countText(m.keys.count)+m.keys.pending+" ")
	}
	if m.help {
		for _, hint := range [][2]string{{"q", "close"}, {"j k", "scroll"}, {"Space", "a page on"}, {"g G", "first, last"}} {
			x = c.Text(x, 0, draw.Key, hint[0])
			x = c.Text(x+1, 0, draw.Dim, hint[1]) + 2
		}
		return
	}
	for _, b := range bindingTable() {
		if b.hint == "" || !b.in(m.view) || b.hint == viewNames[m.view] {
			continue
		}
		keys := b.keys[0]
		if (m.view == viewFlows || m.view == viewMessages || m.view == viewFindings) && b.hint == "pane" || x+len(keys)+len(b.hint)+2 >= c.W {
			continue
		}
		x = c.Text(x, 0, draw.Key, keys)
		x = c.Text(x+1, 0, draw.Dim, b.hint) + 2
	}
}

// drawPrompt draws the line being edited, over the last line of the screen, and
// what could complete it above.
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
	if p.check.text != "" && p.check.state == checkInvalid {
		below := c.Part(0, y+1, c.W, 1)
		below.Fill(0, draw.Text)
		below.Text(1, 0, draw.Error, p.check.text)
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

func (m *Model) drawState(c draw.Canvas) {
	m.packet.settle(m, 0)
	if n := m.packet.selected; n >= 0 && n < m.store.Len() {
		m.drawRow(c.Part(0, 0, c.W, 1), n, m.columnsShown(c.W), draw.Bold)
	}
	c.Rule(1, m.statesTitle(), true)
	m.text.Lines = m.sides.lines(m, c.W-2, max((c.H-14)/4, 2))
	m.text.Draw(c.Part(1, 2, c.W-1, c.H-2))
}

// statesTitle names the pane of the state.
func (m *Model) statesTitle() string {
	f := m.focus()
	if f == nil || f.Protocol == nil {
		return "both sides"
	}
	title := fmt.Sprintf("both sides of flow %d at frame %s", f.ID, m.selectedRef())
	if m.sides.diff >= 0 && m.sides.diff < m.store.Len() {
		title += ", against " + m.store.FrameAt(m.sides.diff)
	}
	return title
}

func (m *Model) drawAutopsy(c draw.Canvas) {
	f := m.focus()
	title := "autopsy"
	if f != nil {
		title = fmt.Sprintf("autopsy of flow %d", f.ID)
	}
	c.Rule(0, title, true)
	m.text.Lines = nil
	for _, line := range m.autopsy() {
		m.text.Lines = append(m.text.Lines, draw.WrapLine(line, c.W-2)...)
	}
	m.text.Draw(c.Part(1, 1, c.W-1, c.H-1))
}

func (m *Model) drawFindings(c draw.Canvas) {
	t := &m.findings
	t.settle(m)
	width := c.W
	beside := c.W >= 100
	height := c.H
	switch {
	case beside:
		width = c.W * 45 / 100
	case c.H >= leastParts:
		height = c.H / 2
	}
	t.width = width
	c.Part(0, 0, width, 1).Rule(0, "findings by "+findingOrders[t.sort], true)
	rows := height - 1
	t.list.Fit(len(t.rows), rows)
	for y := range rows {
		i := t.list.Top + y
		if i >= len(t.rows) {
			break
		}
		r := &t.rows[i]
		row := c.Part(0, y+1, width, 1)
		chosen := i == t.list.Cursor
		over := draw.Text
		if chosen {
			over = draw.Selected
			row.Fill(0, over)
		}
		pick := func(r draw.Role) draw.Role {
			if chosen {
				return draw.Selected
			}
			return r
		}
		if r.finding == nil {
			x := row.Text(1, 0, pick(severityRole(r.rule.Severity)), string(severityLetter(r.rule.Severity))+" "+r.rule.ID)
			row.Text(x+1, 0, pick(draw.Dim), "×"+show.Grouped(r.count))
			continue
		}
		x := row.Text(5, 0, pick(draw.Dim), fmt.Sprintf("flow %d %s ", r.finding.Flow.ID, strings.ToUpper(r.finding.Side.String())))
		x = row.Text(x, 0, over, r.finding.Certainty.String()+" ")
		row.Text(x, 0, over, r.finding.Message())
	}
	if len(t.rows) == 0 {
		var health show.Health
		for _, f := range m.store.Flows() {
			health.Add(f)
		}
		text := "No rule fired. " + health.String()
		switch {
		case !m.store.Settled():
			text = "no rule fired so far"
		case m.packet.filter != nil:
			text = "no finding passes the filter"
		}
		c.Text(2, 2, draw.Dim, text)
		return
	}
	at := c.Part(width+1, 0, c.W-width-1, c.H)
	if beside {
		c.Column(width, 0, c.H)
	} else {
		at = c.Part(0, height, c.W, c.H-height)
	}
	at.Rule(0, "why", false)
	if r := t.selected(); r != nil {
		m.text.Lines = r.explain(at.W - 2)
		m.text.Draw(at.Part(1, 1, at.W-1, at.H-1))
	}
}
