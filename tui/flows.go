package tui

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// flowTable is the view of all flows.
type flowTable struct {
	list    draw.List
	sort    int // column
	reverse bool
	version int // of the store when order was made
	order   []*analyze.Flow
	sorted  int // column by which order was made
	turned  bool
	filter  *filter.Filter
	picked  int // number of the flow at the cursor, so that it stays there
	heads   []flowHead
	made    time.Time     // when order was made
	cost    time.Duration // what that took
	later   *flowOrder    // being made in the background; nil for none
}

// orderShare is the share of the time that goes into ordering flows anew while the
// capture is read: one of so many.
const orderShare = 10

// flowHead is where the head of a column stands on the screen.
type flowHead struct{ column, from, to int }

// flowColumn is a column of the table.
type flowColumn struct {
	name  string
	right bool
	text  func(m *Model, f *analyze.Flow) string
	key   func(m *Model, f *analyze.Flow) flowKey
	role  func(m *Model, f *analyze.Flow) draw.Role
}

// flowKey is what a column sorts by: numbers first, then words, then addresses.
type flowKey struct {
	number float64
	word   string
	addr   netip.AddrPort
}

func (k *flowKey) compare(o *flowKey) int {
	return cmp.Or(cmp.Compare(k.number, o.number), cmp.Compare(k.word, o.word), k.addr.Compare(o.addr))
}

func bySide[T uint64 | float64 | time.Duration](value func(*machine.Summary) T) func(m *Model, f *analyze.Flow) flowKey {
	return func(_ *Model, f *analyze.Flow) flowKey {
		a, _ := f.Summary(machine.A)
		b, _ := f.Summary(machine.B)
		return flowKey{number: float64(max(value(&a), value(&b)))}
	}
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
	{name: "#", right: true, text: func(_ *Model, f *analyze.Flow) string { return strconv.Itoa(f.ID) }, key: func(_ *Model, f *analyze.Flow) flowKey { return flowKey{number: float64(f.ID)} }},
	{name: "protocol", text: func(_ *Model, f *analyze.Flow) string {
		if f.Pending() {
			return "…"
		}
		return show.FlowName(f)
	}, key: func(_ *Model, f *analyze.Flow) flowKey { return flowKey{word: show.FlowName(f)} }},
	{
		name: "A", text: func(_ *Model, f *analyze.Flow) string { return f.A.String() }, key: func(_ *Model, f *analyze.Flow) flowKey { return flowKey{addr: f.A} },
		role: func(*Model, *analyze.Flow) draw.Role { return draw.SideA },
	},
	{
		name: "B", text: func(_ *Model, f *analyze.Flow) string { return f.B.String() }, key: func(_ *Model, f *analyze.Flow) flowKey { return flowKey{addr: f.B} },
		role: func(*Model, *analyze.Flow) draw.Role { return draw.SideB },
	},
	{name: "packets A / B", right: true, text: func(_ *Model, f *analyze.Flow) string {
		return show.Grouped(f.Packets[0]) + " / " + show.Grouped(f.Packets[1])
	}, key: func(_ *Model, f *analyze.Flow) flowKey {
		return flowKey{number: float64(f.Packets[0] + f.Packets[1])}
	}},
	{name: "never acked", right: true, text: func(_ *Model, f *analyze.Flow) string {
		return sideText(f, func(s *machine.Summary) string { return show.Percent(s.NeverAcked) })
	}, key: bySide(func(s *machine.Summary) float64 { return s.NeverAcked })},
	{name: "loss", right: true, text: func(_ *Model, f *analyze.Flow) string {
		return sideText(f, func(s *machine.Summary) string { return show.Percent(s.Loss) })
	}, key: bySide(func(s *machine.Summary) float64 { return s.Loss })},
	{name: "RTT ms", right: true, text: func(_ *Model, f *analyze.Flow) string {
		return sideText(f, func(s *machine.Summary) string { return show.Millis(s.RTT) })
	}, key: bySide(func(s *machine.Summary) time.Duration { return s.RTT })},
	{name: "resends", right: true, text: func(_ *Model, f *analyze.Flow) string {
		a, _ := f.Summary(machine.A)
		b, _ := f.Summary(machine.B)
		if a.Resends+b.Resends == 0 {
			return ""
		}
		return show.Grouped(a.Resends + b.Resends)
	}, key: bySide(func(s *machine.Summary) uint64 { return s.Resends })},
	{name: "worst wait", right: true, text: func(m *Model, f *analyze.Flow) string {
		if w := m.store.Worst(f); w > 0 {
			return waitText(w)
		}
		return ""
	}, key: func(m *Model, f *analyze.Flow) flowKey { return flowKey{number: float64(m.store.Worst(f))} }},
	{name: "findings", text: func(_ *Model, f *analyze.Flow) string { return findingsText(f) }, key: func(_ *Model, f *analyze.Flow) flowKey {
		return flowKey{number: float64(gravity(f))}
	}, role: func(_ *Model, f *analyze.Flow) draw.Role { return gravestRole(f) }},
	{name: "traffic", text: func(m *Model, f *analyze.Flow) string { return trafficText(m.store.Traffic(f)) }, key: func(_ *Model, f *analyze.Flow) flowKey { return flowKey{number: float64(f.First)} }},
}

