package tui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// flowTable is the view of all flows.
type flowTable struct {
	list    list
	sort    int // column
	reverse bool
	version int // of the store when order was made
	order   []*analyze.Flow
	sorted  int // column by which order was made
	turned  bool
	filter  *filter.Filter
	picked  int // number of the flow at the cursor, so that it stays there
	heads   []flowHead
}

// flowHead is where the head of a column stands on the screen.
type flowHead struct{ column, from, to int }

// flowColumn is a column of the table.
type flowColumn struct {
	name  string
	right bool
	text  func(m *Model, f *analyze.Flow) string
	less  func(m *Model, x, y *analyze.Flow) int
	role  func(m *Model, f *analyze.Flow) role
}

func bySide[T cmp.Ordered](value func(*machine.Summary) T) func(m *Model, x, y *analyze.Flow) int {
	worst := func(f *analyze.Flow) T {
		a, _ := f.Summary(machine.A)
		b, _ := f.Summary(machine.B)
		return max(value(&a), value(&b))
	}
	return func(_ *Model, x, y *analyze.Flow) int { return cmp.Compare(worst(x), worst(y)) }
}

// sideText writes a figure of both sides.
func sideText(f *analyze.Flow, text func(*machine.Summary) string) string {
	a, ok := f.Summary(machine.A)
	if !ok {
		return ""
	}
	b, _ := f.Summary(machine.B)
	return text(&a) + " / " + text(&b)
}

var flowColumns = []flowColumn{
	{name: "#", right: true, text: func(_ *Model, f *analyze.Flow) string { return strconv.Itoa(f.ID) }, less: func(_ *Model, x, y *analyze.Flow) int { return cmp.Compare(x.ID, y.ID) }},
	{name: "protocol", text: func(_ *Model, f *analyze.Flow) string {
		if f.Pending() {
			return "…"
		}
		return show.FlowName(f)
	}, less: func(_ *Model, x, y *analyze.Flow) int { return cmp.Compare(show.FlowName(x), show.FlowName(y)) }},
	{
		name: "A", text: func(_ *Model, f *analyze.Flow) string { return f.A.String() }, less: func(_ *Model, x, y *analyze.Flow) int { return x.A.Compare(y.A) },
		role: func(*Model, *analyze.Flow) role { return roleSideA },
	},
	{
		name: "B", text: func(_ *Model, f *analyze.Flow) string { return f.B.String() }, less: func(_ *Model, x, y *analyze.Flow) int { return x.B.Compare(y.B) },
		role: func(*Model, *analyze.Flow) role { return roleSideB },
	},
	{name: "packets A / B", right: true, text: func(_ *Model, f *analyze.Flow) string {
		return show.Grouped(f.Packets[0]) + " / " + show.Grouped(f.Packets[1])
	}, less: func(_ *Model, x, y *analyze.Flow) int {
		return cmp.Compare(x.Packets[0]+x.Packets[1], y.Packets[0]+y.Packets[1])
	}},
	{name: "never acked", right: true, text: func(_ *Model, f *analyze.Flow) string {
		return sideText(f, func(s *machine.Summary) string { return show.Percent(s.NeverAcked) })
	}, less: bySide(func(s *machine.Summary) float64 { return s.NeverAcked })},
	{name: "loss", right: true, text: func(_ *Model, f *analyze.Flow) string {
		return sideText(f, func(s *machine.Summary) string { return show.Percent(s.Loss) })
	}, less: bySide(func(s *machine.Summary) float64 { return s.Loss })},
	{name: "RTT ms", right: true, text: func(_ *Model, f *analyze.Flow) string {
		return sideText(f, func(s *machine.Summary) string { return show.Millis(s.RTT) })
	}, less: bySide(func(s *machine.Summary) time.Duration { return s.RTT })},
	{name: "resends", right: true, text: func(_ *Model, f *analyze.Flow) string {
		a, _ := f.Summary(machine.A)
		b, _ := f.Summary(machine.B)
		if a.Resends+b.Resends == 0 {
			return ""
		}
		return show.Grouped(a.Resends + b.Resends)
	}, less: bySide(func(s *machine.Summary) uint64 { return s.Resends })},
	{name: "worst wait", right: true, text: func(m *Model, f *analyze.Flow) string {
		if w := m.store.worst(f); w > 0 {
			return waitText(w)
		}
		return ""
	}, less: func(m *Model, x, y *analyze.Flow) int { return cmp.Compare(m.store.worst(x), m.store.worst(y)) }},
	{name: "findings", text: func(_ *Model, f *analyze.Flow) string { return findingsText(f) }, less: func(_ *Model, x, y *analyze.Flow) int {
		return cmp.Compare(gravity(x), gravity(y))
	}, role: func(_ *Model, f *analyze.Flow) role { return gravestRole(f) }},
	{name: "traffic", text: func(m *Model, f *analyze.Flow) string { return m.store.spark(f) }, less: func(_ *Model, x, y *analyze.Flow) int { return cmp.Compare(x.First, y.First) }},
}

// flowDrops says which columns go first where there is no room, the least needed first.
var flowDrops = []string{"resends", "loss", "traffic", "packets A / B", "worst wait", "B", "never acked", "RTT ms"}

