package overview

import (
	"cmp"
	"slices"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cause"
	"github.com/ackscope/ackscope/gamelog"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Input is what a diagnosis is made of.
type Input struct {
	Name     string           // of the capture, for the heading
	Session  *analyze.Session // its last run, finished
	Replay   *Verdicts        // nil if it was not replayed
	Messages *Messages        // nil if messages were not collected
	Ends     map[int]End      // by flow number: how connections ended, as far as it is known
	Problem  error            // how reading ended, if not at the end of the capture
	Logs     *gamelog.Report  // what the game's own logs say; nil without
	Cause    *cause.Report    // what the flows' troubles have in common; nil to find it out
}

// End is how the connection of a flow ended.
type End struct {
	Silent bool     // no packet announced the end
	Failed bool     // no connection came about
	Story  []string // the sentences that describe it
}

// FlowsShown is how many flows a diagnosis shows where the user does not ask for all.
const FlowsShown = 5

// Capture is the diagnosis of one capture.
type Capture struct {
	Name    string
	Session *analyze.Session
	Problem error

	Flows    []*Flow         // of known protocols, the worst first
	More     int             // flows of known protocols that are not in Flows
	Troubled int             // flows of known protocols with a warning or an error, shown or not
	Others   []*analyze.Flow // of no known protocol, by number
	Cause    *cause.Report   // what the troubles of the flows have in common
	Logs     *gamelog.Report // what the game's own logs say; nil without

	health show.Health
}

// Flow is the diagnosis of one flow of a known protocol.
type Flow struct {
	*analyze.Flow
	Sides    [2]Side
	Troubles []Trouble // the gravest first
	Notes    int       // findings of severity note, which are no trouble
	Skipped  string    // why replay could not compare the flow; empty if it could
	End      End
	Version  string // that of both sides, if they do not differ

	// lossWorth is the loss from which a sentence about the network gives it as the trouble: the
	// limit of the rule "steady-loss".
	lossWorth float64
}

// Side is what one side of a flow did.
type Side struct {
	Side    machine.Side
	Near    bool   // the capture was taken at this side
	Role    string // "client" or "server"; empty if that is not known
	Version string // which versions of which library it can be
	Network analyze.Network
	Known   bool // Network has figures
	Lives   Lives
	Causes  []Cause  // why the side sent something again, the most frequent first
	Result  *Verdict // nil if replay did not compare the side
}

// Cause counts what was sent again for one reason.
type Cause struct {
	Word  string // as rules name it: "ack-lost"
	Count uint64
}

// New makes the diagnosis of a capture. It shows the worst flows, at most so many; 0 means
// all. The order is by the gravest trouble, then by the loss, then by packets.
func New(in *Input, most int) *Capture {
	c := &Capture{Name: in.Name, Session: in.Session, Problem: in.Problem, Cause: in.Cause, Logs: in.Logs}
	if c.Cause == nil {
		c.Cause = cause.New(in.Session)
	}
	results := newResults(in.Replay)
	var known []ranked
	for _, f := range in.Session.Flows() {
		if f.Protocol == nil {
			c.Others = append(c.Others, f)
			continue
		}
		r := rank(f, results, in.Ends[f.ID])
		if r.gravity > int(machine.Note) {
			c.Troubled++
		}
		known = append(known, r)
		c.health.Add(f)
	}
	slices.SortStableFunc(known, func(x, y ranked) int {
		return cmp.Or(cmp.Compare(y.gravity, x.gravity), cmp.Compare(y.loss, x.loss), cmp.Compare(y.packets, x.packets))
	})
	for _, r := range known {
		if most > 0 && len(c.Flows) == most {
			break
		}
		c.Flows = append(c.Flows, newFlow(r.flow, in, results))
	}
	c.More = len(known) - len(c.Flows)
	return c
}

// ranked is a flow with what its place among the flows depends on.
type ranked struct {
	flow    *analyze.Flow
	gravity int // severity of the gravest trouble; -1 if there is none
	loss    float64
	packets uint64
}

func rank(f *analyze.Flow, results results, end End) ranked {
	r := ranked{flow: f, gravity: -1, loss: -1, packets: f.Packets[0] + f.Packets[1]}
	if end.Silent || end.Failed {
		r.gravity = int(machine.Warn)
	}
	for _, x := range f.Findings() {
		r.gravity = max(r.gravity, int(x.Rule.Severity))
	}
	for _, s := range []machine.Side{machine.A, machine.B} {
		if x := results[keyOf(f, s)]; x != nil && x.Divergence != nil {
			r.gravity = max(r.gravity, int(x.Divergence.rule(f).Severity))
		}
		if n, ok := f.Network(s); ok {
			r.loss = max(r.loss, lossOf(&n))
		}
	}
	return r
}

func newFlow(f *analyze.Flow, in *Input, of results) *Flow {
	x := &Flow{Flow: f, End: in.Ends[f.ID], lossWorth: in.Session.Thresholds().Loss}
	for i := range x.Sides {
		s := &x.Sides[i]
		s.Side = machine.Side(i)
		s.Near = near(f, s.Side)
		s.Role = role(f, s.Side)
		if v, ok := f.Versions(s.Side); ok {
			s.Version = v.Short()
		}
		s.Network, s.Known = f.Network(s.Side)
		s.Lives = in.Messages.Of(f.ID, s.Side)
		s.Result = of[keyOf(f, s.Side)]
	}
	if x.Sides[0].Version == x.Sides[1].Version {
		x.Version = x.Sides[0].Version
	}
	if in.Replay != nil {
		for _, skipped := range in.Replay.Skipped {
			if skipped.Flow == f.FirstRef {
				x.Skipped = skipped.Reason
			}
		}
	}
	x.find(in.Logs)
	return x
}

// near reports whether the capture was taken at a side.
func near(f *analyze.Flow, s machine.Side) bool {
	v := f.Facts().Vantage
	return v == machine.VantageBoth || v == machine.VantageA && s == machine.A || v == machine.VantageB && s == machine.B
}

// role returns the word for which end of the connection a side is.
func role(f *analyze.Flow, s machine.Side) string {
	client := f.Facts().Client
	switch {
	case client[s]:
		return "client"
	case client[s.Other()]:
		return "server"
	}
	return ""
}

// lossOf returns the loss of a direction as one figure for comparisons: the best estimate, or
// else the least that the capture proves. It is negative if both are unknown.
func lossOf(n *analyze.Network) float64 {
	if n.Share >= 0 {
		return n.Share
	}
	least, _ := n.Loss.Share()
	return least
}
