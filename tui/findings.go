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
)

// findingTable is what the rules found, grouped by rule; the explanation stands
// at the side.
type findingTable struct {
	list    list
	rows    []findingRow
	sort    int // 0 by gravity, 1 by count, 2 by flow
	reverse bool
	version int
	width   int // columns of the list
	flow    int // of the flow that is open; 0 for all
	filter  *filter.Filter
	refused error // why the filter is not asked; nil where it is
	frame   int   // which of the finding's frames enter goes to next
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
	if t.version == m.store.version && t.flow == m.flow && t.filter == m.packet.filter {
		return
	}
	t.version, t.flow, t.filter = m.store.version, m.flow, m.packet.filter
	t.refused = m.refusal(ofFindings, "findings")
	byRule := map[*machine.Rule][]*analyze.Finding{}
	var rules []*machine.Rule
	for _, f := range m.store.Flows() {
		if m.flow != 0 && f.ID != m.flow {
			continue
		}
		for _, x := range f.Findings() {
			if t.filter != nil && t.refused == nil && !m.findingPasses(x) {
				continue
			}
			if byRule[x.Rule] == nil {
				rules = append(rules, x.Rule)
			}
			byRule[x.Rule] = append(byRule[x.Rule], x)
		}
	}
	count := func(r *machine.Rule) (n uint64) {
		for _, x := range byRule[r] {
			n += x.Count
		}
		return n
	}
	slices.SortStableFunc(rules, func(x, y *machine.Rule) int {
		c := cmp.Or(cmp.Compare(y.Severity, x.Severity), cmp.Compare(x.ID, y.ID))
		switch t.sort {
		case 1:
			c = cmp.Compare(count(y), count(x))
		case 2:
			c = cmp.Compare(byRule[x][0].Flow.ID, byRule[y][0].Flow.ID)
		}
		if t.reverse {
			return -c
		}
		return c
	})
	t.rows = t.rows[:0]
	for _, r := range rules {
		t.rows = append(t.rows, findingRow{rule: r, count: count(r)})
		for _, x := range byRule[r] {
			t.rows = append(t.rows, findingRow{rule: r, finding: x})
		}
	}
}

func (t *findingTable) sortNext(m *Model) {
	t.sort = (t.sort + 1) % len(findingOrders)
	t.version = -1
	m.say("sorted by %s: i turns it around", findingOrders[t.sort])
}

// selected is the row at the cursor; nil for none.
func (t *findingTable) selected() *findingRow {
	if t.list.cursor < 0 || t.list.cursor >= len(t.rows) {
		return nil
	}
	return &t.rows[t.list.cursor]
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
		if t.list.cursor+1 < len(t.rows) {
			x = t.rows[t.list.cursor+1].finding
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
	if flow == 0 && m.store.timeline.FlowID(m.packet.selected) == x.Flow.ID {
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
