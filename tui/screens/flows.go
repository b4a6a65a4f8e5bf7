package screens

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/show/table"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// FlowTable lists all flows.
type FlowTable struct {
	list    draw.List
	sort    int // index of the column
	reverse bool
	version int             // version of the store when Order was made
	Order   []*analyze.Flow // the flows as listed
	sorted  int             // column by which Order was made
	turned  bool
	filter  *filter.Filter
	picked  int           // number of the flow at the cursor, which follows that flow
	heads   []table.Place // position of each column at the last drawing
	made    time.Time     // when Order was made
	cost    time.Duration // how long that took
	later   *flowOrder    // being made in the background; nil for none
	cause   commonCause   // what the troubles of all flows have in common
	widths  flowWidths    // of the texts of each column
}

// orderShare limits sorting while a capture is read to one part in ten of the
// time.
const orderShare = 10

// flowColumn is a column of the table.
type flowColumn struct {
	name   string
	right  bool
	yields int // order of omission if there is no room: 1 first; 0 stays
	text   func(br *browser.Browser, f *analyze.Flow) string
	key    func(br *browser.Browser, f *analyze.Flow) flowKey
	role   func(br *browser.Browser, f *analyze.Flow) draw.Role
}

// flowKey is the sort key of a flow in a column. Numbers compare first, then
// words, then addresses.
type flowKey struct {
	number float64
	word   string
	addr   netip.AddrPort
}

func (k *flowKey) compare(o *flowKey) int {
	return cmp.Or(cmp.Compare(k.number, o.number), cmp.Compare(k.word, o.word), k.addr.Compare(o.addr))
}

// bySide returns a key function: the larger of both sides' figures.
func bySide[T uint64 | float64 | time.Duration](value func(*machine.Summary) T) func(br *browser.Browser,
	f *analyze.Flow) flowKey {
	return func(_ *browser.Browser, f *analyze.Flow) flowKey {
		a, _ := f.Summary(machine.A)
		b, _ := f.Summary(machine.B)
		return flowKey{number: float64(max(value(&a), value(&b)))}
	}
}

// sideText formats a figure of both sides.
func sideText(f *analyze.Flow, text func(*machine.Summary) string) string {
	a, ok := f.Summary(machine.A)
	if !ok {
		return ""
	}
	b, _ := f.Summary(machine.B)
	return text(&a) + " / " + text(&b)
}