// flowDrops says which columns go first where there is no room, the least needed first.
var flowDrops = []string{"resends", "loss", "traffic", "packets A / B", "worst wait", "B", "never acked", "RTT ms"}

// waitText writes a length of time for a narrow column. One wrong timestamp makes
// it years long, or negative.
func waitText(d time.Duration) string {
	const day = 24 * time.Hour
	switch long := max(d, -max(d, -math.MaxInt64)); {
	case long >= 365*day:
		return strconv.FormatFloat(d.Hours()/(365.25*24), 'f', 1, 64) + " y"
	case long >= 2*day:
		return strconv.FormatFloat(d.Hours()/24, 'f', 1, 64) + " d"
	case long >= time.Second:
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

func severityRole(s machine.Severity) draw.Role {
	return [...]draw.Role{draw.Note, draw.Warn, draw.Error}[s]
}

// gravity ranks flows by their findings.
func gravity(f *analyze.Flow) uint64 {
	n := show.Severities(f)
	return n[machine.Error]<<40 + n[machine.Warn]<<20 + n[machine.Note]
}

func gravestRole(f *analyze.Flow) draw.Role {
	n := show.Severities(f)
	for sev := int(machine.Error); sev >= 0; sev-- {
		if n[sev] > 0 {
			return severityRole(machine.Severity(sev))
		}
	}
	return draw.Text
}

// trafficText draws how packets are spread over the time of the capture.
func trafficText(stretches []uint32) string {
	if len(stretches) == 0 {
		return ""
	}
	most := slices.Max(stretches)
	var b strings.Builder
	for _, n := range stretches {
		b.WriteRune(draw.Spark(int64(n), int64(most)))
	}
	return b.String()
}

// sortedFlow is a flow with its key, which is dear to make.
type sortedFlow struct {
	key  flowKey
	flow *analyze.Flow
}

// settle sorts the flows anew where something has changed, and keeps the
// cursor at its flow.
func (t *flowTable) settle(m *Model) {
	if t.version == m.store.Version() && t.sorted == t.sort && t.turned == t.reverse && t.filter == m.packet.filter && t.order != nil {
		return
	}
	// Many flows are not sorted at every batch that is read.
	asked := t.sorted != t.sort || t.turned != t.reverse || t.filter != m.packet.filter || t.version < 0
	begun := time.Now()
	if !asked && !m.store.Settled() && begun.Sub(t.made)/orderShare < t.cost {
		return
	}
	if len(m.store.Flows()) > store.FlowsAtOnce {
		t.orderMany(m, asked)
		return
	}
	t.later = nil
	defer func() { t.made, t.cost = time.Now(), time.Since(begun) }()
	if t.picked == 0 && t.list.Cursor >= 0 && t.list.Cursor < len(t.order) {
		t.picked = t.order[t.list.Cursor].ID
	}
	o := t.begin(m)
	o.look(m, store.FlowsAtOnce)
	t.take(o)
}

// flowPasses asks the filter about a flow: its figures at the end, its addresses
// either way round, and whether a rule found something in it; where more is asked,
// whether one of its packets passes.
func (m *Model) flowPasses(flow *analyze.Flow) bool {
	f := m.packet.filter
	if s := m.packet.sieve; f.Scope()&^ofFlows != 0 && s != nil {
		return s.FlowPassed(flow.ID)
	}
	for _, r := range filter.FlowRecords(flow, m.store.FileName(flow.FirstRef.File())) {
		if f.Match(r) {
			return true
		}
	}
	return false
}

// selected is the flow at the cursor; nil for none.
func (t *flowTable) selected(m *Model) *analyze.Flow {
	t.settle(m)
	if t.list.Cursor >= len(t.order) || t.list.Cursor < 0 {
		return nil
	}
	return t.order[t.list.Cursor]
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
