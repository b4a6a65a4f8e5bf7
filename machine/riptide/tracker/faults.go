package tracker

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Faults of the library and of its port that packets show. Each has a rule of its own, in
// rules_faults.go of machine/riptide, that names the possible versions of its sender.

// once reports a rule about a side, unless it was reported before.
func (s *side) once(p *step, rule *machine.Rule, sure machine.Certainty, figures ...float64) {
	for _, told := range s.reported {
		if told == rule {
			return
		}
	}
	s.reported = append(s.reported, rule)
	p.out.At(p.at, p.ref).Report(rule, s.side, sure, 0, figures...)
}

// faults checks the header of a message of s for faults.
func (t *follower) faults(p *step) {
	s, m := p.own, p.m
	builds := t.config.Senders[s.side].Builds
	switch {
	case m.Oddities&wire.UnreadCause != 0:
		s.once(p, riptide.UselessCause, machine.Certain)
	case m.Type == wire.AckExtra && riptide.GapOf(m.Cause, m.Last) > 0 && s.behaviour.Receive == riptide.ReceiveWindow:
		p.out.At(p.at, p.ref).Report(riptide.LastStuck, s.side, machine.Certain, 0, float64(riptide.GapOf(m.Cause, m.Last)),
			float64(m.Last))
	case m.Type == wire.Disconnect && m.HasReason && m.Reason == wire.UnpackedStop:
		p.out.At(p.at, p.ref).Report(riptide.StopReads80, s.side, machine.Certain, 0, s.behaviour.Number())
	case m.Type == wire.Reject && s.behaviour.Port && s.behaviour.Receive == riptide.ReceiveList:
		s.once(p, riptide.PortRejects, machine.Certain, float64(m.Reason))
	}
	if d := t.config.Senders[s.side].Codec.Dialect; m.BodyBits >= staleLeast &&
		(m.Type == wire.Reject && m.Reason == d.CustomReason || m.Type == wire.Disconnect && m.Reason == d.KickedReason) {
		s.stale(p, builds)
	}
}

// stale reports values in which bits of an earlier message can remain, if s can be a release that
// leaves them.
func (s *side) stale(p *step, builds wire.BuildSet) {
	switch {
	case builds.All(func(b *wire.Build) bool { return b.StaleBits }):
		s.once(p, riptide.StaleBits, machine.Likely)
	case builds.All(func(b *wire.Build) bool { return b.Cause == wire.CauseAlways }) &&
		builds.Mixed(func(b *wire.Build) bool { return b.StaleBits }):
		s.once(p, riptide.StaleBits, machine.Possible)
	}
}

// staleLeast is the least size of data in which a value can follow a text, in bits.
// Source: measured, TestMarginsRiptide
const staleLeast = 48

// valueFaults checks the values of a message of s.
func (t *follower) valueFaults(p *step) {
	s, m := p.own, p.m
	if t.config.Values == nil {
		return
	}
	found := t.config.Values(s.side, m, p.bytes)
	if found == 0 {
		return
	}
	tell := func(fault riptide.ValueFaults, rule *machine.Rule, sure machine.Certainty) {
		if found&fault != 0 {
			p.out.At(p.at, p.ref).Report(rule, s.side, sure, 0, float64(m.MessageID))
		}
	}
	tell(riptide.ShortArrayLost, riptide.ShortArrays, machine.Certain)
	tell(riptide.VarLongWrong, riptide.VarLong, machine.Certain)
	if found&riptide.BytesThenMore != 0 {
		s.stale(p, t.config.Senders[s.side].Builds)
	}
	if s.behaviour.Port {
		tell(riptide.BoolArrayLost, riptide.PortBools, machine.Certain)
		tell(riptide.ValuesMissing, riptide.PortRelay, machine.Likely)
	}
}

// portMessage reports on a reliable message of Pytide at the end of its life.
func (t *follower) portMessage(s *side, e *life, last machine.Ref, out *machine.Effects) {
	switch {
	case s.behaviour.OneSequence:
		return
	case e.copies.count > 1:
		out.At(e.copies.last, last).Report(riptide.PortResent, s.side, machine.Likely, e.copies.frame,
			float64(e.copies.count), float64(e.sequence))
	case s.tap.ordered && !e.answers.named && t.last.Sub(e.copies.first) > riptide.Silence:
		out.At(e.copies.first, e.copies.frame).Report(riptide.PortLost, s.side, machine.Likely, 0, float64(e.sequence))
	}
}

// endFaults reports the faults that were counted, when the capture ends.
func (t *follower) endFaults(s *side, out *machine.Effects) {
	p := pastStep(s.activity.last, s.activity.ref, out)
	if s.notifyOut.passedOver > 0 {
		s.once(p, riptide.NotifyPassed, s.tap.grade(), float64(s.notifyOut.passedOver))
	}
	if !s.behaviour.Port || s.figures.packets == 0 {
		return
	}
	if s.behaviour.OneSequence {
		s.once(p, riptide.PortOneID, machine.Certain)
		return
	}
	s.once(p, riptide.PortPytide, machine.Certain)
	if s.tap.near && s.out.sender.Threw > 0 {
		s.once(p, riptide.PortThrows, machine.Likely, float64(s.out.sender.Threw))
	}
	if heard := t.conn.heard[s.side]; heard != 0 && s.activity.last.Sub(heard) > riptide.Timeout+
		2*riptide.HeartbeatInterval {
		s.once(p, riptide.PortNoTimeout, s.tap.grade(), machine.Milliseconds(s.activity.last.Sub(heard)))
	}
}
