package tracker

import (
	"math/bits"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// receipts bounds when each packet was read, for a tracker of the messages in them.
type receipts struct {
	list []messages.Receipt // one for each EventReceived since the last call of Receipts
	// least is the shortest time from a packet of the side to the header that names it. It is set
	// where the tap is away from the peer; 0 for none.
	least [2]time.Duration
}

// WantReceipts makes the tracker keep what Receipts returns.
func (t *Tracker) WantReceipts() { t.receipts = &receipts{} }

// clone returns an independent copy without the list, which the next datagram would end.
func (r *receipts) clone() *receipts {
	if r == nil {
		return nil
	}
	return &receipts{least: r.least}
}

// Receipts returns when the packets were read of which the events since the last call say that
// they were received. It has one for each EventReceived, in their order. They are valid until
// the next datagram. There are none unless WantReceipts was called.
func (t *Tracker) Receipts() []messages.Receipt {
	if t.receipts == nil {
		return nil
	}
	list := t.receipts.list
	t.receipts.list = list[:0]
	return list
}

// readNear notes when a near side read a candidate that it accepted. For example, the
// candidate passes the tap at 20 ms. The side's header of 25 ms covers it and does not name it,
// and that of 31 ms names it. So it was read between 25 and 31 ms.
func (t *Tracker) readNear(s, peer *side, c *candidate, by *settling, sure machine.Certainty) {
	if t.receipts == nil {
		return
	}
	if peer.losses.unseen > 0 {
		sure = min(sure, machine.Likely) // a packet that the capture lacks may have brought the same
	}
	r := messages.Receipt{
		Read: machine.Span{From: min(c.at, by.at), To: by.at, Certainty: sure}, Covered: messages.NothingOlder,
	}
	switch last := &s.headers.last; {
	case by.silent && s.estimate.clock.tick <= 0:
		r.Read = machine.Span{}
	case by.silent:
		r.Read = machine.Span{From: c.at, To: max(c.at, t.readAt(s, c, by)), Certainty: min(sure, machine.Likely)}
	case t.facts.Supposed[s.side]:
		// If the tap stands some way off, the last header left before it passed.
	case c.at < s.headers.at && by.claims.Names(t.rules, c.sequence) && t.omits(last, c.sequence):
		r.Read.From = s.headers.at
	}
	t.receipts.list = append(t.receipts.list, r)
}

// omits reports whether a header shows that its sender had not accepted a packet.
func (t *Tracker) omits(c *gaffer.Claims, sequence uint32) bool {
	if c.Width == 0 {
		return false // there is no such header
	}
	behind := t.rules.Distance(c.Newest, sequence)
	return behind < 0 || t.rules.Omits(*c, behind)
}

// readFar notes when a far side read e, which its header is the first to name. An earlier
// header that covers e and does not name it left before the side read e. Its sender had read
// the newest packet that this header names, so e came after that one was sent.
func (t *Tracker) readFar(f *farHeader, e *gaffer.Sent, sure machine.Certainty) {
	peer, last, at := f.peer, &f.s.headers.last, f.p.at
	if peer.losses.unseen > 0 || peer.Near && !peer.sent.complete() {
		sure = min(sure, machine.Likely) // a packet that the capture lacks may have brought the same
	}
	r := messages.Receipt{Read: machine.Span{From: min(e.At, at), To: at, Certainty: sure}}
	if f.own == f.s.headers.number && t.rules.Distance(last.Newest, e.Sequence) > 0 && t.omits(last, e.Sequence) {
		if n := peer.Sent(last.Newest); n != nil {
			r.Read.From = min(max(r.Read.From, n.At), at)
		}
	}
	width := f.claims.Width
	if silent := t.rules.Silent(f.claims); silent != 0 {
		width = min(width, bits.TrailingZeros64(silent))
	}
	r.Covered = peer.unwrap(f.claims.Newest) - int64(width) + 1

	least := &t.receipts.least[peer.side]
	if trip := at.Sub(e.At); trip > 0 && (*least == 0 || trip < *least) {
		*least = trip
	}
	way := *least / 2
	r.Estimate = machine.Span{
		From: max(r.Read.From, e.At.Add(way)), To: at.Add(-way), Certainty: min(sure, machine.Likely),
	}
	r.Estimate.To = max(r.Estimate.From, r.Estimate.To)
	t.receipts.list = append(t.receipts.list, r)
}

// sentAfter returns an instant after which a far side sent a packet. The packet's header acks
// packets of the peer, and the instant is when the newest of these passed the tap. It is unknown
// for a near side, whose packets pass when they are sent.
func (t *Tracker) sentAfter(x machine.Side, sequence uint32) machine.Span {
	if t.Sides == nil || t.Sides[x].Near {
		return machine.Span{}
	}
	e := t.Sides[x].Sent(sequence)
	if e == nil || e.Flags&gaffer.SentHeader == 0 {
		return machine.Span{}
	}
	c := t.rules.Claims(e.Ack, e.AckBits)
	read := t.Sides[x.Other()].Sent(c.Newest)
	if read == nil || !c.Names(t.rules, c.Newest) {
		return machine.Span{}
	}
	return machine.At(read.At, t.grade(machine.Certain))
}

// Carrier returns a packet of a side that carries messages, as it passed the tap in d. The
// caller adds its length and payload, and how its number counts on.
func (t *Tracker) Carrier(d *machine.Datagram, p *wire.Packet) messages.Carrier {
	k := messages.Carrier{At: d.At, Ref: d.Ref, Sequence: p.Sequence, Datagrams: max(p.FragmentCount, 1), Missing: -1}
	if t.Sides != nil {
		s := &t.Sides[d.From]
		k.Near, k.Supposed, k.After = s.Near, t.facts.Supposed[d.From], t.sentAfter(d.From, p.Sequence)
		if s.Met {
			k.Missing, k.Begun = int64(s.sent.missing()), s.sent.first64 == 0
		}
	}
	return k
}
