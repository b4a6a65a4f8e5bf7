package tui

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ackscope/ackscope/show"
)

// leastParts is the height from which on a view is parted in two: below that the
// list has all of it.
const leastParts = 9

// drawAny paints a screen of any size. It wants the store's lock held.
func (m *Model) drawAny(c canvas) {
	if c.w < 20 || c.h < 6 {
		c.text(0, 0, roleText, "too small")
		return
	}
	m.draw(c)
}

// draw paints the whole screen. It wants the store's lock held.
func (m *Model) draw(c canvas) {
	m.w, m.h = c.w, c.h
	m.store.turn()
	for y := range c.h {
		c.fill(y, roleText)
	}
	m.settleHunt()
	m.settleSaving()
	if m.view != viewFlows {
		// The bars tell where the selection is: it must be settled before.
		m.packet.settle(m, 0)
	}
	m.drawTop(c.part(0, 0, c.w, 2))
	body := c.part(0, 2, c.w, c.h-3)
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
	m.drawBottom(c.part(0, c.h-1, c.w, 1))
	m.drawPrompt(c)
}

// drawEnd draws what made the capture end before its time, in full below what is left
// of the canvas.
func (m *Model) drawEnd(c canvas) canvas {
	err := m.store.end
	if err == nil {
		return c
	}
	lines := wrapLine(strings.ReplaceAll(err.Error(), "\n", "; "), c.w-2)
	lines = lines[:min(len(lines), max(c.h/3, 1))]
	for y, line := range lines {
		c.text(1, c.h-len(lines)+y, roleWarn, line)
	}
	return c.part(0, 0, c.w, c.h-len(lines))
}

