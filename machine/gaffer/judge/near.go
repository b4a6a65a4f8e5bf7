package judge

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/tracker"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// NearSide is the reference of a side at the tap.
//
// The wire does not show when within a frame an endpoint reads its socket, only that it
// reads in order. So two states step through the same packets. The state ahead tries how
// many more must be read before a header. The state base follows once that is settled.
type NearSide struct {
	base, ahead gaffer.State
	opened      bool
	joined      bool // the capture began in the middle: what is older is unknown
	joinedTop   uint32
	// joinedSilent has a bit for each packet behind joinedTop of which that header says nothing.
	joinedSilent uint64
	headers      int      // since it was opened
	unknown      []uint64 // where old entries stay: bits of the slots whose entry is not known

	queue  pendingQueue
	first  bool // it sent its very first packet before one of its peer's passed, so nothing came before the capture
	shows  bool // a header showed that something of the queue was read, so all that came before it was read too
	doubts []doubt
	last   machine.Ref // the frame of its last header

	arrived    []arrivedPacket // by sequence modulo 64: the last packets that were read
	refused    uint64
	refusals   refusals
	malformed  malformedRing
	unread     int    // packets that no header shows to have been read, at the end
	before     uint64 // headers that name packets from before the capture
	overflowed bool
}

// note keeps the frame of a packet that was read.
func (n *NearSide) note(p *pendingPacket) {
	if n.arrived == nil {
		n.arrived = make([]arrivedPacket, 64)
	}
	n.arrived[p.sequence%64] = arrivedPacket{p.ref, p.sequence}
}

type arrivedPacket struct {
	ref      machine.Ref
	sequence uint32
}

func newNearSide(r *gaffer.Rules) *NearSide {
	return &NearSide{base: gaffer.NewState(r), ahead: gaffer.NewState(r)}
}

// arrive puts a datagram into the side's socket.
func (n *NearSide) arrive(p pendingPacket) {
	if n.queue.n >= tracker.QueueMost {
		// What became of the oldest datagram is no longer known.
		n.queue.drop(1)
		n.overflowed = true
	}
	p.headers = n.headers
	n.queue.push(p)
}

// read has a state read one datagram; with refuse, the application refuses its packet.
func (n *NearSide) read(s *gaffer.State, p *pendingPacket, refuse bool) {
	if p.count == 0 {
		s.Arrive(p.sequence, refuse)
		return
	}
	if s.ArriveFragment(p.sequence, int(p.id), int(p.count)) == gaffer.FragmentComplete {
		s.Arrive(p.sequence, refuse)
		s.Forget(p.sequence)
	}
}

// judge compares a header of the side with the reference's.
func (n *NearSide) judge(s, peer *Judged, d *machine.Datagram, h wire.Header) *machine.Divergence {
	c := s.claims(h)
	if !n.opened {
		n.open(s, peer, h, c)
		if v := n.opensWrong(peer, d, h.Sequence, c); v != nil {
			return v
		}
	}
	n.headers++
	v := n.match(s, peer, d, c)
	n.last = d.Ref
	return v
}

// open starts the reference: as an endpoint that has just begun, or where the first header
// says that the side stands. That header says which packets were received, and nothing else.
// For example, ack is 181 and bit 0 is clear: a fragment of packet 181 was read, and not
// all of them. So what the socket holds stays in it, and the next headers show what was read.
// To read again what the header names changes nothing.
func (n *NearSide) open(s, peer *Judged, h wire.Header, c gaffer.Claims) {
	r := n.base.Rules
	n.opened = true
	if c.Nothing(r) || h.Sequence == 0 && !s.Sent.met && (s.before.earlier.Known() || !n.wraps(c)) {
		n.first = c.Nothing(r) && h.Sequence == 0 && !peer.Sent.met && !peer.before.earlier.Known()
		return
	}
	n.joined, n.joinedTop, n.joinedSilent = true, c.Newest, r.Silent(c)
	n.base.Join(c)
	for i := range n.queue.n {
		q := n.queue.at(i).sequence
		n.shows = n.shows || q == c.Newest || c.Names(r, q)
	}
	if r.NoStaleClear {
		n.unknown = make([]uint64, (r.Received+63)/64)
		for i := range r.Received {
			n.unknown[i/64] |= 1 << (i % 64)
		}
		for left := c.Named; left != 0; left &= left - 1 {
			n.know((c.Newest - uint32(bits.TrailingZeros64(left))) & r.Mask())
		}
	}
	n.ahead = n.base.Clone()
}

