package tracker

import (
	"math/bits"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// LongestTransit is longer than any network holds a packet back.
// Source: measured, TestMarginsGaffer
const LongestTransit = 3 * time.Second

// opensSession reports whether a datagram begins another connection on the same pair of
// addresses: the side counts from the start again. The argument step is the datagram's
// distance to the newest of its side.
//
// There are three signs of it. The first two need a side whose earlier headers acked packets:
//
//   - Sequence 0 with an ack that means "nothing received".
//   - A header that leaves out what an earlier one named, under an older number. For example,
//     packet 298 acks all up to 295, and then packet 2 acks 297 and 296 only. The first packets
//     of the new connection need not pass the tap, and an endpoint may read before it sends.
//   - Another packet 0 that says "nothing received". A copy by the network has the same length.
//
// Within one connection only a late packet or a copy looks like that. So does a sequence that is cut
// to its low byte: 0 follows 255. But after a restart a side reads packets that were sent later than
// those which it had read before. Its ack does not fall back.
func (t *Tracker) opensSession(s *side, p *sighting, step int) bool {
	if step > 0 && p.ackBits != 0 || !p.header || p.sequence >= RestartMost || !s.headers.opened {
		return false
	}
	r, last := t.rules, &s.headers.last
	if last.Nothing(r) || last.Width == 0 {
		return step < 0 && r.Claims(p.ack, p.ackBits).Nothing(r) && p.anotherZero(s.Sent(0))
	}
	switch c := r.Claims(p.ack, p.ackBits); {
	case c.Nothing(r):
		return step > 0 || t.tooLate(s, p, step) || s.Sent(p.sequence) == nil && p.at.Sub(s.headers.openedAt) > LongestTransit
	case step >= 0, p.sequence > 0 && step > -strayAhead:
		return false // a packet that a few others overtook
	default:
		ahead := r.Distance(c.Newest, last.Newest)
		switch {
		case ahead < -readsBack && t.Sides[s.side.Other()].spans(last.Newest):
			return false // what it reads after a restart was sent after what it had read before
		case ahead >= c.Width:
			return false // nothing of what the earlier header named is in range
		case ahead >= 0 && last.Named<<uint(ahead)&c.Covered()&^c.Named == 0:
			return false
		}
		return ahead > 0 || t.tooLate(s, p, step) // a late packet has no newer ack
	}
}

// tooLate reports whether a datagram with an older number is none that the network held back,
// and no copy. No packet of a side at the tap is overtaken before the tap. A copy has the
// header and the length of the packet.
func (t *Tracker) tooLate(s *side, p *sighting, step int) bool {
	e := s.Sent(p.sequence)
	switch {
	case s.Near, step <= -int(RestartMost):
		return true
	case e == nil:
		return step <= -strayAhead && s.earlier.UnderWay(p.at)
	case p.at.Sub(e.At) > LongestTransit && p.ackBits == 0:
		return true
	case p.ackBits == 0 && p.anotherZero(e):
		return true
	case step > -strayAhead || e.Flags&gaffer.SentHeader == 0:
		return false
	}
	return !p.copies(e)
}

// anotherZero reports whether a datagram with a header is packet 0, and no copy of the packet 0 that
// passed. The last fragments of a packet may pass first: then its header is not known yet.
func (p *sighting) anotherZero(e *gaffer.Sent) bool {
	return p.sequence == 0 && e != nil && e.Flags&gaffer.SentHeader != 0 && !p.copies(e)
}

// copies reports whether a datagram with a header may be a copy of a packet: it has the header and
// the length. The length of a packet of fragments is not compared.
func (p *sighting) copies(e *gaffer.Sent) bool {
	return (p.count == 0) == (e.Flags&gaffer.SentFragmented == 0) && p.ack == e.Ack && p.ackBits == e.AckBits &&
		(p.count > 0 || p.payload == e.Bytes)
}

// heldOpensSession is opensSession while datagrams are held back. Nothing else is known
// then.
func (t *Tracker) heldOpensSession(p *sighting) bool {
	if p.ackBits != 0 || !p.header || p.sequence >= RestartMost || !t.rules.Claims(p.ack, p.ackBits).Nothing(t.rules) {
		return false
	}
	opened, copied := machine.Instant(-1), machine.Instant(-1)
	var first, newest sighting // of the side
	met, another := false, false
	t.Held.each(func(h *sighting) {
		if another || h.from != p.from || !h.header {
			return
		}
		switch {
		case h.sequence == 0 && p.sequence == 0 && h.count == 0 && p.count == 0 && h.payload != p.payload:
			another = true // another packet 0
			return
		case h.sequence == p.sequence && copied < 0:
			copied = h.at // p may be a copy of it
		case opened < 0 && !t.rules.Claims(h.ack, h.ackBits).Nothing(t.rules):
			opened = h.at // the side has received something since then
		}
		if !met {
			first, newest, met = *h, *h, true
		} else if t.rules.Distance(h.sequence, newest.sequence) > 0 {
			newest = *h
		}
	})
	switch {
	case another:
		return true
	case opened < 0:
		return false
	case p.at.Sub(max(copied, opened)) > LongestTransit:
		return true
	}
	// At the side's pace, it sent a packet of that number too long ago.
	numbers := t.rules.Distance(newest.sequence, first.sequence)
	behind := t.rules.Distance(newest.sequence, p.sequence)
	if copied >= 0 || numbers < paceLeast {
		return false
	}
	return p.at.Sub(first.at)/time.Duration(numbers)*time.Duration(behind) > LongestTransit
}

// readsBack is how far a packet that a side reads after its restart can lie behind the newest one
// that it had read before. The network held that packet back.
// Source: unmeasured, beyond it a lower number is a wrong one, and no restart
const readsBack = 64

// paceLeast is how many numbers of a side must have passed to show its pace.
// Source: unmeasured, with fewer a restart shows only after LongestTransit
const paceLeast = 16

// RestartMost is the sequence number below which a new connection must begin.
// Source: measured, TestMarginsRestart
const RestartMost uint32 = 1024

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
		place := t.placeTap()
		t.release(&place, out)
	}
	for i := range t.Sides {
		t.Sides[i].queue = queue{}
	}
}

