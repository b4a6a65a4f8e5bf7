package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// LongestTransit is longer than any network holds a packet back.
// Source: measured, TestMarginsGaffer
const LongestTransit = 3 * time.Second

// opensSession reports whether a datagram begins another connection on the same pair of
// addresses: the side counts from the start again. The argument step is the datagram's
// distance to the newest of its side.
func (t *Tracker) opensSession(s *side, p *sighting, step int) bool {
	if p.ackBits != 0 || !p.header || p.sequence >= restartMost || !s.headers.opened {
		return false
	}
	if r := t.rules; !r.Claims(p.ack, p.ackBits).Nothing(r) || s.headers.last.Nothing(r) || s.headers.last.Width == 0 {
		return false
	}
	// For example, sequence 0 with an ack that means "nothing received", from a side whose
	// earlier headers acked packets. Within one connection only a late packet or a copy
	// looks like that. But the network delays none for seconds, and no packet of a side at
	// the tap is overtaken before the tap.
	if e := s.Sent(p.sequence); e != nil {
		return s.Near || p.at.Sub(e.At) > LongestTransit
	}
	return s.Near || step > 0 || p.at.Sub(s.headers.openedAt) > LongestTransit
}

// heldOpensSession is opensSession while datagrams are held back. Nothing else is known
// then.
func (t *Tracker) heldOpensSession(p *sighting) bool {
	if p.ackBits != 0 || !p.header || p.sequence >= restartMost || !t.rules.Claims(p.ack, p.ackBits).Nothing(t.rules) {
		return false
	}
	opened, first := machine.Instant(-1), machine.Instant(-1)
	for i := range t.Held {
		h := &t.Held[i]
		switch {
		case h.from != p.from || !h.header:
		case h.sequence == p.sequence && first < 0:
			first = h.at // p may be a copy of it
		case opened < 0 && !t.rules.Claims(h.ack, h.ackBits).Nothing(t.rules):
			opened = h.at // the side has received something since then
		}
	}
	return opened >= 0 && p.at.Sub(max(first, opened)) > LongestTransit
}

// restartMost is the sequence number below which a new connection must begin.
// Source: measured, TestMarginsRestart
const restartMost uint32 = 1024

// ReadAll records that a side at the tap has most likely read all that passed towards it.
func (t *Tracker) ReadAll(x machine.Side, out *machine.Effects) {
	if t.Sides != nil && t.Sides[x].Near {
		t.drain(x, out)
	}
}

// Disconnect ends a connection. A side at the tap most likely never read what it is not
// proved to have read by then: it discards its socket's queue.
func (t *Tracker) Disconnect(out *machine.Effects) {
	if t.Sides == nil {
		v, reason, _, supposed := placeTap(t.rules, t.Held)
		t.release(v, reason, supposed, out)
	}
	for i := range t.Sides {
		t.Sides[i].queue = queue{}
	}
}
