package rewrite

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay"
)

// Rule is what must still occur: the rule of a finding, or of a divergence that
// replay finds.
type Rule struct {
	ID       string
	Analysis analyze.Options
	Behave   string // replay's behaviour; empty for the suggested one
	// Tell, if not nil, is called for every capture that is tried, with the number
	// of the attempt and the number of frames.
	Tell func(attempt, frames int)
}

// mark identifies a finding or a divergence.
type mark struct {
	diverges        bool
	protocol        string
	side            machine.Side
	own, peer       netip.AddrPort
	behaviour, name string // of a divergence: the behaviour of the reference, and the field
	severity        machine.Severity
}

// Occurrence is where a capture shows the rule: a finding or a divergence.
type Occurrence struct {
	Diverges  bool // replay finds it; otherwise it is a finding
	Side      machine.Side
	Addr      netip.AddrPort
	Certainty machine.Certainty
	Frame     uint64 // the first frame that shows it, in the smaller capture
	Message   string // in words
	mark      mark
	figures   figures
}

// claim is what a finding or a divergence says, without its figures and its
// certainty.
type claim struct {
	diverges  bool
	rule      string
	protocol  string
	side      machine.Side
	own, peer netip.AddrPort
}

// seen is what a capture shows of a rule, and all that it shows.
type seen struct {
	occurrences []Occurrence
	others      []string // the names of all rules, sorted, without duplicates
	claims      map[claim]machine.Certainty
}

// divergences adds what replay finds.
func (r *Rule) divergences(f *Frames, to *seen) error {
	if err := f.Rewind(); err != nil {
		return err
	}
	file, err := replay.Run("", f, replay.Options{Analysis: r.Analysis, Behaviour: r.Behave})
	if err != nil {
		return err
	}
	for i := range file.Results {
		x := &file.Results[i]
		d := x.Divergence
		if d == nil || !x.Expected {
			continue
		}
		m := mark{
			diverges: true, protocol: x.Flow.Protocol.Name, side: x.Side, own: x.Flow.Addr(x.Side),
			peer: x.Flow.Addr(x.Side.Other()), behaviour: x.Behaviour, name: d.Field,
		}
		to.add(d.Rule.ID, &m, x.Certainty())
		if d.Rule.ID != r.ID {
			continue
		}
		to.occurrences = append(to.occurrences, Occurrence{
			Diverges: true, Side: x.Side, Addr: m.own, Certainty: x.Certainty(), Frame: d.Ref.Frame(), mark: m,
			Message: fmt.Sprintf("%s: %s expected %s, got %s", x.Behaviour, d.Field, d.Expected, d.Got),
			figures: figures{words: d.Expected + ", " + d.Got},
		})
	}
	return nil
}

// findings adds what the analysis finds.
func (r *Rule) findings(f *Frames, to *seen) error {
	if err := f.Rewind(); err != nil {
		return err
	}
	s, err := analyze.RunTwice(f, r.Analysis)
	if err != nil {
		return err
	}
	for _, flow := range s.Flows() {
		for _, x := range flow.Findings() {
			m := mark{side: x.Side, own: flow.Addr(x.Side), peer: flow.Addr(x.Side.Other()), severity: x.Rule.Severity}
			if flow.Protocol != nil {
				m.protocol = flow.Protocol.Name
			}
			to.add(x.Rule.ID, &m, x.Certainty)
			if x.Rule.ID != r.ID {
				continue
			}
			found := Occurrence{
				Side: x.Side, Addr: m.own, Certainty: x.Certainty, Message: x.Message(), mark: m,
				figures: figures{numbers: x.Figures},
			}
			if len(x.Refs) > 0 {
				found.Frame = x.Refs[0].Frame()
			}
			to.occurrences = append(to.occurrences, found)
		}
	}
	return nil
}

// add notes that a capture shows a rule.
func (s *seen) add(id string, m *mark, sure machine.Certainty) {
	if i, found := slices.BinarySearch(s.others, id); !found {
		s.others = slices.Insert(s.others, i, id)
	}
	if s.claims == nil {
		s.claims = map[claim]machine.Certainty{}
	}
	c := claim{diverges: m.diverges, rule: id, protocol: m.protocol, side: m.side, own: m.own, peer: m.peer}
	s.claims[c] = max(s.claims[c], sure)
}

// AbsentError says that a rule does not occur in a capture.
type AbsentError struct {
	Rule  string
	Shown []string // the names of the rules that do occur
}

func (e *AbsentError) Error() string {
	if len(e.Shown) == 0 {
		return fmt.Sprintf("%s: neither a finding nor a divergence of that rule stands in the capture, nor one of any other",
			e.Rule)
	}
	return fmt.Sprintf("%s: neither a finding nor a divergence of that rule stands in the capture: these do: %s", e.Rule,
		strings.Join(e.Shown, ", "))
}
