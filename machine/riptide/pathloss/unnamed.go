package pathloss

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Unnamed counts what a side sends to a receiver whose Acks do not say what they
// answer. Each copy is answered at once, so of a block of copies that had its time
// to be answered, those without an Ack were lost on one of the two ways. Acks of
// later copies, and copies of Acks that the network made, hide losses: what is
// counted is the least.
//
//	block ≤ copies, judged ≤ copies, unanswered ≤ judged
type Unnamed struct {
	acks       uint64 // of the receiver, that passed the tap
	copies     uint64 // of the sender's reliable messages, that passed the tap
	block      uint64 // of them, those up to the end of the last full block
	blockAt    machine.Instant
	judged     uint64
	unanswered uint64 // of the judged ones
}

// Ack takes an Ack of the receiver.
func (u *Unnamed) Ack() { u.acks++ }

// Copy takes a copy that passed the tap.
func (u *Unnamed) Copy(at machine.Instant) {
	if u.copies++; u.copies%machine.PathBlock == 0 && u.block == u.judged {
		u.block, u.blockAt = u.copies, at
	}
}

// JudgeUnnamed judges the copies of a block to which answers take so long at the most.
func (l *Losses) JudgeUnnamed(now machine.Instant, answer time.Duration) {
	if u := &l.Unnamed; u.block > u.judged && now.Sub(u.blockAt) > answer {
		l.judgeUpTo(u.block)
	}
}

// Finish judges all copies: the capture ends.
func (l *Losses) Finish() { l.judgeUpTo(l.Unnamed.copies) }

// judgeUpTo judges the copies up to one of them.
func (l *Losses) judgeUpTo(copies uint64) {
	u := &l.Unnamed
	unanswered := copies - min(copies, u.acks)
	for ; u.judged < copies; u.judged++ {
		lost := u.unanswered < unanswered
		if lost {
			u.unanswered++
		}
		l.both.Settle(lost)
	}
}
