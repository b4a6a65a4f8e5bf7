// Package pathloss judges what of a side's messages was lost on the way to its peer.
//
// It judges first copies only, of reliable and of notify messages. Further copies are
// sent because something was lost, and would count it twice. What tells that a message
// was lost depends on where the tap stands:
//
//	the tap at the receiver   gaps in the numbers: Stepped; one that is filled sooner
//	                          than a copy could come was an overtaking: Overtaken
//	the tap at the sender     why messages were sent again: Came, Lost, AckLost; where
//	                          it is open whether the message was lost or its Ack, the
//	                          way there and back is judged as one: EitherLost
//	Acks without an id        the receiver answers each copy at once, but an Ack does
//	                          not say which: copies are counted against Acks (Unnamed)
package pathloss

import "github.com/ackscope/ackscope/machine"

// Losses is what was lost of a side's numbered messages. The zero value has judged
// none.
//
//	Lost ≤ Judged in each of them
//	beyond.Judged ≤ both.Judged but for notify messages, which both leaves out
type Losses struct {
	toTap  machine.PathLoss // on the way to the tap; of a far side only
	beyond machine.PathLoss // of those that passed the tap, on the way to its peer
	both   machine.PathLoss // of the same, or their Acks on the way back
	// Unnamed judges what goes to a peer whose Acks name none.
	Unnamed Unnamed
}

// Stepped judges a message of a far side, and as many numbers as lie between it and the
// newest before.
func (l *Losses) Stepped(gap uint64) {
	l.toTap.SettleLost(gap)
	l.toTap.Settle(false)
}

// Overtaken takes back that a number was lost on the way to the tap: it came late.
func (l *Losses) Overtaken() { l.toTap.Found() }

// Came judges a message that came, and whose Ack came back.
func (l *Losses) Came() {
	l.beyond.Settle(false)
	l.both.Settle(false)
}

// Lost judges a message of which a copy was lost.
func (l *Losses) Lost() {
	l.beyond.Settle(true)
	l.both.Settle(true)
}

// AckLost judges a message that came, and whose Ack was lost.
func (l *Losses) AckLost() {
	l.beyond.Settle(false)
	l.both.Settle(true)
}

// EitherLost judges a message that was lost, or its Ack.
func (l *Losses) EitherLost() { l.both.Settle(true) }

// Notify judges a notify message that passed the tap: headers tell its fate.
func (l *Losses) Notify(lost bool) { l.beyond.Settle(lost) }

// ToTap returns what was lost on the way to the tap.
func (l *Losses) ToTap() machine.PathLoss { return l.toTap }

// Beyond returns what was lost beyond the tap. Where most of what was lost may have been
// an Ack, one way cannot be told: both is then set, and the figures are those of the
// way there and back.
func (l *Losses) Beyond() (p machine.PathLoss, both bool) {
	if open := l.both.Lost - min(l.both.Lost, l.beyond.Lost); open > l.beyond.Lost || l.beyond.Settled == 0 &&
		l.both.Settled > 0 {
		return l.both, true
	}
	return l.beyond, false
}
