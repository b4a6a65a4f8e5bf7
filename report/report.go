// Package report writes the results of an analysis for a reader who has not
// seen the capture: one self-contained HTML file, or Markdown.
//
//	analyze (flows, findings) ─┐
//	graph (series)             ├─> Report ─> HTML, Markdown
//	ledger, messages, replay  ─┘
//
// The verdict comes first. Each flow follows with its graphs, messages,
// findings, costs, the end of its connection, and the result of replay. The
// HTML page requests nothing from the network. All text of the capture is
// escaped.
package report

import (
	"cmp"
	"slices"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/gamelog"
	"github.com/ackscope/ackscope/graph"
	"github.com/ackscope/ackscope/ledger"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/overview"
	"github.com/ackscope/ackscope/replay"
	"github.com/ackscope/ackscope/show"
)

// Report is the contents of a report.
type Report struct {
	Name     string // name of the capture
	Session  *analyze.Session
	Flows    []*Flow         // flows shown in full, by number
	Others   []*analyze.Flow // flows shown in a line, by number: see Worst
	More     int             // number of flows that are only counted
	LetGo    LetGo
	Ledger   *ledger.Ledger
	Replay   *replay.File // nil without replay
	Problem  string       // the error that ended reading; empty at the end of the capture
	Messages *Messages
	Ends     map[int]End     // by flow number: how its connection ended
	Between  *Between        // nil for a single capture
	Logs     *gamelog.Report // what the game's own logs say; nil without
	anchors  string          // prefix of anchors if a page has several reports
	verdict  string          // see Verdict; empty until it is asked for
}

// LetGo sums the flows that ended early for lack of memory.
type LetGo struct {
	Flows, Known int
	Findings     [machine.Error + 1]uint64 // number of findings by severity
}

// Add adds a flow.
func (l *LetGo) Add(f *analyze.Flow) {
	l.Flows++
	if f.Protocol != nil {
		l.Known++
	}
	for i, n := range show.Severities(f) {
		l.Findings[i] += n
	}
}

// End is how a connection ended.
type End = overview.End

// Flow is a flow that is shown in full.
type Flow struct {
	*analyze.Flow
	Series *graph.Flow
	Cost   *ledger.Flow // nil if the ledger has nothing that it sent
}

// Choose selects the flows to show in full, at most so many: the gravest
// findings first, then the most packets. rest has the others. Both are ordered
// by number.
func Choose(flows []*analyze.Flow, most int) (full, rest []*analyze.Flow) {
	order := slices.Clone(flows)
	slices.SortStableFunc(order, func(x, y *analyze.Flow) int {
		return cmp.Or(boolCompare(y.Protocol != nil, x.Protocol != nil), cmp.Compare(worst(y), worst(x)),
			cmp.Compare(y.Packets[0]+y.Packets[1], x.Packets[0]+x.Packets[1]))
	})
	n := 0
	for n < min(most, len(order)) && order[n].Protocol != nil {
		n++
	}
	full, rest = order[:n], order[n:]
	byNumber := func(x, y *analyze.Flow) int { return cmp.Compare(x.ID, y.ID) }
	slices.SortFunc(full, byNumber)
	slices.SortFunc(rest, byNumber)
	return full, rest
}

// OthersMost limits the flows that are shown in a line each. More lines would
// make the page slow in a browser.
const OthersMost = 1000

// Worst selects the flows to show in a line each, at most so many. more is the
// number of the others. The list is ordered by number. Flows are selected in
// this order:
//
//  1. flows of a known protocol
//  2. the gravest findings
//  3. the largest share of a side's packets lost
//  4. the most packets
func Worst(flows []*analyze.Flow, most int) (list []*analyze.Flow, more int) {
	if len(flows) <= most {
		return flows, 0
	}
	order := slices.Clone(flows)
	slices.SortStableFunc(order, func(x, y *analyze.Flow) int {
		return cmp.Or(
			boolCompare(y.Protocol != nil, x.Protocol != nil), cmp.Compare(worst(y), worst(x)), cmp.Compare(loss(y), loss(x)),
			cmp.Compare(y.Packets[0]+y.Packets[1], x.Packets[0]+x.Packets[1]),
		)
	})
	list = order[:most:most]
	slices.SortFunc(list, func(x, y *analyze.Flow) int { return cmp.Compare(x.ID, y.ID) })
	return list, len(flows) - most
}

// MoreText describes the flows that are only counted.
func (r *Report) MoreText() string {
	return "And " + show.Plural(r.More, "further flow") +
		": listed are those with the gravest findings, then with the most loss, then with the most packets."
}

// loss returns the larger loss of the two sides, as a share. It is negative if
// both are unknown.
func loss(f *analyze.Flow) float64 { return max(f.Loss(machine.A), f.Loss(machine.B)) }

func boolCompare(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return 1
	}
	return -1
}

// worst returns the rank of a flow's gravest finding.
func worst(f *analyze.Flow) int {
	n := show.Severities(f)
	for s := machine.Error; ; s-- {
		if n[s] > 0 {
			return int(s) + 1
		}
		if s == machine.Note {
			return 0
		}
	}
}