func waitText(d time.Duration) string {
	if d >= time.Second {
		return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + " s"
	}
	return strconv.FormatFloat(float64(d)/1e6, 'f', 1, 64) + " ms"
}

// findingsText counts findings by severity: 1E 3W 2N.
func findingsText(f *analyze.Flow) string {
	n := show.Severities(f)
	var parts []string
	for sev := int(machine.Error); sev >= 0; sev-- {
		if n[sev] > 0 {
			parts = append(parts, strconv.FormatUint(n[sev], 10)+string(severityLetter(machine.Severity(sev))))
		}
	}
	return strings.Join(parts, " ")
}

func severityLetter(s machine.Severity) byte { return "NWE"[s] }

func severityRole(s machine.Severity) role { return [...]role{roleNote, roleWarn, roleError}[s] }

// gravity ranks flows by their findings.
func gravity(f *analyze.Flow) uint64 {
	n := show.Severities(f)
	return n[machine.Error]<<40 + n[machine.Warn]<<20 + n[machine.Note]
}

func gravestRole(f *analyze.Flow) role {
	n := show.Severities(f)
	for sev := int(machine.Error); sev >= 0; sev-- {
		if n[sev] > 0 {
			return severityRole(machine.Severity(sev))
		}
	}
	return roleText
}

func (s *Store) worst(f *analyze.Flow) time.Duration {
	if x := s.figures[f.ID]; x != nil {
		return x.worst
	}
	return 0
}

var sparkRunes = []rune(" ▁▂▃▄▅▆▇█")

// spark draws a flow's packets over the time of the capture.
func (s *Store) spark(f *analyze.Flow) string {
	x := s.figures[f.ID]
	if x == nil || s.growing && s.pass == 1 {
		return ""
	}
	cells := &x.spark
	most := slices.Max(cells[:])
	var b strings.Builder
	for _, n := range cells {
		i := 0
		if n > 0 {
			i = 1 + int(uint64(n)*uint64(len(sparkRunes)-2)/uint64(most))
		}
		b.WriteRune(sparkRunes[min(i, len(sparkRunes)-1)])
	}
	return b.String()
}

// settle sorts the flows anew where something has changed, and keeps the
// cursor at its flow.
func (t *flowTable) settle(m *Model) {
	if t.version == m.store.version && t.sorted == t.sort && t.turned == t.reverse && t.filter == m.packet.filter && t.order != nil {
		return
	}
	if t.picked == 0 && t.list.cursor >= 0 && t.list.cursor < len(t.order) {
		t.picked = t.order[t.list.cursor].ID
	}
	t.version, t.sorted, t.turned, t.filter = m.store.version, t.sort, t.reverse, m.packet.filter
	t.order = t.order[:0]
	for _, f := range m.store.Flows() {
		if t.filter == nil || m.flowPasses(f) {
			t.order = append(t.order, f)
		}
	}
	column := &flowColumns[min(t.sort, len(flowColumns)-1)]
	if t.sort != 0 || t.reverse {
		slices.SortStableFunc(t.order, func(x, y *analyze.Flow) int {
			c := column.less(m, x, y)
			if t.reverse {
				return -c
			}
			return c
		})
	}
	if t.picked != 0 && t.sort != 0 {
		if i := slices.IndexFunc(t.order, func(f *analyze.Flow) bool { return f.ID == t.picked }); i >= 0 {
			t.list.cursor = i
		}
	}
	t.picked = 0
}

// flowPasses asks the filter about a flow: its figures at the end, its addresses
// either way round, and whether a rule found something in it; where more is asked,
// whether one of its packets passes.
func (m *Model) flowPasses(flow *analyze.Flow) bool {
	f := m.packet.filter
	if s := m.packet.sieve; f.Scope()&^ofFlows != 0 && s != nil {
		return s.flows[flow.ID]
	}
	for _, r := range filter.FlowRecords(flow, m.store.in.FileName(flow.FirstRef.File())) {
		if f.Match(r) {
			return true
		}
	}
	return false
}

// selected is the flow at the cursor; nil for none.
func (t *flowTable) selected(m *Model) *analyze.Flow {
	t.settle(m)
	if t.list.cursor >= len(t.order) || t.list.cursor < 0 {
		return nil
	}
	return t.order[t.list.cursor]
}

func (t *flowTable) sortNext(m *Model) {
	t.sort = (t.sort + 1) % len(flowColumns)
	t.reverse = t.sort >= 4 && t.sort <= 10 // figures: the largest first
	m.config.FlowSort, m.config.FlowReverse = t.sort, t.reverse
	m.say("sorted by %s: i turns it around", flowColumns[t.sort].name)
}

// clickHead sorts by the column whose head is at a place of its line; where that is
// so, it turns the order around.
func (t *flowTable) clickHead(m *Model, x int) {
	for _, h := range t.heads {
		switch {
		case x < h.from || x >= h.to:
		case h.column == t.sort:
			m.sortTurn()
		default:
			t.sort = h.column - 1
			t.sortNext(m)
		}
	}
}

// sortBy sorts by a column's name.
func (t *flowTable) sortBy(m *Model, name string) bool {
	for i := range flowColumns {
		if strings.EqualFold(flowColumns[i].name, name) {
			t.sort = i - 1
			t.sortNext(m)
			return true
		}
	}
	return false
}
