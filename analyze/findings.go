package analyze

import (
	"cmp"
	"slices"

	"github.com/ackscope/ackscope/machine"
)

// keepRefs is how many frames a finding names. Count goes beyond it.
const keepRefs = 16

// Finding collects all occurrences of one rule, by one side of a flow, with one
// certainty.
type Finding struct {
	Rule      *machine.Rule
	Flow      *Flow
	Side      machine.Side
	Certainty machine.Certainty
	Count     uint64
	First     machine.Instant
	Last      machine.Instant
	Refs      []machine.Ref // the first frames that show it, at most 16
	Abouts    []machine.Ref // the frames that those refer to; zero if there is none
	Figures   [3]float64    // of the worst occurrence
}

// findingList holds a flow's findings. Most flows have none, and then no list.
type findingList struct{ list []*Finding }

func (g *findingList) all() []*Finding {
	if g == nil {
		return nil
	}
	return g.list
}

// addFinding adds an occurrence to the findings of f.
func (f *Flow) addFinding(a *machine.Anomaly) *Finding {
	if f.findings == nil {
		f.findings = &findingList{}
	}
	return f.findings.add(a)
}

func (g *findingList) add(a *machine.Anomaly) *Finding {
	for _, f := range g.list {
		if f.Rule == a.Rule && f.Side == a.Side && f.Certainty == a.Certainty {
			f.add(a)
			return f
		}
	}
	f := &Finding{Rule: a.Rule, Side: a.Side, Certainty: a.Certainty, First: a.At, Figures: a.Figures}
	g.list = append(g.list, f)
	f.add(a)
	return f
}

// remove drops the findings of a rule.
func (g *findingList) remove(r *machine.Rule) {
	if g == nil {
		return
	}
	g.list = slices.DeleteFunc(g.list, func(x *Finding) bool { return x.Rule == r })
}

// found adds an occurrence of a rule to the findings of f.
func (s *Session) found(f *Flow, a *machine.Anomaly) {
	if s.dropped > 0 && a.Rule.Absence && a.Certainty > machine.Possible {
		a.Certainty = machine.Possible // a is the session's own copy, or a tracker's effect that is not read again
	}
	x := f.addFinding(a)
	if s.options.Found != nil {
		x.Flow = f
		s.options.Found(x)
	}
}

func (f *Finding) add(a *machine.Anomaly) {
	f.Count++
	f.Last = a.At
	if a.Figures[0] > f.Figures[0] {
		f.Figures = a.Figures
	}
	if len(f.Refs) < keepRefs {
		f.Refs = append(f.Refs, a.Ref)
		f.Abouts = append(f.Abouts, a.About)
	}
}

// Findings returns the flow's findings, the most severe first.
func (f *Flow) Findings() []*Finding {
	list := f.findings.all()
	for _, x := range list {
		x.Flow = f
	}
	slices.SortStableFunc(list, func(x, y *Finding) int {
		return cmp.Or(cmp.Compare(y.Rule.Severity, x.Rule.Severity), cmp.Compare(x.Rule.ID, y.Rule.ID),
			cmp.Compare(x.Side, y.Side), cmp.Compare(y.Certainty, x.Certainty))
	})
	return list
}

// Message formats the finding.
func (f *Finding) Message() string {
	if f.Rule.Say == nil {
		return f.Rule.Summary
	}
	return f.Rule.Say(f.Count, f.Figures)
}