var flowColumns = []flowColumn{
	{
		name: "#", right: true, text: func(_ *browser.Browser, f *analyze.Flow) string { return show.FlowNumber(f) },
		key: func(_ *browser.Browser, f *analyze.Flow) flowKey { return flowKey{number: float64(f.ID)} },
	},
	{name: "protocol", text: func(_ *browser.Browser, f *analyze.Flow) string {
		if f.Pending() {
			return "…"
		}
		return show.FlowName(f)
	}, key: func(_ *browser.Browser, f *analyze.Flow) flowKey { return flowKey{word: show.FlowName(f)} }},
	{
		name: "A", text: func(_ *browser.Browser, f *analyze.Flow) string { return f.A.String() },
		key:  func(_ *browser.Browser, f *analyze.Flow) flowKey { return flowKey{addr: f.A} },
		role: func(*browser.Browser, *analyze.Flow) draw.Role { return draw.SideA },
	},
	{
		name: "B", yields: 7, text: func(_ *browser.Browser, f *analyze.Flow) string { return f.B.String() },
		key:  func(_ *browser.Browser, f *analyze.Flow) flowKey { return flowKey{addr: f.B} },
		role: func(*browser.Browser, *analyze.Flow) draw.Role { return draw.SideB },
	},
	{name: "packets A / B", yields: 5, right: true, text: func(_ *browser.Browser, f *analyze.Flow) string {
		return show.Grouped(f.Packets[0]) + " / " + show.Grouped(f.Packets[1])
	}, key: func(_ *browser.Browser, f *analyze.Flow) flowKey {
		return flowKey{number: float64(f.Packets[0] + f.Packets[1])}
	}},
	{name: "never acked", yields: 8, right: true, text: func(_ *browser.Browser, f *analyze.Flow) string {
		return sideText(f, func(s *machine.Summary) string { return show.Percent(s.NeverAcked) })
	}, key: bySide(func(s *machine.Summary) float64 { return s.NeverAcked })},
	{name: "loss", yields: 3, right: true, text: func(_ *browser.Browser, f *analyze.Flow) string {
		return sideText(f, func(s *machine.Summary) string { return show.Percent(s.Loss) })
	}, key: bySide(func(s *machine.Summary) float64 { return s.Loss })},
	{name: "RTT ms", yields: 9, right: true, text: func(_ *browser.Browser, f *analyze.Flow) string {
		return sideText(f, func(s *machine.Summary) string { return show.Millis(s.RTT) })
	}, key: bySide(func(s *machine.Summary) time.Duration { return s.RTT })},
	{name: "resends", yields: 2, right: true, text: func(_ *browser.Browser, f *analyze.Flow) string {
		a, _ := f.Summary(machine.A)
		b, _ := f.Summary(machine.B)
		if a.Resends+b.Resends == 0 {
			return ""
		}
		return show.Grouped(a.Resends + b.Resends)
	}, key: bySide(func(s *machine.Summary) uint64 { return s.Resends })},
	{name: "worst wait", yields: 6, right: true, text: func(br *browser.Browser, f *analyze.Flow) string {
		if w := br.Store.Worst(f); w > 0 {
			return show.Wait(w)
		}
		return ""
	}, key: func(br *browser.Browser, f *analyze.Flow) flowKey { return flowKey{number: float64(br.Store.Worst(f))} }},
	{
		name: "findings", text: func(_ *browser.Browser, f *analyze.Flow) string { return findingsText(f) },
		key: func(_ *browser.Browser, f *analyze.Flow) flowKey {
			return flowKey{number: float64(gravity(f))}
		}, role: func(_ *browser.Browser, f *analyze.Flow) draw.Role { return gravestRole(f) },
	},
	{
		name: "traffic", yields: 4,
		text: func(br *browser.Browser, f *analyze.Flow) string { return draw.Sparkline(br.Store.Traffic(f)) },
		key:  func(_ *browser.Browser, f *analyze.Flow) flowKey { return flowKey{number: float64(f.First)} },
	},
	{name: "version", yields: 1, text: func(_ *browser.Browser, f *analyze.Flow) string {
		return versionWord(f)
	}, key: func(_ *browser.Browser, f *analyze.Flow) flowKey { return flowKey{word: versionWord(f)} }},
}

// versionWord names the versions that the sides of a flow can be, once where they are alike.
func versionWord(f *analyze.Flow) string {
	a, ok := f.Versions(machine.A)
	if !ok {
		return ""
	}
	b, _ := f.Versions(machine.B)
	if x, y := a.Short(), b.Short(); x != y {
		return x + " / " + y
	}
	return a.Short()
}

// findingsText formats the findings by severity: 1E 3W 2N.
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

// sortedFlow is a flow with its key, which is expensive to compute.
type sortedFlow struct {
	key  flowKey
	flow *analyze.Flow
}

// settle sorts the flows after a change. The cursor follows its flow.
func (t *FlowTable) settle(br *browser.Browser) {
	if t.version == br.Store.Version() && t.sorted == t.sort && t.turned == t.reverse && t.filter == br.Filter &&
		t.Order != nil {
		return
	}
	// While the capture is read, many flows are not sorted after every batch.
	asked := t.sorted != t.sort || t.turned != t.reverse || t.filter != br.Filter || t.version < 0
	begun := time.Now()
	if !asked && !br.Store.Settled() && begun.Sub(t.made)/orderShare < t.cost {
		return
	}
	if len(br.Store.Flows()) > store.FlowsAtOnce {
		t.orderMany(br, asked)
		return
	}
	t.later = nil
	defer func() { t.made, t.cost = time.Now(), time.Since(begun) }()
	if t.picked == 0 && t.list.Cursor >= 0 && t.list.Cursor < len(t.Order) {
		t.picked = t.Order[t.list.Cursor].ID
	}
	o := t.begin(br)
	o.gather(br, store.FlowsAtOnce)
	t.take(o)
}

