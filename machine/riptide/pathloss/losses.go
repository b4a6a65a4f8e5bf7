// Package pathloss counts how many of a side's messages the path to its peer lost.
//
// It counts first copies only, of reliable and of notify messages. Further copies are sent because
// something was lost, and would count it twice. The place of the tap decides what shows a loss:
//
//	tap at the receiver    Gaps in the numbers: Stepped. If a gap is filled sooner
//	                       than a resent copy could come, the network overtook the
//	                       message: Overtaken.
//	tap at the sender      Why messages were sent again: Came, Lost, AckLost. Where
//	                       either the message or its Ack was lost, the way there
//	                       and back is counted as one: EitherLost.
//	Acks without an id     The receiver answers each copy at once, but an Ack does
//	                       not say which. Copies are counted against Acks: Unnamed.
package pathloss

import "github.com/ackscope/ackscope/machine"

// Losses is what was lost of a side's numbered messages. The zero value has counted none.
//
//   - Lost ≤ Settled in each of them
//   - beyond.Settled ≤ both.Settled, but for notify messages, which both leaves out
type Losses struct {
	toTap  machine.PathLoss // on the way to the tap; of a far side only
	beyond machine.PathLoss // of those that passed the tap, on the way to its peer
	both   machine.PathLoss // of the same, or their Acks on the way back
	once   machine.PathLoss // on the way to the tap: of notify messages and pings, which are never sent again
	echoes machine.PathLoss // of the peer's pings, or of the side's answers to them

	copies, answered uint64 // of reliable messages; how many Acks of these copies came, at most one each

	overtaken uint64 // messages that came late on the way to the tap
	// Unnamed counts messages to a peer whose Acks name none.
	Unnamed Unnamed
}

// Stepped counts a message of a far side. The numbers skipped before it, gap in number, count as
// lost.
func (l *Losses) Stepped(gap uint64) {
	l.toTap.SettleLost(gap)
	l.toTap.Settle(false)
}

// Overtaken corrects a loss on the way to the tap: the message came late.
func (l *Losses) Overtaken() {
	l.toTap.Found()
	l.overtaken++
}

// Once counts a message of a far side that is never sent again, like Stepped.
func (l *Losses) Once(gap uint64) {
	l.once.SettleLost(gap)
	l.once.Settle(false)
}

// OnceLate corrects a loss that Once counted: the message came late.
func (l *Losses) OnceLate() { l.once.Found() }

// Echo counts a ping of the peer, and whether the side's answer to it came.
func (l *Losses) Echo(lost bool) { l.echoes.Settle(lost) }

// Came counts a message that arrived, and whose Ack came back.
func (l *Losses) Came() {
	l.beyond.Settle(false)
	l.both.Settle(false)
}

// Lost counts a message of which a copy was lost.
func (l *Losses) Lost() {
	l.beyond.Settle(true)
	l.both.Settle(true)
}

// AckLost counts a message that arrived, and whose Ack was lost.
func (l *Losses) AckLost() {
	l.beyond.Settle(false)
	l.both.Settle(true)
}

// Copies counts the copies of a message, and how many of them were answered.
func (l *Losses) Copies(copies, answered uint64) {
	l.copies += copies
	l.answered += answered
}

// EitherLost counts a message that was lost, or whose Ack was.
func (l *Losses) EitherLost() { l.both.Settle(true) }

// Notify counts a notify message that passed the tap: headers show its fate.
func (l *Losses) Notify(lost bool) { l.beyond.Settle(lost) }

// ToTap returns what was lost on the way to the tap. Enough messages that are never sent again show
// it, and then it is likely. Otherwise it is only possible. A reliable message may come again before
// a newer one shows that its first copy was lost, and a sender at fault may skip ids.
func (l *Losses) ToTap() (p machine.PathLoss, sure machine.Certainty) {
	if l.once.Settled >= machine.PathBlock {
		return l.once, machine.Likely
	}
	return l.toTap, machine.Possible
}

// Least returns how many messages were surely lost on the way to the tap and beyond it. The way back
// counts in neither. Where the network reorders, only what never came counts on the way to the tap.
// missing is how many reliable messages that are.
func (l *Losses) Least(missing uint64) (toTap, beyond uint64) {
	if l.overtaken > l.toTap.Lost/8 {
		return min(l.toTap.Lost, missing+l.once.Lost), l.beyond.Lost
	}
	return l.toTap.Lost, l.beyond.Lost
}

// ToTapMost returns the share of datagrams that were lost on the way to the tap at most, 0..1. It
// counts those that are sent once.
func (l *Losses) ToTapMost() float64 {
	p := l.once
	p.Settled, p.Lost = p.Settled+l.echoes.Settled, p.Lost+l.echoes.Lost
	return p.AtMost()
}

// Beyond returns what was lost beyond the tap. Where most of the lost packets may have been Acks,
// the figure for one way is unknown. Then both is set, and the figures are those of the way there
// and back. Each copy is answered by itself, so they are of copies. If the network doubles packets,
// single is false: two Acks may answer one copy, and the figures are of messages.
func (l *Losses) Beyond(single bool) (p machine.PathLoss, both bool) {
	if open := l.both.Lost - min(l.both.Lost, l.beyond.Lost); open > l.beyond.Lost || l.beyond.Settled == 0 &&
		l.both.Settled > 0 {
		p = l.both
		if single && l.answered > 0 {
			p.Settled, p.Lost = l.copies, l.copies-min(l.copies, l.answered)
		}
		return p, true
	}
	return l.beyond, false
}
