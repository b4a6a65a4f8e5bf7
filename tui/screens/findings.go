package screens

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/gamelog"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// FindingTable shows the findings, grouped by rule. The explanation is beside
// them.
type FindingTable struct {
	list    draw.List
	rows    []findingRow
	sort    int // 0 by gravity, 1 by count, 2 by flow
	reverse bool
	version int
	width   int // columns of the list
	flow    int // the open flow; 0 for all
	filter  *filter.Filter
	refused error // why the filter is ignored; nil if it is applied
	frame   int   // which frame of the finding Enter shows next
	later   *findingGather
}

// findingRow is the heading of a rule, or one of the rule's findings.
type findingRow struct {
	rule    *machine.Rule
	finding *analyze.Finding // nil for a heading
	count   uint64           // in a heading: the sum of the findings
}

var findingOrders = []string{"gravity", "count", "flow"}

// settle updates the rows after a change.
func (t *FindingTable) settle(br *browser.Browser) {
	if t.version == br.Store.Version() && t.flow == br.Flow && t.filter == br.Filter {
		return
	}
	if t.later != nil && t.version >= 0 && t.flow == br.Flow && t.filter == br.Filter {
		return // wait for it: it redraws the screen, which calls settle again
	}
	t.version, t.flow, t.filter = br.Store.Version(), br.Flow, br.Filter
	t.refused = br.Refusal(browser.Findings)
	g := &findingGather{
		flow: br.Flow, sort: t.sort, reverse: t.reverse, byRule: map[*machine.Rule][]*analyze.Finding{},
		count: map[*machine.Rule]uint64{}, session: br.Store.Session(),
	}
	t.later = nil
	if !g.gather(br, t, store.FlowsAtOnce) {
		t.rows = g.rows()
		return
	}
	t.later = g
	s := br.Store
	s.Work(func() {
		wanted := true
		gather := func() bool { wanted = t.later == g; return wanted && g.gather(br, t, store.FlowsAtOnce) }
		if !s.Parts(gather) || !wanted {
			return
		}
		rows := g.rows()
		s.Lock()
		defer s.Unlock()
		if t.later == g {
			t.rows, t.later = rows, nil
			s.Redraw()
		}
	})
}

// findingGather collects the findings of all flows, some flows at a time: there
// may be a million flows.
type findingGather struct {
	flow    int // 0 for all
	sort    int
	reverse bool
	session *analyze.Session
	next    int // index of the next flow to read
	byRule  map[*machine.Rule][]*analyze.Finding
	count   map[*machine.Rule]uint64
	rules   []*machine.Rule
}

// gather adds the findings of up to most flows. It returns false when there are
// no more flows.
func (g *findingGather) gather(br *browser.Browser, t *FindingTable, most int) bool {
	flows := br.Store.Flows()
	if g.session != br.Store.Session() { // the second run replaces the flows
		g.session, g.next, g.rules = br.Store.Session(), 0, nil
		clear(g.byRule)
		clear(g.count)
	}
	for ; g.next < len(flows) && most > 0; most-- {
		f := flows[g.next]
		g.next++
		if g.flow != 0 && f.ID != g.flow {
			continue
		}
		for _, x := range f.Findings() {
			if t.filter != nil && t.refused == nil && !br.FindingPasses(x) {
				continue
			}
			if g.byRule[x.Rule] == nil {
				g.rules = append(g.rules, x.Rule)
			}
			g.byRule[x.Rule] = append(g.byRule[x.Rule], x)
			g.count[x.Rule] += x.Count
		}
	}
	return g.next < len(flows)
}

// rows returns the rows of the table. It runs without the lock.
func (g *findingGather) rows() (out []findingRow) {
	slices.SortStableFunc(g.rules, func(x, y *machine.Rule) int {
		c := cmp.Or(cmp.Compare(y.Severity, x.Severity), cmp.Compare(x.ID, y.ID))
		switch g.sort {
		case 1:
			c = cmp.Compare(g.count[y], g.count[x])
		case 2:
			c = cmp.Compare(g.byRule[x][0].Flow.ID, g.byRule[y][0].Flow.ID)
		}
		if g.reverse {
			return -c
		}
		return c
	})
	for _, r := range g.rules {
		out = append(out, findingRow{rule: r, count: g.count[r]})
		for _, x := range g.byRule[r] {
			out = append(out, findingRow{rule: r, finding: x})
		}
	}
	return out
}

// Area returns the area of the rows. The explanation has the columns beside it.
func (t *FindingTable) Area() (rows *draw.List, line, width int) { return &t.list, 3, t.width }

// Move moves the cursor.
func (t *FindingTable) Move(br *browser.Browser, by int) {
	t.list.Cursor += by
	t.frame, br.Text.List = 0, draw.List{}
}

// Matches searches the rules and what they found.
func (t *FindingTable) Matches(_ *browser.Browser, s *Search) (rows, at int, has func(row int) bool) {
	return len(t.rows), t.list.Cursor, func(row int) bool {
		x := &t.rows[row]
		if x.finding != nil {
			return s.finds(x.rule.ID + " " + x.finding.Message())
		}
		return s.finds(x.rule.ID + " " + x.rule.Summary)
	}
}