// opensWrong returns the divergence of a first header that names a packet older than the first
// one of its peer.
func (n *NearSide) opensWrong(
	peer *Judged, d *machine.Datagram, number uint32, c gaffer.Claims,
) (v *machine.Divergence) {
	if c.Nothing(n.base.Rules) {
		return nil
	}
	peer.goesOn(number, c)
	c.Each(n.base.Rules, func(q uint32) {
		if v == nil && peer.neverSent(q) && !peer.before.earlier.Has(q) {
			v = n.neverArrived(peer, d, c, q)
		}
	})
	return v
}

// wraps reports whether packet 0 of the side is not its first: its header names many packets of
// which none passed.
func (n *NearSide) wraps(c gaffer.Claims) bool {
	unseen := 0
	c.Each(n.base.Rules, func(q uint32) {
		if n.whole(q) == 0 {
			unseen++
		}
	})
	return unseen >= tracker.WrapsLeast
}

// know records that the entry of a packet's slot is now known, if the packet is in it.
func (n *NearSide) know(q uint32) {
	if n.unknown != nil && n.base.Has(q) {
		i := gaffer.Slot(q, n.base.Rules.Received)
		n.unknown[i/64] &^= 1 << (i % 64)
	}
}

func (n *NearSide) unknownSlot(q uint32) bool {
	if n.unknown == nil {
		return false
	}
	i := gaffer.Slot(q, n.base.Rules.Received)
	return n.unknown[i/64]>>(i%64)&1 == 1
}

// match finds how much the side had read when it sent a header with these claims, and lets
// the reference read that.
func (n *NearSide) match(s, peer *Judged, d *machine.Datagram, c gaffer.Claims) *machine.Divergence {
	r := n.base.Rules
	if len(n.doubts) > 0 {
		n.retire(c)
	}
	if n.ahead.Claims() == c {
		return nil
	}
	for i := 0; i < n.queue.n; i++ {
		n.read(&n.ahead, n.queue.at(i), false)
		if n.ahead.Claims() == c {
			n.commit(i + 1)
			return nil
		}
		if r.Distance(n.ahead.NewestReceived(), c.Newest) > 0 && i > 0 {
			break // the window never goes back
		}
	}
	n.ahead = n.base.Clone()
	return n.explain(s, peer, d, c)
}

// commit records that the side has read the first i datagrams of its socket. The state ahead
// has read them already.
func (n *NearSide) commit(i int) {
	for k := range i {
		p := n.queue.at(k)
		n.refusals.reads(p)
		n.read(&n.base, p, false)
		n.note(p)
		n.know(p.sequence)
	}
	n.queue.drop(i)
	n.shows = true
}

// explain looks for another reason for a header: packets that the application refused, or
// packets from before the capture.
func (n *NearSide) explain(s, peer *Judged, d *machine.Datagram, c gaffer.Claims) *machine.Divergence {
	r := n.base.Rules
	if c.Nothing(r) {
		return n.diverge(d, c, &n.base, AckWentBack, machine.RestsOnOwn,
			"the side had received packets before, and this header says that it had not", gaffer.Refs(n.last)...)
	}
	if back := r.Distance(n.base.NewestReceived(), c.Newest); back > 0 && !n.base.Claims().Nothing(r) {
		return n.diverge(d, c, &n.base, AckWentBack, machine.RestsOnOwn,
			fmt.Sprintf("ack is %d older than in the header before: the newest packet received never becomes an older one",
				back), gaffer.Refs(n.last)...)
	}
	if v := n.withdrawn(d, c); v != nil {
		return v
	}
	// until is how many datagrams must have been read for all that is newly named.
	attempt := n.base.Clone()
	until, undecided := 0, false
	for left := c.Named; left != 0; left &= left - 1 {
		q := (c.Newest - uint32(bits.TrailingZeros64(left))) & r.Mask()
		if n.base.Has(q) {
			continue
		}
		if i := n.whole(q); i > 0 {
			until = max(until, i)
			continue
		}
		if x := n.doubted(q); x != nil {
			return n.resolve(x, d, c)
		}
		if !n.mayPrecede(peer, q) {
			v := n.neverArrived(peer, d, c, q)
			v.Assumed = n.assumes(peer, q)
			return v
		}
		undecided = true
	}
	if c.Named&1 == 0 && c.Newest != n.base.NewestReceived() {
		i := n.begun(c.Newest)
		if peer.passage(r, c.Newest) == passedWhole {
			want := c
			want.Named |= 1
			return n.diverge2(d, c, want, AckWithoutBit, machine.RestsOnPeer, withoutBit(c.Newest), gaffer.Refs(n.last))
		}
		if i == 0 && !n.mayPrecede(peer, c.Newest) {
			v := n.diverge(d, c, n.nearest(c), AckNeverArrived, machine.RestsOnBoth,
				fmt.Sprintf("ack names packet %d, and none of its fragments was captured", c.Newest), gaffer.Refs(n.last)...)
			v.Assumed = n.assumes(peer, c.Newest)
			return v
		}
		undecided = undecided || i == 0
		until = max(until, i)
	}
	refused := n.retrace(&attempt, c, until)
	if undecided {
		n.before++
		attempt.Advance(c.Newest)
		for left := c.Named; left != 0; left &= left - 1 {
			if q := (c.Newest - uint32(bits.TrailingZeros64(left))) & r.Mask(); !attempt.Has(q) {
				attempt.EnterReceived(q)
			}
		}
	}
	if attempt.Claims() != c {
		want := attempt.Claims()
		if len(refused) == 0 {
			return n.diverge(d, c, &attempt, AckOmitted, machine.RestsOnPeer,
				fmt.Sprintf("the side read packets that the header leaves out before packets that it acks "+
					"(%s)", lacking(r, want, c)), gaffer.Refs(n.last)...)
		}
		return n.diverge(d, c, n.nearest(c), AckOrder, machine.RestsOnBoth,
			"no order of the packets that were captured on their way to the side leads to this header", gaffer.Refs(n.last)...)
	}
	for _, p := range refused {
		n.refuse(d, c, p)
	}
	n.base, n.ahead = attempt, attempt.Clone()
	for left := c.Named; left != 0 && n.unknown != nil; left &= left - 1 {
		n.know((c.Newest - uint32(bits.TrailingZeros64(left))) & r.Mask())
	}
	for k := range until {
		p := n.queue.at(k)
		n.refusals.reads(p)
		n.note(p)
		n.know(p.sequence)
	}
	n.queue.drop(until)
	n.shows = n.shows || until > 0
	s.Opinion.Undecided++
	return nil
}

