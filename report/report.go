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
	Flows    []*Flow // those told in full, by number
	Others   []*analyze.Flow
	Ledger   *ledger.Ledger
	Replay   *replay.File // nil where no replay was asked for
	Problem  string       // how reading ended, where that was not the capture's end
	Messages *Messages
	Ends     map[int]End // by the flow's number: how its connection ended
	Between  *Between    // nil where there is one capture
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
		return cmp.Or(boolCompare(y.Protocol != nil, x.Protocol != nil), cmp.Compare(worst(y), worst(x)), cmp.Compare(y.Packets[0]+y.Packets[1], x.Packets[0]+x.Packets[1]))
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

func boolCompare(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return 1
	}
	return -1
}

// worst gives the rank of a flow's gravest finding.
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