// selected returns the flow at the cursor, or nil.
func (t *FlowTable) selected(br *browser.Browser) *analyze.Flow {
	t.settle(br)
	if t.list.Cursor >= len(t.Order) || t.list.Cursor < 0 {
		return nil
	}
	return t.Order[t.list.Cursor]
}

// Area returns the area of the rows.
func (t *FlowTable) Area() (rows *draw.List, line, width int) { return &t.list, 4, 0 }

// Move moves the cursor.
func (t *FlowTable) Move(_ *browser.Browser, by int) { t.list.Cursor += by }

// Enter shows the packets of the flow at the cursor.
func (t *FlowTable) Enter(br *browser.Browser) {
	if f := t.selected(br); f != nil {
		br.Open(f.ID)
	}
}

// Matches searches all columns of the flows.
func (t *FlowTable) Matches(br *browser.Browser, s *Search) (rows, at int, has func(row int) bool) {
	return len(t.Order), t.list.Cursor, func(row int) bool {
		var b strings.Builder
		for i := range flowColumns {
			fmt.Fprint(&b, flowColumns[i].text(br, t.Order[row]), " ")
		}
		return s.finds(b.String())
	}
}

// Copy returns the figures of the flow at the cursor.
func (t *FlowTable) Copy(br *browser.Browser) (text string) {
	f := t.selected(br)
	if f == nil {
		return ""
	}
	for i := range flowColumns {
		if s := strings.TrimSpace(flowColumns[i].text(br, f)); s != "" && flowColumns[i].name != "traffic" {
			text += s + "\t"
		}
	}
	return text
}

// Outdate forces the flows to be sorted again.
func (t *FlowTable) Outdate() { t.version = -1 }

// ResetOrder sorts the flows by their numbers.
func (t *FlowTable) ResetOrder() { t.sort, t.reverse = 0, false }

// SortTurn reverses the order.
func (t *FlowTable) SortTurn(br *browser.Browser) {
	t.reverse = !t.reverse
	br.Layout.FlowReverse = t.reverse
}

// SortNext sorts by the next column.
func (t *FlowTable) SortNext(br *browser.Browser) {
	t.sort = (t.sort + 1) % len(flowColumns)
	t.reverse = t.sort >= 4 && t.sort <= 10 // the largest figure first
	br.Layout.FlowSort, br.Layout.FlowReverse = t.sort, t.reverse
	br.Say("sorted by %s: i turns it around", flowColumns[t.sort].name)
}

// ClickHead sorts by the column whose head is at a position of the screen. A
// second click reverses the order. It returns false if the line is not that of
// the heads.
func (t *FlowTable) ClickHead(br *browser.Browser, x, y int) bool {
	if _, line, _ := t.Area(); y != line-2 {
		return false
	}
	for _, h := range t.heads {
		switch at := x - flowMargin - h.At; {
		case at < 0 || at >= h.Width+flowGap:
		case h.Column == t.sort:
			t.SortTurn(br)
		default:
			t.sort = h.Column - 1
			t.SortNext(br)
		}
	}
	return true
}

// SortBy sorts by the column with a name. It returns false if there is no such
// column.
func (t *FlowTable) SortBy(br *browser.Browser, name string) bool {
	for i := range flowColumns {
		if strings.EqualFold(flowColumns[i].name, name) {
			t.sort = i - 1
			t.SortNext(br)
			return true
		}
	}
	return false
}

// FlowColumns returns the names of the columns.
func FlowColumns() (names []string) {
	for i := range flowColumns {
		names = append(names, flowColumns[i].name)
	}
	return names
}
