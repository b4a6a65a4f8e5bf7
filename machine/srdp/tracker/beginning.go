package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// A capture can begin in the middle of a flow. Then the first copy of a packet
// that passes the tap need not be the packet's first:
//
//	        | the capture begins
//	5   6   |   5   7   6   8
//	            ^       ^ sent again: 5 and 6 were first sent before
//
// No packet says so, and a whole capture begins in the same way. The first copy
// in the capture is known to be the packet's first when one of these holds:
//
//   - The tap has watched for longer than the sender waits between copies, and
//     the id is ahead of all others. An earlier copy would have come again before.
//   - A newer id cannot be older than the capture. The sender numbers its packets
//     upwards, so all ids are new from the first one on that is new. An id is new
//     if its copies follow each other sooner than the capture is old.
//   - It keeps order, and follows another packet that does. Only one of them is in
//     flight, and the other one was in flight in this capture.
const (
	// waitFactor is how much longer than the longest time between copies so far the
	// next one may be, in quarters.
	// Source: unmeasured, TestPartial of internal/srdpcheck exercises it
	waitFactor = 5
	// lostCopies is how many copies of a packet in a row may be lost before a tap
	// away from the sender.
	// Source: unmeasured, TestPartial of internal/srdpcheck exercises it
	lostCopies = 4
)

// horizon returns for how long a packet of a side can wait for its next copy to
// pass the tap.
func (t *Tracker) horizon(s *party) time.Duration {
	most := t.known.most[s.side]
	if s.timing != nil {
		most = max(most, s.timing.most)
	}
	if !s.sure {
		return max(guessed, lostCopies*most)
	}
	return max(guessed, most*waitFactor/4)
}

// slowest returns the longest time from data to a side's acknowledgement, in
// the whole flow if an earlier run has seen it.
func (t *Tracker) slowest(s *party) time.Duration {
	return max(s.reach.slowest, t.known.slowest[s.side])
}

// watched reports whether every packet that waited in a side's queue when the
// capture began has come again since.
func (t *Tracker) watched(s *party, at machine.Instant) bool { return at.Sub(t.began) > t.horizon(s) }

// starts reports whether the first copy of a packet that passes the tap is the
// first that its sender sent.
func (t *Tracker) starts(s *party, l *lane, id64 int64, ordered bool, p *sighting) bool {
	if learned := &t.known.anew[s.side]; learned.known && p.at <= learned.at && l == s.lanes.list[0] &&
		wire.IDs.Distance(uint32(t.pk.ID), uint32(learned.id64)&wire.IDs.Mask()) >= 0 {
		l.anew.from(id64, p.at) // the two runs may unwrap ids differently
	}
	switch {
	case l.answeredBefore(t.pk.ID):
		return false
	case l.anew.known && id64 >= l.anew.id64:
		return true
	case ordered && l.ordered > 0 && id64 > l.orderedID:
		return true
	case (!l.met || id64 > l.top) && t.watched(s, p.at):
		if !ordered {
			l.anew.from(id64, p.at)
		}
		return true
	}
	return false
}

// newest is the lowest id of a lane that is known to be newer than the capture,
// and when it was first sent.
type newest struct {
	id64  int64
	at    machine.Instant
	known bool
}

// proved returns what the copies of packets show, at a tap at the sender and
// elsewhere.
func (l *lane) proved(near bool) newest {
	n := l.repeatedFar
	if near {
		n.take(l.repeated)
	}
	return n
}

func (n *newest) take(x newest) {
	if x.known {
		n.from(x.id64, x.at)
	}
}

func (n *newest) from(id64 int64, at machine.Instant) {
	if !n.known || id64 < n.id64 {
		*n = newest{id64, at, true}
	}
}

// repeated takes the second copy of a packet, which comes gap after the first. A
// packet has one time between its copies. So a copy before the first would have
// passed as long before, or the capture is younger than that.
func (t *Tracker) repeated(s *party, l *lane, e *life, gap time.Duration) {
	if e.behind || e.flags&t.config.Profile.Order != 0 {
		return // it may have its id from long before it was first sent
	}
	age := e.at.Sub(t.began)
	if age > gap+patience {
		l.repeated.from(e.id64, e.at)
	}
	// Away from the sender, the network may have lost the copies before, or made
	// this one.
	if age > max(guessed, lostCopies*gap) {
		l.repeatedFar.from(e.id64, e.at)
	}
	l.anew.take(l.proved(s.sure))
}

// strangers is how many acknowledged ids without a packet a lane remembers.
// Source: bound, the acknowledgements of unknown packets that are remembered
const strangers = 8

// answersUnknown remembers an acknowledgement of an id that the lane does not
// know: the packet passed before the capture, or the capture lacks it.
func (l *lane) answersUnknown(id uint16) {
	l.strangers[l.strange%strangers] = id + 1
	l.strange++
}

// answeredBefore reports whether an acknowledgement of an id passed before the
// packet did.
func (l *lane) answeredBefore(id uint16) bool {
	if l.strange == 0 {
		return false
	}
	for _, x := range l.strangers {
		if x == id+1 {
			return true
		}
	}
	return false
}
