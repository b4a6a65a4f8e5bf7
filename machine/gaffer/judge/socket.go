package judge

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// pendingPacket is a datagram in a near side's socket.
type pendingPacket struct {
	ref       machine.Ref
	sequence  uint32
	id, count uint16
	headers   int  // headers of the side that had passed when it came
	late      bool // a newer packet had passed before it
}

// pendingQueue is a ring of datagrams, in order.
type pendingQueue struct {
	ring []pendingPacket
	head int
	n    int
}

func (q *pendingQueue) at(i int) *pendingPacket { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

func (q *pendingQueue) push(p pendingPacket) {
	if q.n == len(q.ring) {
		ring := make([]pendingPacket, max(8, 2*len(q.ring)))
		for i := range q.n {
			ring[i] = *q.at(i)
		}
		q.ring, q.head = ring, 0
	}
	q.n++
	*q.at(q.n - 1) = p
}

func (q *pendingQueue) drop(n int) {
	if n > 0 {
		q.head = (q.head + n) & (len(q.ring) - 1)
		q.n -= n
	}
}

// whole returns how many datagrams of the socket must be read before packet q is received; 0
// where the socket does not complete it.
func (n *NearSide) whole(q uint32) int {
	var have gaffer.Partial
	if p := n.base.PartialOf(q); p != nil {
		have = *p
	}
	for i := range n.queue.n {
		p := n.queue.at(i)
		if p.sequence != q {
			continue
		}
		if p.count == 0 {
			return i + 1
		}
		if have.Count == 0 {
			have = gaffer.Partial{Sequence: q, Count: int(p.count), Missing: int(p.count)}
		}
		if bit := uint64(1) << (p.id % 64); int(p.count) == have.Count && have.Have[p.id/64]&bit == 0 {
			have.Have[p.id/64] |= bit
			if have.Missing--; have.Missing == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// begun returns how many datagrams must be read before a fragment of packet q has come; 0
// where none has.
func (n *NearSide) begun(q uint32) int {
	for i := range n.queue.n {
		if p := n.queue.at(i); p.sequence == q && p.count > 0 {
			return i + 1
		}
	}
	return 0
}

// mayPrecede reports whether packet q may have reached the side before the capture began, or
// may be one that could not be read.
func (n *NearSide) mayPrecede(peer *Judged, q uint32) bool {
	if n.unknownSlot(q) && n.base.Rules.Distance(q, n.base.NewestReceived()) > 0 {
		return true // and no header before reached it
	}
	r := n.base.Rules
	if ahead := r.Distance(q, peer.Sent.top); peer.Sent.met && ahead > 0 && ahead <= peer.unread() {
		return true // it may be a datagram that could not be read
	}
	if n.overflowed || n.hidAtJoin(q) {
		return true
	}
	if peer.passage(r, q) == passedFragments {
		// Its first fragments may have come before the capture.
		return n.joined && r.Distance(q, n.joinedTop) <= r.Partial || n.mayLie() && peer.mayHavePassed(q)
	}
	return n.mayLie() && n.unreadBefore(peer, q)
}

// hidAtJoin reports whether the header at which the judge joined says nothing of packet q. For
// example, rely writes bits 8 to 15 of ack_bits as 0 unless all of them are set.
func (n *NearSide) hidAtJoin(q uint32) bool {
	behind := n.base.Rules.Distance(n.joinedTop, q)
	return n.joined && behind >= 0 && behind < 64 && n.joinedSilent>>uint(behind)&1 == 1
}

// mayLie reports whether packets from before the capture may still lie unread in the socket.
// It is read in order: once a header shows that a packet of the capture was read, they were
// read too. A copy of a packet can show that too early, so the first headers do not count.
func (n *NearSide) mayLie() bool { return !n.first && (!n.shows || n.headers <= joinedHeaders) }

// unreadBefore reports whether packet q may have lain unread in the socket when the capture
// began, or when its peer restarted. If so, mayLie alone decides for how long the side may name
// it.
func (n *NearSide) unreadBefore(peer *Judged, q uint32) bool {
	r := n.base.Rules
	return peer.before.earlier.Has(q) || peer.passage(r, q) != passedFragments && peer.mayHavePassed(q)
}

// assumes reports whether a limit without a measured margin decides that packet q, which the side
// names, did not lie in the socket.
func (n *NearSide) assumes(peer *Judged, q uint32) bool {
	return n.unreadBefore(peer, q) || n.mayLie() && peer.assumes(q)
}

// joinedHeaders is how many of a side's first headers may name packets that arrived
// before the capture began.
// Source: unmeasured, a divergence that it decides is likely at most
const joinedHeaders = 3
