package article

import (
	"fmt"
	"slices"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/judge"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// sliceSender is the reference of a side at the tap that sends blocks. The wire does not show
// when an endpoint reads its socket, only that it reads in order.
type sliceSender struct {
	round   sliceRound
	chunk   int64
	begun   bool
	loose   bool // where the round stands is not known until the next block
	early   bool // the block may have begun before the capture
	pending claimQueue
	unread  []judge.UnreadDatagram // since its last slice

	// assumed is the set of slices that the side passed over in a block that had begun before
	// the capture. It must have read acks of them. If it sends one of them after all, passing
	// it over was wrong, and assumedAs is the divergence.
	assumed   sliceSet
	assumedAs *machine.Divergence
}

// pendingClaim is an ack in a near side's socket.
type pendingClaim struct {
	sliceClaim
	ref machine.Ref
}

// claimQueue is the acks that the side has not read, in order.
type claimQueue struct {
	list []pendingClaim
	lost bool // some were dropped: more came than are kept
}

// claimsMost is how many acks a claimQueue holds. A full queue drops its oldest
// quarter.
// Source: bound, the claims that wait to be decided
const claimsMost = 256

func (q *claimQueue) push(c pendingClaim) {
	if len(q.list) == claimsMost {
		q.drop(claimsMost / 4)
		q.lost = true
	}
	q.list = append(q.list, c)
}

func (q *claimQueue) drop(n int) { q.list = append(q.list[:0], q.list[n:]...) }

// passesOver keeps a datagram that is no packet of the profile.
func (n *sliceSender) passesOver(s *sliceSide, d *machine.Datagram, cut bool) {
	if s.near && s.opinion.Divergence == nil && len(n.unread) < judge.UnreadSome {
		n.unread = append(n.unread,
			judge.UnreadDatagram{Ref: d.Ref, At: d.At, Cut: cut, B: append([]byte(nil), d.Bytes[:min(len(d.Bytes), 12)]...)})
	}
}

// judge compares a slice of the side with the reference's.
func (n *sliceSender) judge(s, peer *sliceSide, d *machine.Datagram, p *wire.Packet, u int64) (v *machine.Divergence) {
	switch {
	case !n.begun:
		n.begin(u, p)
		// The block is under way. Which of its slices are acked, when they left and where the
		// round stands is not known.
		n.early, n.loose = true, u != 0 || p.SliceID != 0 || len(n.pending.list) > 0
	case u != n.chunk:
		n.turn()
		n.begin(u, p)
		n.early, n.loose = false, false
		if n.loose = n.cutBefore(); p.SliceID != 0 && !n.loose {
			v = n.skipped(s, d, p)
		}
	case n.loose:
		if v = n.soon(s, d, p); v == nil {
			s.opinion.Undecided++
		}
	default:
		if v = n.soon(s, d, p); v == nil {
			v = n.order(s, peer, d, p)
		}
	}
	n.unread = n.unread[:0]
	if v == nil {
		n.round.sends(p.SliceID, d.At, s.asSample)
	}
	return v
}

func (n *sliceSender) begin(u int64, p *wire.Packet) {
	n.begun, n.chunk = true, u
	n.round.begin(p.SliceCount)
	n.assumed, n.assumedAs = sliceSet{}, nil
}

// turn drops the acks that were read when a block ended: up to the first one that names all
// of its slices.
func (n *sliceSender) turn() {
	for i := range n.pending.list {
		if c := &n.pending.list[i]; c.chunk == uint16(n.chunk) && c.count == n.round.count && c.came == allSlices(c.count) {
			n.pending.drop(i + 1)
			return
		}
	}
}

// soon returns the divergence of a slice that leaves again before its time.
func (n *sliceSender) soon(s *sliceSide, d *machine.Datagram, p *wire.Packet) *machine.Divergence {
	k := p.SliceID
	if s.asSample || !n.round.sent.has(k) {
		return nil
	}
	if wait := d.At.Sub(n.round.at[k]); wait < messages.ResendLeast-clockSlack {
		return diverges(d, SliceResentEarly, machine.RestsOnOwn,
			machine.Differ("gaffer.slice.id", "at least 100 ms after the last one",
				fmt.Sprintf("after %.0f ms", machine.Milliseconds(wait))),
			fmt.Sprintf("slice %d of block %d goes out again before the resend time has passed", k, p.Chunk), s.blocks.ref)
	}
	return nil
}

// order compares a slice with the round.
func (n *sliceSender) order(s, peer *sliceSide, d *machine.Datagram, p *wire.Packet) *machine.Divergence {
	k := p.SliceID
	if n.assumed.has(k) {
		return n.assumedAs
	}
	was := n.round.acked
	for i := 0; ; i++ {
		if n.fits(k, d.At, s.asSample) {
			n.pending.drop(i)
			return nil
		}
		if i == len(n.pending.list) {
			break
		}
		c := &n.pending.list[i]
		if c.chunk != uint16(n.chunk) || c.count != n.round.count {
			continue
		}
		if n.round.learns(&c.came) || c.came.has(k) {
			break // the round is over, or k is no longer in it
		}
	}
	n.round.acked = was
	if v := n.inPlace(s, d, p); v != nil || n.loose {
		return v
	}
	return n.passedOver(s, peer, d, p)
}

// fits reports whether a slice may be the next one by the acks that were read.
func (n *sliceSender) fits(k int, now machine.Instant, asSample bool) bool {
	r := &n.round
	next := r.next(func(q int) bool {
		// The round may pass over a slice that may not be due yet.
		return q != k && !asSample && r.sent.has(q) && now.Sub(r.at[q]) <= messages.ResendLeast+judge.ResendSlack
	})
	return next == k
}

// cutBefore reports whether the snap length cut a datagram since the last slice, so that it may have
// been a slice too.
func (n *sliceSender) cutBefore() bool {
	return slices.ContainsFunc(n.unread, func(u judge.UnreadDatagram) bool { return u.Cut })
}

// inPlace returns the divergence of unread datagrams that took the place of slices. If the
// snap length cut one of them, it may have been a slice: the round is then open.
func (n *sliceSender) inPlace(s *sliceSide, d *machine.Datagram, p *wire.Packet) *machine.Divergence {
	if len(n.unread) == 0 {
		return nil
	}
	was := n.round
	defer func() { n.round.acked, n.round.cursor, n.round.sent = was.acked, was.cursor, was.sent }()
	first := -1
	for i := range n.unread {
		if n.unread[i].Cut {
			s.opinion.Undecided++
			n.loose = true
			return nil
		}
		k := n.round.next(func(q int) bool {
			return !s.asSample && n.round.sent.has(q) && d.At.Sub(n.round.at[q]) <= messages.ResendLeast+judge.ResendSlack
		})
		if k < 0 {
			return nil
		}
		if first < 0 {
			first = k
		}
		n.round.cursor = (k + 1) % n.round.count
		n.round.sent.add(k)
		if s.asSample {
			n.round.cursor = (was.cursor + i + 1) % n.round.count
		}
	}
	if !n.fits(p.SliceID, d.At, s.asSample) {
		return nil
	}
	u := n.unread[0]
	got := fmt.Sprintf("no packet: % x", u.B)
	return &machine.Divergence{
		Ref: u.Ref, At: u.At, Rule: judge.Unreadable, RestsOn: machine.RestsOnBoth,
		Mismatch: machine.Differ("gaffer.slice.id", first, got),
		Because: fmt.Sprintf("the datagram is no packet of this profile, and it took the place of slice %d, which is "+
			"missing", first),
		Frames:    gaffer.Refs(s.blocks.ref, d.Ref),
		Reference: fmt.Sprintf("slice %d of block %d is next", first, p.Chunk), Captured: got,
	}
}

// passedOver judges a slice that is not the next of the round, whatever the side had read.
func (n *sliceSender) passedOver(s, peer *sliceSide, d *machine.Datagram, p *wire.Packet) *machine.Divergence {
	v := n.skipped(s, d, p)
	if n.pending.lost || peer.opinion.Divergence != nil || peer.near {
		// What it had read is open. Acks may have come that are no longer kept, or their sender
		// may be wrong.
		s.opinion.Undecided++
		n.loose = true
		return nil
	}
	if !n.early || n.round.acked.has(p.SliceID) {
		return v
	}
	// Acks from before the capture may have named the slices that it passes over.
	over := sliceSet{}
	for q := n.round.cursor; q != p.SliceID; q = (q + 1) % n.round.count {
		if n.round.acked.has(q) {
			continue
		}
		if n.round.sent.has(q) {
			return v
		}
		over.add(q)
	}
	s.opinion.Undecided++
	n.assumed, n.round.acked = n.assumed.with(&over), n.round.acked.with(&over)
	if n.assumedAs == nil {
		n.assumedAs = v
	}
	return nil
}

// skipped returns the divergence of a slice that is out of its turn.
func (n *sliceSender) skipped(s *sliceSide, d *machine.Datagram, p *wire.Packet) *machine.Divergence {
	k := n.round.next(func(q int) bool {
		return !s.asSample && n.round.sent.has(q) && d.At.Sub(n.round.at[q]) < messages.ResendLeast-clockSlack
	})
	because := fmt.Sprintf("slice %d of block %d is not acked, and its turn in the round comes before that of slice %d", k,
		p.Chunk, p.SliceID)
	switch {
	case k < 0:
		because = "no slice of the block is due"
	case n.round.acked.has(p.SliceID):
		because = fmt.Sprintf("slice %d is acked, and the side has shown to know it", p.SliceID)
	}
	v := diverges(d, SliceOrder, machine.RestsOnBoth, machine.Differ("gaffer.slice.id", k, p.SliceID),
		because, s.blocks.ref)
	v.Reference, v.Captured = n.draw(k), fmt.Sprintf("block %d: slice %d", p.Chunk, p.SliceID)
	return v
}

// draw shows the round: what is acked of the block, and what was sent.
func (n *sliceSender) draw(next int) string {
	b := []rune(nil)
	for k := range n.round.count {
		cell := machine.CellEmpty
		switch {
		case n.round.acked.has(k):
			cell = machine.CellAcked
		case n.round.sent.has(k):
			cell = machine.CellSent
		}
		b = append(b, cell.Rune())
	}
	return fmt.Sprintf("block %d: %s, next slice %d", uint16(n.chunk), string(b), next)
}
