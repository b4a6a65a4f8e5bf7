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
func (l *Losses) Overtaken() { l.toTap.Found() }

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

// EitherLost counts a message that was lost, or whose Ack was.
func (l *Losses) EitherLost() { l.both.Settle(true) }

// Notify counts a notify message that passed the tap: headers show its fate.
func (l *Losses) Notify(lost bool) { l.beyond.Settle(lost) }

// ToTap returns what was lost on the way to the tap.
func (l *Losses) ToTap() machine.PathLoss { return l.toTap }

// Beyond returns what was lost beyond the tap. Where most of the lost packets may have been Acks,
// the figure for one way is unknown. Then both is set, and the figures are those of the way there
// and back.
func (l *Losses) Beyond() (p machine.PathLoss, both bool) {
	if open := l.both.Lost - min(l.both.Lost, l.beyond.Lost); open > l.beyond.Lost || l.beyond.Settled == 0 &&
		l.both.Settled > 0 {
		return l.both, true
	}
	return l.beyond, false
}