// Earlier is what the sessions before on the same addresses say of a side's packets. A side that
// restarts counts from the start again. But its peer may not know that, and goes on to ack the
// packets of the session before. For example, the side begins again at 0, and the peer's next
// header has ack 296. Packets of both sessions may be on their way at the same time.
type Earlier struct {
	rules  *gaffer.Rules
	newest machine.Earlier
	until  machine.Instant // nothing that left before the restart comes later than that
}

// NewEarlier returns what a flow's facts say of a side. at is when the flow began.
func NewEarlier(r *gaffer.Rules, newest machine.Earlier, at machine.Instant) Earlier {
	return Earlier{r, newest, at.Add(LongestTransit)}
}

// mayMix reports whether a side may make a packet of fragments whole from two sessions of its
// peer. For example, fragment 0 of packet 172 came before the peer restarted, and fragment 1 was
// lost. Fragments 0 and 1 of the new packet 172 come. The side keeps the old fragment 0, with the
// old acks, and the packet is whole.
func (s *side) mayMix(peer *side, sequence uint32) bool {
	return !s.headers.fresh && peer.earlier.Has(sequence)
}

// leftBefore reports whether a packet of a side that has not restarted left it before its peer
// did. Such a packet is older than all that passed since, and it names packets of the peer's
// session before. For example, packets 112 to 117 of the side have passed since then, with acks up
// to 94. The peer has sent 0 to 3. Packet 61 comes late, and names packets from 50 down. Where the
// side had restarted as well, it would name few packets, and those that came lately.
func (t *Tracker) leftBefore(s, peer *side, p *sighting, step int) bool {
	if step > -strayAhead || !p.header || !s.headers.opened || !peer.Met || !peer.earlier.UnderWay(p.at) {
		return false
	}
	c, last := t.rules.Claims(p.ack, p.ackBits), &s.headers.last
	return s.sent.top64+int64(step) < s.sent.first64 && !c.Nothing(t.rules) && peer.earlier.Has(c.Newest) &&
		t.rules.Distance(c.Newest, peer.sent.top) > 0 && t.rules.Distance(last.Newest, c.Newest) > 0 &&
		bits.OnesCount64(c.Named) >= leftNames
}

