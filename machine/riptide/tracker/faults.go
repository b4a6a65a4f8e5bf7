package tracker

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Faults of the library and its port that show in packets. Each is a rule of its
// own (rules_faults.go) that names the versions which its sender then can be.

// once reports what is told of a side a single time.
func (s *side) once(out *machine.Effects, rule *machine.Rule, sure machine.Certainty, p *sighting, figures ...float64) {
	for _, told := range s.told {
		if told == rule {
			return
		}
	}
	s.told = append(s.told, rule)
	out.Report(rule, s.side, sure, p.at, p.ref, 0, figures...)
}

// faults looks a message of s over for what its header shows.
func (t *follower) faults(s *side, p *sighting, m *wire.Message, out *machine.Effects) {
	builds := t.config.Senders[s.side].Builds
	switch {
	case m.Oddities&wire.UnreadCause != 0:
		s.once(out, riptide.UselessCause, machine.Certain, p)
	case m.Type == wire.AckExtra && riptide.GapOf(m.Cause, m.Last) > 0 && s.behaviour.Receive == riptide.ReceiveWindow:
		out.Report(riptide.LastStuck, s.side, machine.Certain, p.at, p.ref, 0, float64(riptide.GapOf(m.Cause, m.Last)), float64(m.Last))
	case m.Type == wire.Disconnect && m.HasReason && m.Reason == wire.UnpackedStop:
		out.Report(riptide.StopReads80, s.side, machine.Certain, p.at, p.ref, 0, s.behaviour.Number())
	case m.Type == wire.Reject && s.behaviour.Port && s.behaviour.Receive == riptide.ReceiveList:
		s.once(out, riptide.PortRejects, machine.Certain, p, float64(m.Reason))
	}
	if d := t.config.Senders[s.side].Codec.Dialect; m.BodyBits >= staleLeast && (m.Type == wire.Reject && m.Reason == d.CustomReason || m.Type == wire.Disconnect && m.Reason == d.KickedReason) {
		s.stale(builds, p, out)
	}
}

// stale reports values that stand where bits of an earlier message can have stayed,
// as far as s can be a release that leaves them.
func (s *side) stale(builds wire.BuildSet, p *sighting, out *machine.Effects) {
	switch {
	case builds.All(func(b *wire.Build) bool { return b.StaleBits }):
		s.once(out, riptide.StaleBits, machine.Likely, p)
	case builds.All(func(b *wire.Build) bool { return b.Cause == wire.CauseAlways }) && builds.Mixed(func(b *wire.Build) bool { return b.StaleBits }):
		s.once(out, riptide.StaleBits, machine.Possible, p)
	}
}

// staleLeast is the least data, in bits, in which something can follow a text.
const staleLeast = 48

// valueFaults looks the values of a message of s over.
func (t *follower) valueFaults(s *side, p *sighting, m *wire.Message, out *machine.Effects) {
	if t.config.Values == nil {
		return
	}
	found := t.config.Values(s.side, m, p.bytes)
	if found == 0 {
		return
	}
	tell := func(fault riptide.ValueFaults, rule *machine.Rule, sure machine.Certainty) {
		if found&fault != 0 {
			out.Report(rule, s.side, sure, p.at, p.ref, 0, float64(m.MessageID))
		}
	}
	tell(riptide.ShortArrayLost, riptide.ShortArrays, machine.Certain)
	tell(riptide.VarLongWrong, riptide.VarLong, machine.Certain)
	if found&riptide.BytesThenMore != 0 {
		s.stale(t.config.Senders[s.side].Builds, p, out)
	}
	if s.behaviour.Port {
		tell(riptide.BoolArrayLost, riptide.PortBools, machine.Certain)
		tell(riptide.ValuesMissing, riptide.PortRelay, machine.Likely)
	}
}

// portLife reports on a reliable message of Pytide whose life has ended.
func (t *follower) portLife(s *side, e *life, last machine.Ref, out *machine.Effects) {
	switch {
	case s.behaviour.OneSequence:
		return
	case e.Attempts > 1:
		out.Report(riptide.PortResent, s.side, machine.Likely, e.lastAt, last, e.frame, float64(e.Attempts), float64(e.Sequence))
	case s.ordered && !e.Named && t.last.Sub(e.At) > riptide.Silence:
		out.Report(riptide.PortLost, s.side, machine.Likely, e.At, e.frame, 0, float64(e.Sequence))
	}
}

// endFaults reports, when the capture ends, what was counted.
func (t *follower) endFaults(s *side, out *machine.Effects) {
	p := &sighting{at: s.spoke, ref: s.spokeRef}
	if s.passedOver > 0 {
		s.once(out, riptide.NotifyPassed, s.grade(), p, float64(s.passedOver))
	}
	if !s.behaviour.Port || s.packets == 0 {
		return
	}
	if s.behaviour.OneSequence {
		s.once(out, riptide.PortOneID, machine.Certain, p)
		return
	}
	s.once(out, riptide.PortPytide, machine.Certain, p)
	if s.near && s.sender.Threw > 0 {
		s.once(out, riptide.PortThrows, machine.Likely, p, float64(s.sender.Threw))
	}
	if heard := t.life.heard[s.side]; heard != 0 && s.spoke.Sub(heard) > riptide.Timeout+2*riptide.HeartbeatInterval {
		s.once(out, riptide.PortNoTimeout, s.grade(), p, machine.Milliseconds(s.spoke.Sub(heard)))
	}
}
