package judge

import (
	"math/bits"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// restsOf returns what the divergence of an Ack rests on, that differs from what its sender has
// received by its own Acks before: had.
//
// A capture can lack messages towards the side, and the Ack can name more for them. For
// example, 8 passed and the Ack names 8 and 9. A capture that lacks 9 shows the same. Nothing
// makes up for an Ack that says less: the side itself has acked it, or acks it just now.
func (s *judged) restsOf(j *Judge, p *observed, had *riptide.Receiver) machine.RestsOn {
	m, b := p.m, s.behaviour
	if b.Port || b.OneSequence {
		return machine.RestsOnBoth // what its receiver holds can shrink
	}
	if !m.Unnamed {
		switch behind := riptide.GapOf(m.Last, m.Cause); {
		case behind < 0 && (b.Receive == riptide.ReceiveList || behind >= -riptide.WindowAcks):
			return machine.RestsOnOwn // it is older than what it answers
		case 0 < behind && behind <= riptide.WindowAcks && m.AckBits>>(behind-1)&1 == 0:
			return machine.RestsOnOwn // it does not name what it answers
		}
	}
	if b.Receive != riptide.ReceiveList || s.acks.jumped {
		return machine.RestsOnBoth // a jump can lose what was received
	}
	last, held := had.Ack()
	switch ahead := riptide.GapOf(m.Last, last); {
	case ahead < 0, ahead == 0 && held&^m.AckBits != 0:
		return machine.RestsOnOwn
	case 0 < ahead && ahead <= riptide.WindowAcks && carried(held, ahead)&^m.AckBits != 0:
		return machine.RestsOnOwn
	}
	if j.connection.begun && beforeFirst(m.Last, m.AckBits, b.First) {
		return machine.RestsOnOwn
	}
	return machine.RestsOnBoth
}

// beforeFirst reports whether bits behind a newest id name ids from before the first of a
// connection. The id right before the first counts as received from the beginning. Ids that
// have come far can have jumped, and then the library's fault explains such bits.
func beforeFirst(last, ids, first uint16) bool {
	oldest := last - uint16(bits.Len16(ids))
	return ids != 0 && riptide.GapOf(last, first) < riptide.JumpList && riptide.GapOf(oldest, first) < -1
}

// restsOfNotes returns what the divergence of the newest notify header rests on. A capture can
// lack notify messages towards the side. But two headers of the side agree on each id of which
// both speak. And none names an id from before the first.
func (s *judged) restsOfNotes(j *Judge, before *farNote) machine.RestsOn {
	own := &s.notes.said
	switch {
	case s.behaviour.Port:
	case before.live && !follows(before, own):
		return machine.RestsOnOwn // not even with the library's fault, which shows at jumps of 32 and more
	case j.connection.begun && beforeFirst(own.last, uint16(own.bits), 1):
		return machine.RestsOnOwn
	}
	return machine.RestsOnBoth
}
