package pathloss

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Unnamed counts what a side sends to a receiver whose Acks do not say what they answer. The
// receiver answers each copy at once. So if a block of copies had time for its answers, those
// without an Ack were lost on one of the two ways. Two things hide losses: Acks of later copies,
// and copies of Acks that the network made. So the count is a lower bound.
//
//   - block ≤ copies, counted ≤ copies, unanswered ≤ counted
type Unnamed struct {
	acks       uint64 // of the receiver, that passed the tap
	copies     uint64 // of the sender's reliable messages, that passed the tap
	block      uint64 // copies up to the end of the last full block
	blockAt    machine.Instant
	counted    uint64
	unanswered uint64 // of the counted ones
}

// Ack records an Ack of the receiver.
func (u *Unnamed) Ack() { u.acks++ }

// Copy records a copy that passed the tap.
func (u *Unnamed) Copy(at machine.Instant) {
	if u.copies++; u.copies%machine.PathBlock == 0 && u.block == u.counted {
		u.block, u.blockAt = u.copies, at
	}
}

// CountUnnamed counts the copies of a block once their answers are due. answer is the longest time
// that an answer takes.
func (l *Losses) CountUnnamed(now machine.Instant, answer time.Duration) {
	if u := &l.Unnamed; u.block > u.counted && now.Sub(u.blockAt) > answer {
		l.countUpTo(u.block)
	}
}

// Finish counts all copies: the capture ends.
func (l *Losses) Finish() { l.countUpTo(l.Unnamed.copies) }

// countUpTo counts the copies up to one of them.
func (l *Losses) countUpTo(copies uint64) {
	u := &l.Unnamed
	unanswered := copies - min(copies, u.acks)
	for ; u.counted < copies; u.counted++ {
		lost := u.unanswered < unanswered
		if lost {
			u.unanswered++
		}
		l.both.Settle(lost)
	}
}