// leftNames is how many packets of the peer's session before a header names at least, where its
// side did not restart.
// Source: unmeasured, it decides only which packets count as late ones of a session before
const leftNames = 8

// earlierSpan is how far behind the newest packet of a session its peer may still name packets.
// It is the receive window of the built-in profiles, and twice the widest ack_bits.
// Source: bound, the numbers of a session before that stay known
const earlierSpan = 256 + 2*64

// Has reports whether a number is one that the side may have used in a session before. Where the
// capture lacks that session, the side may have sent more than its peer had named by then.
func (e *Earlier) Has(sequence uint32) bool {
	for _, n := range e.newest {
		if !n.Known {
			continue
		}
		least := 0
		if n.AtLeast {
			least = -strayNear
		}
		if behind := e.rules.Distance(n.Value, sequence); behind >= least && behind < earlierSpan {
			return true
		}
	}
	return false
}

// reaches reports whether a side that restarted has not sent as much as in the session before. The
// peer then drops its packet as a copy or as too old, and no header names it. For example, the
// session before went to 296, and the packet is number 40.
func (e *Earlier) reaches(sequence uint32) bool {
	for _, n := range e.newest {
		if n.Known && e.rules.Distance(n.Value, sequence) >= 0 {
			return true
		}
	}
	return false
}

// Found records that the peer goes on from a session that the capture lacks. Its first header
// names a packet that the side has not sent. The argument began is the side's first packet that
// passed. If it is not packet 0, the capture begins behind the restart. Then packets of that session
// may still be under way to the peer.
func (e *Earlier) Found(newest, began uint32) {
	if n := &e.newest[0]; !n.Known {
		*n = machine.Number{Known: true, AtLeast: began != 0, Value: newest}
	}
}

// Known reports whether a session before is known.
func (e *Earlier) Known() bool { return e.newest[0].Known }

// UnderWay reports whether packets of a session before may still arrive.
func (e *Earlier) UnderWay(at machine.Instant) bool { return e.Known() && at <= e.until }

// strayAhead is how far ahead of a restarted side's newest packet a packet of a session before
// lies at least. strayNear is how far it lies from the newest one of that session at most.
// Source: unmeasured, it decides only which packets count as late ones of a session before
const strayAhead, strayNear = 16, 64

// Stray reports whether a packet of a side that restarted was sent before the restart. Packets of
// the new session overtook it. top is the side's newest packet of the new session. A stray
// packet moves on what is known of the session that sent it.
func (e *Earlier) Stray(sequence, top uint32, at machine.Instant) bool {
	r := e.rules
	if !e.UnderWay(at) || r.Distance(sequence, top) < strayAhead {
		return false
	}
	for i := range e.newest {
		n := &e.newest[i]
		ahead := r.Distance(sequence, n.Value)
		if !n.Known || r.Distance(top, n.Value) > 0 || ahead < -strayNear || ahead > strayNear {
			continue
		}
		if ahead > 0 {
			n.Value = sequence
		}
		return true
	}
	return false
}

// WrapsLeast decides whether packet 0 of a side is at a wrap. Then its header names at least so
// many packets that did not pass the tap.
// Source: unmeasured, a divergence that it decides is likely at most
const WrapsLeast = 8

// wraps reports whether packet 0 of a side is not its first: its header names many packets of
// which none passed the tap.
func (t *Tracker) wraps(s, peer *side, c gaffer.Claims) bool {
	unseen := 0
	c.Each(t.rules, func(q uint32) {
		if peer.Sent(q) == nil && s.waiting(peer, q) == 0 {
			unseen++
		}
	})
	return unseen >= WrapsLeast
}

// OvertakenLeast is how far a packet is taken to overtake others at least, where the tap is away
// from its sender. The only packet that overtook another may be the one at which the capture
// begins.
// Source: unmeasured, a divergence that it decides is likely at most
const OvertakenLeast = 4