// Copy returns the explanation of the row at the cursor.
func (t *FindingTable) Copy(br *browser.Browser) string {
	if r := t.selected(); r != nil {
		return plainText(r.explain(br.Store.Logs(), 0))
	}
	return ""
}

// Show opens the findings with the cursor at one of them.
func (t *FindingTable) Show(br *browser.Browser, x *analyze.Finding) {
	br.Show(browser.Findings)
	if br.Flow != 0 {
		br.OpenFlow(x.Flow.ID)
	}
	t.settle(br)
	at := slices.IndexFunc(t.rows, func(r findingRow) bool { // the second run makes the findings anew
		y := r.finding
		return y != nil && y.Rule == x.Rule && y.Flow.ID == x.Flow.ID && y.Side == x.Side
	})
	if at < 0 {
		br.Fail("%s is not in the list: a filter hides it, or the list is being made", x.Rule.ID)
		return
	}
	t.Move(br, at-t.list.Cursor)
}

// SortTurn reverses the order.
func (t *FindingTable) SortTurn(*browser.Browser) {
	t.reverse = !t.reverse
	t.version = -1
}

// SortNext sorts by the next order: gravity, count, flow.
func (t *FindingTable) SortNext(br *browser.Browser) {
	t.sort = (t.sort + 1) % len(findingOrders)
	t.version = -1
	br.Say("sorted by %s: i turns it around", findingOrders[t.sort])
}

// selected returns the row at the cursor, or nil.
func (t *FindingTable) selected() *findingRow {
	if t.list.Cursor < 0 || t.list.Cursor >= len(t.rows) {
		return nil
	}
	return &t.rows[t.list.Cursor]
}

// Enter shows the first frame of the finding. When the user returns and presses
// it again, it shows the next frame.
func (t *FindingTable) Enter(br *browser.Browser) {
	r := t.selected()
	if r == nil {
		return
	}
	x := r.finding
	if x == nil {
		if t.list.Cursor+1 < len(t.rows) {
			x = t.rows[t.list.Cursor+1].finding
		}
	}
	if x == nil || len(x.Refs) == 0 {
		return
	}
	refs := slices.Compact(slices.Clone(x.Refs))
	ref := refs[t.frame%len(refs)]
	t.frame++
	flow := br.Flow
	br.JumpRef(ref)
	if flow == 0 && br.Store.FlowID(br.Selected) == x.Flow.ID {
		br.Flow = x.Flow.ID
		br.Refilter()
	}
	br.Say("%s: frame %s, %d of %d", x.Rule.ID, br.Store.Frame(ref), (t.frame-1)%len(refs)+1, len(refs))
}

// explain formats the row for the pane beside the list.
func (r *findingRow) explain(logs *gamelog.Report, width int) (lines []string) {
	lines = append(lines, fmt.Sprintf("\x1b[1m%s\x1b[0m  %s", r.rule.ID, r.rule.Severity), "")
	if x := r.finding; x != nil {
		lines = append(lines, strings.Split(show.Wrap(x.Message(), "", width), "\n")...)
		if why, ok := logs.Finding(x); ok {
			lines = append(lines, strings.Split(show.Wrap("log: "+why.String(), "", width), "\n")...)
		}
		lines = append(lines, "",
			fmt.Sprintf("flow %d, side %s %s, %s", x.Flow.ID, strings.ToUpper(x.Side.String()), x.Flow.Addr(x.Side),
				x.Certainty))
		frames := "frames " + show.FrameList(x)
		lines = append(lines, strings.Split(show.Wrap(frames, "", width), "\n")...)
		lines = append(lines, "enter goes there, again to the next", "")
	} else {
		lines = append(lines, strings.Split(show.Wrap(r.rule.Summary, "", width), "\n")...)
		lines = append(lines, "")
	}
	for part := range strings.SplitSeq(r.rule.Explain, "\n\n") {
		lines = append(lines, strings.Split(show.Wrap(strings.ReplaceAll(part, "\n", " "), "", width), "\n")...)
		lines = append(lines, "")
	}
	return lines
}

// Draw draws the list, and the explanation of the row at the cursor.
func (t *FindingTable) Draw(br *browser.Browser, c draw.Canvas) {
	t.settle(br)
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
		x := row.Text(5, 0, pick(draw.Dim),
			fmt.Sprintf("flow %d %s ", r.finding.Flow.ID, strings.ToUpper(r.finding.Side.String())))
		x = row.Text(x, 0, over, r.finding.Certainty.String()+" ")
		row.Text(x, 0, over, r.finding.Message())
	}
	if len(t.rows) == 0 {
		var health show.Health
		for _, f := range br.Store.Flows() {
			health.Add(f)
		}
		text := "No rule fired. " + health.String()
		switch {
		case !br.Store.Settled():
			text = "no rule fired so far"
		case br.Filter != nil:
			text = "no finding matches the filter"
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
		br.Text.Lines = r.explain(br.Store.Logs(), at.W-2)
		br.Text.Draw(at.Part(1, 1, at.W-1, at.H-1))
	}
}