// drawTop draws where one is, and the filter.
func (m *Model) drawTop(c canvas) {
	c.fill(0, roleBar)
	x := c.text(0, 0, roleBar, " ")
	where := viewNames[m.view]
	if f := m.focus(); m.view != viewFlows && m.flow != 0 && f != nil {
		where = fmt.Sprintf("flows ▸ %d %s %s ⇄ %s ▸ %s", f.ID, show.FlowName(f), f.A, f.B, where)
		if c.w < 110 {
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
	c.part(0, 0, c.w-textWidth(right)-1, 1).text(x, 0, roleBar, where)
	c.right(c.w, 0, roleBar, right)

	x = c.text(0, 1, roleDim, " filter ")
	switch f := m.packet.filter; {
	case f == nil && m.view == viewFlows:
		c.text(x, 1, roleDim, "none: f begins one, such as flow.rtt > 80ms")
	case f == nil:
		c.text(x, 1, roleDim, "none: f begins one")
	default:
		x = c.text(x, 1, roleText, f.String())
		c.text(x+1, 1, roleGood, "valid")
	}
	if err := m.refusal(m.asks(), viewNames[m.view]); err != nil {
		c.right(c.w-1, 1, roleWarn, fmt.Sprintf("  not asked about %s: all are shown", viewNames[m.view]))
	}
	if s := m.packet.sieve; s != nil && m.view != viewFlows && m.view != viewFindings && m.view != viewMessages {
		text := fmt.Sprintf("%s of %s", show.Grouped(s.hits.total), show.Plural(m.store.Len(), "packet"))
		if s.err != nil {
			text = s.err.Error()
		} else if !s.done && m.store.Len() > 0 {
			text += fmt.Sprintf("  (%d%% looked at)", 100*s.hits.scanned/m.store.Len())
		}
		c.right(c.w-1, 1, roleDim, "  "+text)
	}
}

// drawBottom draws what was told last, or the keys that matter here.
func (m *Model) drawBottom(c canvas) {
	if m.note != "" {
		r := roleNote
		if m.bad {
			r = roleError
		}
		c.text(1, 0, r, m.note)
		return
	}
	x := 1
	if m.keys.count > 0 || m.keys.pending != "" {
		x = c.text(x, 0, roleMark, countText(m.keys.count)+m.keys.pending+" ")
	}
	if m.help {
		for _, hint := range [][2]string{{"q", "close"}, {"j k", "scroll"}, {"Space", "a page on"}, {"g G", "first, last"}} {
			x = c.text(x, 0, roleKey, hint[0])
			x = c.text(x+1, 0, roleDim, hint[1]) + 2
		}
		return
	}
	for _, b := range bindingTable() {
		if b.hint == "" || !b.in(m.view) || b.hint == viewNames[m.view] {
			continue
		}
		keys := b.keys[0]
		if (m.view == viewFlows || m.view == viewMessages || m.view == viewFindings) && b.hint == "pane" || x+len(keys)+len(b.hint)+2 >= c.w {
			continue
		}
		x = c.text(x, 0, roleKey, keys)
		x = c.text(x+1, 0, roleDim, b.hint) + 2
	}
}

// drawPrompt draws the line being edited, over the last line of the screen, and
// what could complete it above.
func (m *Model) drawPrompt(c canvas) {
	p := &m.prompt
	if p.kind == promptNone {
		c.screen.HideCursor()
		return
	}
	y := c.h - 1
	label := " " + promptLabels[p.kind]
	if p.filters() {
		y = 1
		label += " "
	}
	for x := range c.w {
		c.text(x, y, roleText, " ")
	}
	x := c.text(0, y, roleFocus, label)
	status := ""
	statusRole := roleGood
	switch p.check.state {
	case checkValid:
		status = "valid"
	case checkInvalid:
		status, statusRole = "invalid", roleError
	case checkIncomplete:
		status, statusRole = "incomplete", roleWarn
	case checkEmpty:
	}
	room := c.part(0, y, c.w-len(status)-2, 1)
	text := p.line.String()
	shift := max(x+textWidth(string(p.line.text[:p.line.cursor]))+1-room.w, 0)
	room.part(x, 0, room.w-x, 1).text(-shift, 0, roleText, text)
	c.right(c.w-1, y, statusRole, status)
	c.screen.ShowCursor(c.x+x-shift+textWidth(string(p.line.text[:p.line.cursor])), c.y+y)
	if p.check.text != "" && p.check.state == checkInvalid {
		below := c.part(0, y+1, c.w, 1)
		below.fill(0, roleText)
		below.text(1, 0, roleError, p.check.text)
	}
	if len(p.shown) > 0 {
		at := y + 1
		if !p.filters() {
			at = y - 1
		}
		box := c.part(0, at, c.w, 1)
		box.fill(0, roleBar)
		x, from := 1, max(p.chosen-2, 0)
		for i := from; i < len(p.shown) && x < c.w; i++ {
			r := roleBar
			if i == p.chosen {
				r = roleLit
			}
			x = box.text(x, 0, r, " "+p.shown[i]+" ")
		}
		if f, ok := m.o.Table.Lookup(p.shown[max(p.chosen, 0)]); ok && p.filters() {
			doc := c.part(0, at+1, c.w, 1)
			doc.fill(0, roleText)
			doc.text(1, 0, roleDim, f.Kind.String()+": "+f.Doc)
		}
	}
}

func (m *Model) drawState(c canvas) {
	m.packet.settle(m, 0)
	if n := m.packet.selected; n >= 0 && n < m.store.Len() {
		m.drawRow(c.part(0, 0, c.w, 1), n, m.columnsShown(c.w), roleBold)
	}
	c.rule(1, m.statesTitle(), true)
	m.text.lines = m.sides.lines(m, c.w-2, max((c.h-14)/4, 2))
	m.drawText(c.part(1, 2, c.w-1, c.h-2))
}

// statesTitle names the pane of the state.
func (m *Model) statesTitle() string {
	f := m.focus()
	if f == nil || f.Protocol == nil {
		return "both sides"
	}
	title := fmt.Sprintf("both sides of flow %d at frame %s", f.ID, m.selectedRef())
	if m.sides.diff >= 0 && m.sides.diff < m.store.Len() {
		title += ", against " + m.store.Frame(m.store.timeline.At(m.sides.diff).Ref)
	}
	return title
}

func (m *Model) drawAutopsy(c canvas) {
	f := m.focus()
	title := "autopsy"
	if f != nil {
		title = fmt.Sprintf("autopsy of flow %d", f.ID)
	}
	c.rule(0, title, true)
	m.text.lines = nil
	for _, line := range m.autopsy() {
		m.text.lines = append(m.text.lines, wrapLine(line, c.w-2)...)
	}
	m.drawText(c.part(1, 1, c.w-1, c.h-1))
}

func (m *Model) drawFindings(c canvas) {
	t := &m.findings
	t.settle(m)
	width := c.w
	beside := c.w >= 100
	height := c.h
	switch {
	case beside:
		width = c.w * 45 / 100
	case c.h >= leastParts:
		height = c.h / 2
	}
	t.width = width
	c.part(0, 0, width, 1).rule(0, "findings by "+findingOrders[t.sort], true)
	rows := height - 1
	t.list.fit(len(t.rows), rows)
	for y := range rows {
		i := t.list.top + y
		if i >= len(t.rows) {
			break
		}
		r := &t.rows[i]
		row := c.part(0, y+1, width, 1)
		chosen := i == t.list.cursor
		over := roleText
		if chosen {
			over = roleSelected
			row.fill(0, over)
		}
		pick := func(r role) role {
			if chosen {
				return roleSelected
			}
			return r
		}
		if r.finding == nil {
			x := row.text(1, 0, pick(severityRole(r.rule.Severity)), string(severityLetter(r.rule.Severity))+" "+r.rule.ID)
			row.text(x+1, 0, pick(roleDim), "×"+show.Grouped(r.count))
			continue
		}
		x := row.text(5, 0, pick(roleDim), fmt.Sprintf("flow %d %s ", r.finding.Flow.ID, strings.ToUpper(r.finding.Side.String())))
		x = row.text(x, 0, over, r.finding.Certainty.String()+" ")
		row.text(x, 0, over, r.finding.Message())
	}
	if len(t.rows) == 0 {
		var health show.Health
		for _, f := range m.store.Flows() {
			health.Add(f)
		}
		text := "No rule fired. " + health.String()
		switch {
		case m.store.pass != 3:
			text = "no rule fired so far"
		case m.packet.filter != nil:
			text = "no finding passes the filter"
		}
		c.text(2, 2, roleDim, text)
		return
	}
	at := c.part(width+1, 0, c.w-width-1, c.h)
	if beside {
		c.column(width, 0, c.h)
	} else {
		at = c.part(0, height, c.w, c.h-height)
	}
	at.rule(0, "why", false)
	if r := t.selected(); r != nil {
		m.text.lines = r.explain(at.w - 2)
		m.drawText(at.part(1, 1, at.w-1, at.h-1))
	}
}
