package overview

import (
	"slices"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay"
)

// Verdicts are what replay found of a capture, as far as a diagnosis reads it. They are plain
// values: where another process replays the capture, they cross as JSON.
type Verdicts struct {
	Sides   []Verdict // under the behaviour that the packets of a side suggest
	Skipped []Skipped
}

// Verdict is what replay found of one side of one flow.
type Verdict struct {
	Flow       machine.Ref // its first frame
	Side       machine.Side
	Behaviour  string
	Word       string // "conforms", "consistent" or "diverges"
	Compared   uint64
	Undecided  uint64
	Divergence *Divergence // nil if the side has none
}

// Divergence is the first packet that no reference of the behaviour explains.
type Divergence struct {
	Rule      string // the name of one of the protocol's divergence rules
	Frame     machine.Ref
	Certainty machine.Certainty
	Because   string // in one sentence
}

// Skipped is a flow that replay could not compare with a reference.
type Skipped struct {
	Flow   machine.Ref // its first frame
	Reason string
}

// NewVerdicts returns what a diagnosis reads of a replay. It returns nil for nil.
func NewVerdicts(file *replay.File) *Verdicts {
	if file == nil {
		return nil
	}
	v := &Verdicts{}
	for i := range file.Results {
		x := &file.Results[i]
		if !x.Expected {
			continue
		}
		side := Verdict{
			Flow: x.Flow.FirstRef, Side: x.Side, Behaviour: x.Behaviour, Word: x.Verdict(), Compared: x.Compared,
			Undecided: x.Undecided,
		}
		if d := x.Divergence; d != nil {
			side.Divergence = &Divergence{Rule: d.Rule.ID, Frame: d.Ref, Certainty: x.Certainty(), Because: d.Because}
		}
		v.Sides = append(v.Sides, side)
	}
	for _, x := range file.Skipped {
		v.Skipped = append(v.Skipped, Skipped{x.Flow.FirstRef, x.Reason})
	}
	return v
}

// rule returns the rule of a divergence of a flow.
func (d *Divergence) rule(f *analyze.Flow) *machine.Rule {
	rules := f.Protocol.DivergenceRules
	return rules[slices.IndexFunc(rules, func(r *machine.Rule) bool { return r.ID == d.Rule })]
}

// results are the verdicts by flow and side. Replay may number the flows otherwise, if limits
// removed some, but their first frames are the same.
type results map[key]*Verdict

type key struct {
	first machine.Ref
	side  machine.Side
}

func keyOf(f *analyze.Flow, s machine.Side) key { return key{f.FirstRef, s} }

func newResults(of *Verdicts) results {
	list := results{}
	if of == nil {
		return list
	}
	for i := range of.Sides {
		x := &of.Sides[i]
		list[key{x.Flow, x.Side}] = x
	}
	return list
}
