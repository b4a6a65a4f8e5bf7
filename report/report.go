// Package report writes what was found in a capture for somebody who was not
// there: one self-contained HTML file, or Markdown.
//
//	analyze (flows, findings) ─┐
//	graph (series)             ├─> Report ─> HTML, Markdown
//	ledger, messages, replay  ─┘
//
// The verdict comes first, then each flow with its graphs, messages, findings,
// costs, how it ended and what replay says. A page of HTML asks the network for
// nothing; all text of the capture in it is escaped.
//
// Ring 5 of the house.
package report

import (
	"cmp"
	"slices"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/graph"
	"github.com/ackscope/ackscope/ledger"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay"
	"github.com/ackscope/ackscope/show"
)

// Report is what there is to tell.
type Report struct {
	Name     string // of the capture
	Session  *analyze.Session
	Flows    []*Flow         // those told in full, by number
	Others   []*analyze.Flow // those told in a line, by number: see Worst
	More     int             // further flows, which are counted only
	LetGo    LetGo
	Ledger   *ledger.Ledger
	Replay   *replay.File // nil where no replay was asked for
	Problem  string       // how reading ended, where that was not the capture's end
	Messages *Messages
	Ends     map[int]End // by the flow's number: how its connection ended
	Between  *Between    // nil where there is one capture
	anchors  string      // what the names of anchors begin with, where a page has several reports
}

// LetGo sums the flows that ended early for want of memory.
type LetGo struct {
	Flows, Known int
	Findings     [machine.Error + 1]uint64 // by severity
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
type End struct {
	Silent bool     // without a goodbye
	Story  []string // in sentences
}

// Flow is one flow that is told in full.
type Flow struct {
	*analyze.Flow
	Series *graph.Flow
	Cost   *ledger.Flow // nil where it sent nothing that is in the ledger
}

// Choose picks the flows to be told in full, at most so many: the gravest
// findings first, then the most packets; and gives the rest. Both come by number.
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

// OthersMost is how many flows are told in a line each: a page of more is read by
// nobody, and takes a browser long.
const OthersMost = 1000

// Worst picks the flows to be told in a line each, at most so many, and counts the
// rest. First come those of a protocol that is known, of these those with the
// gravest findings, then those that lost the largest share of what a side sent,
// then those with the most packets. They are given by number.
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

// MoreText says which flows are counted only.
func (r *Report) MoreText() string {
	return "And " + show.Plural(r.More, "further flow") +
		": listed are those with the gravest findings, then with the most loss, then with the most packets."
}

// loss returns the larger share that a side lost of what it sent; negative where
// neither is known.
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
