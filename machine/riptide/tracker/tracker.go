package tracker

import (
	"unsafe"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Tracker rebuilds from a capture what both ends of a connection knew, and the lives of their
// messages.
//
// A side answers every reliable message by an Ack at once and in order. So its Acks prove what it
// has read. What a side then is known to have received depends on where the tap is:
//
//	near (witness.go)    The tap is at the side. What passed the tap lies in its
//	                     socket, in order. Its Acks show how much of it was read,
//	                     and the Receiver predicts what was delivered. It also
//	                     reads Acks in order, so its Sender is exact.
//	far (evidence.go)    The side is known by what its Acks name.
//
// The first messages show where the tap is (package vantage). The tracker holds them until then
// (opening.go). A known vantage may be given in Facts instead. Claims that depend on the vantage
// are certain only where the tap is shown to be there: see tapEvidence.grade.
type Tracker struct {
	opening *opening  // while the vantage is open; then nil
	f       *follower // from then on
	narrow  riptide.Narrower
}

// New returns the tracker of a flow. facts are those that an earlier run over the same flow
// learned, or the zero value.
func New(c riptide.Config, facts machine.Facts) *Tracker {
	t := newTracker(c, facts)
	t.narrow = c.Narrow
	return t
}

func newTracker(c riptide.Config, facts machine.Facts) *Tracker {
	switch {
	case facts.Vantage != machine.VantageUnknown:
		return &Tracker{f: follow(c, facts, facts.Vantage, facts.VantageReason)}
	case c.OneHost:
		f := follow(c, facts, machine.VantageBoth, "both ends have the same address")
		f.weighing = true
		return &Tracker{f: f}
	}
	return &Tracker{opening: &opening{config: c, facts: facts}}
}

// Observe processes the next message of the flow.
func (t *Tracker) Observe(d *machine.Datagram, out *machine.Effects) {
	if t.narrow != nil {
		t.narrow.Observe(d)
	}
	p := step{
		sighting: sighting{
			at: d.At, ref: d.Ref, from: d.From, bytes: d.Bytes, length: max(d.Length, len(d.Bytes)),
			behind: d.Behind, gaps: d.Gaps,
		},
		out: out,
	}
	if o := t.opening; o != nil {
		if !o.reopens(&p.sighting) {
			if o.hold(&p.sighting) {
				if v := o.placeTap(); v.Sure {
					t.f, t.opening = o.follow(v, out), nil
				}
			}
			return
		}
		t.open(out)
	}
	if t.narrow != nil {
		t.f.narrowed(t.narrow.Builds())
	}
	t.f.observe(&p)
}

// open places the tap by what is known so far, and processes the held messages.
func (t *Tracker) open(out *machine.Effects) {
	t.f, t.opening = t.opening.follow(t.opening.placeTap(), out), nil
}

// EndsAt implements machine.Ender.
func (t *Tracker) EndsAt(at machine.Instant) {
	facts := t.facts()
	facts.End = max(facts.End, at)
}

// facts returns the facts that the tracker goes by.
func (t *Tracker) facts() *machine.Facts {
	if t.opening != nil {
		return &t.opening.facts
	}
	return &t.f.facts
}

// Finish settles what is still open when the capture ends.
func (t *Tracker) Finish(out *machine.Effects) {
	if t.opening != nil {
		t.open(out)
	}
	t.f.finish(out)
}

// Inspect draws what side x knew after the last observed message.
func (t *Tracker) Inspect(x machine.Side, v *machine.View) {
	f := t.f
	if t.opening != nil {
		var unheard machine.Effects
		f = t.opening.follow(t.opening.placeTap(), &unheard)
	}
	f.inspect(x, v)
}

// Lacks implements machine.Lacker: the side's ids jump, or an answer names a copy that did not pass.
func (t *Tracker) Lacks(x machine.Side) bool {
	return t.opening == nil && t.f.sides[x].tap.near && t.f.sides[x].tap.lacks > 0
}

// Summary returns the figures of side x so far.
func (t *Tracker) Summary(x machine.Side) machine.Summary {
	if t.opening != nil {
		return machine.Summary{NeverAcked: -1, Loss: -1, RTT: -1, WireRTT: -1}
	}
	return t.f.summary(x)
}

// Learned returns the facts that another run over the flow can start with.
func (t *Tracker) Learned() machine.Facts {
	if t.opening != nil {
		return t.opening.facts
	}
	facts := t.f.learned()
	if p, ok := facts.Settings.(proofs); ok && t.narrow != nil {
		p.builds = t.narrow.Builds()
		facts.Settings = p
	}
	return facts
}

// Builds returns the builds that each side can be, as an earlier run over the flow learned it. The set of a
// side of which it learned nothing is empty.
func Builds(facts *machine.Facts) [2]wire.BuildSet {
	p, _ := facts.Settings.(proofs)
	return p.builds
}

// Size returns about how many bytes a clone takes.
func (t *Tracker) Size() int {
	if t.opening != nil {
		return int(unsafe.Sizeof(*t)) + t.opening.size()
	}
	return int(unsafe.Sizeof(*t)) + t.f.size()
}

// Clone returns an independent copy.
func (t *Tracker) Clone() machine.Tracker {
	if t.opening != nil {
		return &Tracker{opening: t.opening.clone(), narrow: t.narrowClone()}
	}
	return &Tracker{f: t.f.clone(), narrow: t.narrowClone()}
}

func (t *Tracker) narrowClone() riptide.Narrower {
	if t.narrow == nil {
		return nil
	}
	return t.narrow.Clone()
}
