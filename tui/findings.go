package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// findingTable is what the rules found, grouped by rule; the explanation stands
// at the side.
type findingTable struct {
	list    draw.List
	rows    []findingRow
	sort    int // 0 by gravity, 1 by count, 2 by flow
	reverse bool
	version int
	width   int // columns of the list
	flow    int // of the flow that is open; 0 for all
	filter  *filter.Filter
	refused error // why the filter is not asked; nil where it is
	frame   int   // which of the finding's frames enter goes to next
	later   *findingGather
}

// findingRow is a heading over a rule's findings, or one of them.
type findingRow struct {
	rule    *machine.Rule
	finding *analyze.Finding // nil for a heading
	count   uint64           // of a heading
}

var findingOrders = []string{"gravity", "count", "flow"}

// settle gathers the findings anew where something has changed.
func (t *findingTable) settle(m *Model) {
	if t.version == m.store.Version() && t.flow == m.flow && t.filter == m.packet.filter {
		return
	}
	if t.later != nil && t.version >= 0 && t.flow == m.flow && t.filter == m.packet.filter {
		return // that one first: it is drawn, and asked again
	}
	t.version, t.flow, t.filter = m.store.Version(), m.flow, m.packet.filter
	t.refused = m.refusal(ofFindings, "findings")
	g := &findingGather{flow: m.flow, sort: t.sort, reverse: t.reverse, byRule: map[*machine.Rule][]*analyze.Finding{}, count: map[*machine.Rule]uint64{}, session: m.store.Session()}
	t.later = nil
	if !g.look(m, t, store.FlowsAtOnce) {
		t.rows = g.rows()
		return
	}
	t.later = g
	s := m.store
	s.Work(func() {
		wanted := true
		look := func() bool { wanted = t.later == g; return wanted && g.look(m, t, store.FlowsAtOnce) }
		if !s.Parts(look) || !wanted {
			return
		}
		rows := g.rows()
		s.Lock()
		defer s.Unlock()
		if t.later == g {
			t.rows, t.later = rows, nil
			s.Poke()
		}
	})
}

// findingGather goes through the flows for their findings, some flows at a time:
// there may be a million.
type findingGather struct {
	flow    int // 0 for all
	sort    int
	reverse bool
	session *analyze.Session
	next    int // flow to be looked at
	byRule  map[*machine.Rule][]*analyze.Finding
	count   map[*machine.Rule]uint64
	rules   []*machine.Rule
}

// look takes up the findings of so many flows; false where there are no more.
func (g *findingGather) look(m *Model, t *findingTable, most int) bool {
	flows := m.store.Flows()
	if g.session != m.store.Session() { // the second run has flows of its own
		g.session, g.next, g.rules = m.store.Session(), 0, nil
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
			if t.filter != nil && t.refused == nil && !m.findingPasses(x) {
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

// rows makes the rows of the table. It runs without the lock.
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

func (t *findingTable) sortNext(m *Model) {
	t.sort = (t.sort + 1) % len(findingOrders)
	t.version = -1
	m.say("sorted by %s: i turns it around", findingOrders[t.sort])
}

// selected is the row at the cursor; nil for none.
func (t *findingTable) selected() *findingRow {
	if t.list.Cursor < 0 || t.list.Cursor >= len(t.rows) {
		return nil
	}
	return &t.rows[t.list.Cursor]
}

// enter goes to the first frame of the finding; come back and enter again for
// the next one.
func (t *findingTable) enter(m *Model) {
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
	flow := m.flow
	m.jumpRef(ref)
	if flow == 0 && m.store.FlowID(m.packet.selected) == x.Flow.ID {
		m.flow = x.Flow.ID
		m.packet.sift(m)
	}
	m.say("%s: frame %s, %d of %d", x.Rule.ID, m.store.Frame(ref), (t.frame-1)%len(refs)+1, len(refs))
}

// explain words the row for the pane at the side.
func (r *findingRow) explain(width int) (lines []string) {
	lines = append(lines, fmt.Sprintf("\x1b[1m%s\x1b[0m  %s", r.rule.ID, r.rule.Severity), "")
	if x := r.finding; x != nil {
		lines = append(lines, strings.Split(show.Wrap(x.Message(), "", width), "\n")...)
		lines = append(lines, "", fmt.Sprintf("flow %d, side %s %s, %s", x.Flow.ID, strings.ToUpper(x.Side.String()), x.Flow.Addr(x.Side), x.Certainty))
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
