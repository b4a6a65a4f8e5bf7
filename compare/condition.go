package compare

import (
	"math"

	"github.com/ackscope/ackscope/figures"
	"github.com/ackscope/ackscope/machine"
)

// Side is the figures of one way of a protocol, for conditions. It is a figures.Source: its
// values are those after, its changes those from before.
type Side struct {
	Protocol, Way string
	result        *Result
}

// Sides returns the ways of all protocols.
func (r *Result) Sides() (list []Side) {
	for _, protocol := range r.Protocols() {
		for _, w := range []way{toServer, toClient} {
			list = append(list, Side{protocol, w.String(), r})
		}
	}
	return list
}

func (s *Side) find(f figures.Figure) *Difference {
	for _, d := range s.result.Table {
		if d.Protocol == s.Protocol && d.Way == s.Way && d.Figure == f {
			return d
		}
	}
	return nil
}

// Value implements figures.Source.
func (s *Side) Value(f figures.Figure) figures.Value {
	if d := s.find(f); d != nil && !math.IsNaN(d.After) {
		if d.Round { // the loss of one way is not more
			return figures.Value{Known: true, Most: d.After}
		}
		return figures.Exactly(d.After)
	}
	count := 0.0
	switch f {
	case figures.Worse:
		for _, d := range s.result.Real {
			if d.Protocol == s.Protocol && d.Worse() && (d.Way == s.Way || d.way == bothWays) {
				count++
			}
		}
		for _, x := range s.result.Findings {
			if x.Protocol == s.Protocol && x.Way == s.Way && x.Worse() {
				count++
			}
		}
	case figures.Findings, figures.Errors, figures.Warnings, figures.Notes:
		severity := map[figures.Figure]machine.Severity{
			figures.Errors: machine.Error, figures.Warnings: machine.Warn, figures.Notes: machine.Note,
		}
		for _, x := range s.result.Findings {
			if at, one := severity[f]; x.Protocol == s.Protocol && x.Way == s.Way && x.After > 0 &&
				(!one || x.Rule.Severity == at) {
				count++
			}
		}
	default:
		return figures.Value{}
	}
	return figures.Exactly(count)
}

// Change implements figures.Source. A change that is not real is known by its bounds only.
func (s *Side) Change(f figures.Figure, relative bool) figures.Value {
	d := s.find(f)
	if d == nil || math.IsNaN(d.Chance) || d.Round {
		return figures.Value{}
	}
	v := figures.Value{Known: true, Least: d.Change, Most: d.Change}
	if !d.Real {
		v.Least, v.Most = d.Least, d.Most
	}
	if relative {
		if d.Before <= 0 {
			return figures.Value{}
		}
		v.Least, v.Most = v.Least/d.Before, v.Most/d.Before
	}
	return v
}
