package overview

import (
	"cmp"
	"slices"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/gamelog"
	"github.com/ackscope/ackscope/machine"
)

// Trouble is a warning or an error: a finding, what replay contradicts, or a connection that
// ended without a goodbye.
type Trouble struct {
	Origin    machine.Origin // OriginUnsaid for the end of a connection
	Severity  machine.Severity
	Side      machine.Side
	Rule      *machine.Rule // nil for the end of a connection
	Certainty machine.Certainty
	Count     uint64
	Frame     machine.Ref // the first frame that shows it
	Text      string      // what happened there, with figures
	Log       string      // what the game's own log says of it; empty if nothing

	Failed     bool                 // no connection came about
	Divergence *Divergence          // nil for a finding
	Host       *analyze.HostVerdict // what became of the datagrams in the capturing host; nil if it has no samples
}

// find collects the troubles of a flow, and why its sides sent something again.
func (f *Flow) find(logs *gamelog.Report) {
	for i := range f.Sides {
		if x := f.Sides[i].Result; x != nil && x.Divergence != nil {
			d := x.Divergence
			rule := d.rule(f.Flow)
			f.Troubles = append(f.Troubles, Trouble{
				Origin: machine.OriginCode, Severity: rule.Severity, Side: x.Side, Rule: rule, Certainty: d.Certainty,
				Count: 1, Frame: d.Frame, Text: d.Because, Divergence: d,
			})
		}
	}
	for _, x := range f.Findings() {
		if x.Rule.Resend != "" {
			f.Sides[x.Side].cause(x)
		}
		if x.Rule.Severity == machine.Note {
			f.Notes++
			continue
		}
		t := Trouble{
			Origin: x.Rule.Cause(), Severity: x.Rule.Severity, Side: x.Side, Rule: x.Rule, Certainty: x.Certainty,
			Count: x.Count, Text: x.Message(),
		}
		if len(x.Refs) > 0 {
			t.Frame = x.Refs[0]
		}
		if v, ok := x.Host(); ok {
			t.Host = &v
			if t.inHost() && t.Origin == machine.OriginNetwork {
				t.Origin = machine.OriginCode
			}
		}
		if e, ok := logs.Finding(x); ok {
			t.Log = e.String()
		}
		f.Troubles = append(f.Troubles, t)
	}
	if (f.End.Silent || f.End.Failed) && len(f.End.Story) > 0 {
		f.Troubles = append(f.Troubles, Trouble{
			Severity: machine.Warn, Certainty: machine.Certain, Count: 1, Frame: f.LastRef, Text: f.End.Story[0],
			Failed: f.End.Failed,
		})
	}
	slices.SortStableFunc(f.Troubles, func(x, y Trouble) int {
		return cmp.Or(
			cmp.Compare(y.Severity, x.Severity), cmp.Compare(x.order(), y.order()),
			cmp.Compare(y.Certainty, x.Certainty), cmp.Compare(y.Count, x.Count),
		)
	})
	for i := range f.Sides {
		slices.SortStableFunc(f.Sides[i].Causes, func(x, y Cause) int { return cmp.Compare(y.Count, x.Count) })
	}
}

// inHost reports whether counters of the host show that the trouble arose behind its network.
func (t *Trouble) inHost() bool {
	if t.Host == nil || t.Host.Certainty < machine.Likely {
		return false
	}
	switch t.Host.Cause {
	case analyze.HostSocket, analyze.HostLate, analyze.HostClosed, analyze.HostApplication:
		return true
	}
	return false
}

// order ranks troubles of one severity. Replay and errors point at code. Warnings of the
// network come first, with a connection that ended, since they cause most others. A connection that
// never came about precedes them: its text says why.
func (t *Trouble) order() int {
	switch {
	case t.Severity == machine.Error && t.Divergence != nil, t.Failed:
		return 0
	case t.Rule == nil || t.Origin == machine.OriginNetwork:
		return 1
	case t.Divergence != nil:
		return 2
	case t.Origin == machine.OriginCode:
		return 3
	case t.Origin == machine.OriginLibrary:
		return 4
	}
	return 5
}

func (s *Side) cause(x *analyze.Finding) {
	for i := range s.Causes {
		if s.Causes[i].Word == x.Rule.Resend {
			s.Causes[i].Count += x.Count
			return
		}
	}
	s.Causes = append(s.Causes, Cause{x.Rule.Resend, x.Count})
}

// Grade returns the severity of the capture's gravest trouble. It returns false if there is
// none.
func (c *Capture) Grade() (machine.Severity, bool) {
	if t, _ := c.worst(); t != nil {
		return t.Severity, true
	}
	return machine.Note, false
}

// worst returns the gravest trouble, which is the first of the first flow.
func (c *Capture) worst() (*Trouble, *Flow) {
	if len(c.Flows) == 0 || len(c.Flows[0].Troubles) == 0 {
		return nil, nil
	}
	return &c.Flows[0].Troubles[0], c.Flows[0]
}