// retrace lets a state read the first datagrams of the socket. Packets that the header reaches
// and leaves out are refused, and retrace returns them.
func (n *NearSide) retrace(attempt *gaffer.State, c gaffer.Claims, until int) (refused []pendingPacket) {
	r := attempt.Rules
	for i := range until {
		p := n.queue.at(i)
		behind := r.Distance(c.Newest, p.sequence)
		refuse := behind < 0 || r.Omits(c, behind)
		has := attempt.Has(p.sequence)
		if refuse && !has && p.count == 0 && attempt.Classify(p.sequence) == gaffer.Accepted {
			refused = append(refused, *p)
		}
		if refuse && p.count > 0 {
			part := attempt.PartialOf(p.sequence)
			whole := part != nil && part.Missing == 1 && part.Have[p.id/64]>>(p.id%64)&1 == 0 || p.count == 1
			switch {
			case whole && n.malformed.has(p.sequence):
				n.refusals.malformed++ // no application saw it
			case whole:
				refused = append(refused, *p)
			}
		}
		n.read(attempt, p, refuse)
	}
	return refused
}

// unreadMost is how many packets may lie in the socket of a side that goes on sending.
// Beyond that, the judge doubts that the side reads them.
// Source: measured, TestMarginsGaffer
const unreadMost = 64

// finish counts, at the end of the flow, the packets that no header shows to have been read.
func (n *NearSide) finish(s *Judged) {
	for i := range n.queue.n {
		if p := n.queue.at(i); p.headers+unreadMost < n.headers && n.ahead.Classify(p.sequence) == gaffer.Accepted {
			n.unread++
		}
	}
	if n.unread > unreadMost || n.overflowed {
		s.Opinion.Undecided = min(s.Opinion.Undecided+1, s.Opinion.Compared) // its last header, at least
	}
}

// why says what the undecided headers left open.
func (n *NearSide) why() string {
	const refused = "packets that arrived and were not taken: refused by the application, or dropped by its host"
	var parts []string
	if n.unread > unreadMost || n.overflowed {
		return fmt.Sprintf("%d packets arrived and no later header shows that they were read", n.unread)
	}
	if n.before > 0 {
		parts = append(parts, "packets from before the capture")
	}
	if dropped := n.refusals.malformed; dropped > 0 {
		parts = append(parts,
			fmt.Sprintf("%d packets dropped as malformed: fragments of them are not of the usual size", dropped))
	}
	if n.refused > 0 || len(n.doubts) > 0 || len(parts) == 0 {
		parts = append(parts, refused+n.refusals.why())
	}
	return strings.Join(parts, "; ")
}
