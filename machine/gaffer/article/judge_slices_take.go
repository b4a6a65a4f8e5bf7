package article

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/judge"
)

// sliceTaker is the reference of a side at the tap that receives blocks.
type sliceTaker struct {
	base   sliceIntake
	opened bool
	queue  sliceQueue
	doubts []sliceDoubt
	last   machine.Ref // the frame of its last ack
	lastAt machine.Instant
	begun  machine.Instant // when its first ack passed
	// whole is the first block of which all slices passed the tap, once wholeSome is set. Some
	// slices of the block before were still missing when an ack passed.
	whole     int64
	wholeSome bool
	assumed   sliceSet // slices that came before the capture, of the block that was then under way
	first     int64    // the number of that block
	wrong     *machine.Divergence
}

// pendingSlice is a slice in a near side's socket.
type pendingSlice struct {
	ref       machine.Ref
	chunk     uint16
	id, count uint16
}

// sliceQueue is the slices that the side has not read, in order.
type sliceQueue struct {
	list []pendingSlice
	lost bool // some were dropped: more came than are kept
}

// slicesMost is how many slices a sliceQueue holds. A full queue drops its oldest
// quarter.
// Source: bound, the slices that wait for an ack
const slicesMost = 1024

func (q *sliceQueue) push(p pendingSlice) {
	if len(q.list) == slicesMost {
		q.drop(slicesMost / 4)
		q.lost = true
	}
	q.list = append(q.list, p)
}

func (q *sliceQueue) drop(n int) { q.list = append(q.list[:0], q.list[n:]...) }

// sliceDoubt is a slice that was read, since an ack names later ones, and that this ack does
// not name. Either the host dropped it, or the ack is wrong. If a later ack names it and no
// other copy came, the ack was wrong.
type sliceDoubt struct {
	chunk      uint16
	id         int
	divergence *machine.Divergence
}

// judge compares an ack of the side with the reference's.
func (t *sliceTaker) judge(s, peer *sliceSide, d *machine.Datagram, c sliceClaim) *machine.Divergence {
	if t.last != 0 && d.At.Sub(t.lastAt) < ackEvery-clockSlack {
		return diverges(d, AckEarly, machine.RestsOnOwn,
			machine.Differ("gaffer.slice.acked", "at least 100 ms after the last one",
				fmt.Sprintf("after %.0f ms", machine.Milliseconds(d.At.Sub(t.lastAt)))), "acks go out every 100 ms at most", t.last)
	}
	if t.last == 0 {
		t.begun = d.At
	}
	v := t.match(s, peer, d, c)
	t.last, t.lastAt = d.Ref, d.At
	return v
}

func (t *sliceTaker) match(s, peer *sliceSide, d *machine.Datagram, c sliceClaim) (v *machine.Divergence) {
	first := !t.opened
	u := peer.blocks.unwrap(c.chunk)
	if peer.blocks.met && c.came != allSlices(c.count) {
		defer func() {
			if !t.wholeSome && v == nil {
				t.whole, t.wholeSome = u+1, true
			}
		}()
	}
	if first {
		if !peer.blocks.met {
			t.join(peer, c)
			s.opinion.Undecided++
			return nil
		}
		t.opened = true
		t.base = sliceIntake{chunk: peer.blocks.first}
	}
	if t.wrong != nil && u == t.first && t.assumed.missing(&c.came) >= 0 {
		return t.wrong
	}
	if tried, n, ok := t.retrace(c, false); ok {
		t.commit(tried, n)
		return nil
	}
	if t.explain(d, c) {
		s.opinion.Undecided++
		return nil
	}
	precede := false
	if v = t.miscounted(peer, d, c); v == nil { // a wrong count is wrong whatever came before
		v = t.unexplained(d, c)
		precede = d.At.Sub(t.begun) < unreadFor && t.mayPrecede(&peer.blocks, u)
	}
	switch {
	case precede:
		// The side had received slices before the capture began, or they lay in its socket.
		wrong := t.wrong
		t.join(peer, c)
		if t.wrong = wrong; wrong == nil && v.Rule == judge.AckNeverArrived {
			t.wrong = v
		}
	case t.queue.lost:
		t.join(peer, c)
	default:
		return v
	}
	s.opinion.Undecided++
	return nil
}

// mayPrecede reports whether slices of a block may have come before the capture.
func (t *sliceTaker) mayPrecede(b *sentBlocks, u int64) bool {
	return !b.met || u >= b.first-1 && u <= b.first+1 && !(t.wholeSome && (u >= t.whole || u < t.base.chunk-1))
}

// retrace finds how much the side had read when it sent an ack. With drop, slices that the ack
// leaves out count as never received.
func (t *sliceTaker) retrace(c sliceClaim, drop bool) (tried sliceIntake, n int, ok bool) {
	tried = t.base
	if claim, due := tried.claim(); due && claim == c {
		return tried, 0, true
	}
	for i := range t.queue.list {
		p := &t.queue.list[i]
		if drop && p.chunk == c.chunk && (int(p.count) != c.count || !c.came.has(int(p.id))) {
			continue
		}
		tried.arrive(p.chunk, int(p.id), int(p.count))
		if claim, due := tried.claim(); due && claim == c {
			return tried, i + 1, true
		}
	}
	return tried, 0, false
}

func (t *sliceTaker) commit(tried sliceIntake, n int) {
	t.base = tried
	t.base.claimed()
	t.queue.drop(n)
}

// join assumes that what the first ack names had come before the capture.
func (t *sliceTaker) join(peer *sliceSide, c sliceClaim) {
	lost := t.queue.lost
	u := int64(c.chunk)
	passed := sliceSet{}
	if peer.blocks.met {
		u = peer.blocks.unwrap(c.chunk)
		if b := peer.blocks.of(u); b != nil {
			passed = b.passed
		}
	}
	until := 0
	for i := range t.queue.list {
		if p := &t.queue.list[i]; p.chunk == c.chunk && int(p.count) == c.count && c.came.has(int(p.id)) {
			until = i + 1
		}
	}
	t.queue.drop(until)
	t.queue.lost, t.opened = lost && t.opened, true
	t.base = sliceIntake{chunk: u, count: c.count, have: c.came}
	if c.came == allSlices(c.count) {
		t.base = sliceIntake{chunk: u + 1, last: c.count}
	}
	t.first, t.assumed, t.wrong = u, c.came.less(&passed), nil
}

// explain reports whether an ack is right if the side's host dropped some slices. These are in
// doubt from then on.
func (t *sliceTaker) explain(d *machine.Datagram, c sliceClaim) bool {
	tried, n, ok := t.retrace(c, true)
	if !ok {
		return false
	}
	for i := range n {
		p := &t.queue.list[i]
		if id := int(p.id); p.chunk == c.chunk && int(p.count) == c.count && !c.came.has(id) {
			want := c
			want.came.add(id)
			v := ackDiffers(d, judge.AckOmitted, machine.RestsOnBoth, want, c,
				fmt.Sprintf("slice %d came before this ack, which names later ones and not it; a later ack names it without "+
					"another copy of it", id), p.ref)
			t.doubts = machine.KeepNewest(t.doubts, sliceDoubt{c.chunk, id, v}, judge.DoubtsMost)
		}
	}
	t.commit(tried, n)
	return true
}

// miscounted returns the divergence of an ack that has another count of slices than the slices
// of its block; nil where there is none.
func (t *sliceTaker) miscounted(peer *sliceSide, d *machine.Datagram, c sliceClaim) *machine.Divergence {
	b := peer.blocks.of(peer.blocks.unwrap(c.chunk))
	if b == nil || b.count == c.count {
		return nil
	}
	want := c
	want.count = b.count
	v := ackDiffers(d, SliceCount, machine.RestsOnPeer, want, c,
		fmt.Sprintf("the slices of block %d say that it has %d", c.chunk, b.count), b.ref)
	v.Mismatch = machine.Differ("gaffer.slice.count", b.count, c.count)
	return v
}

// unexplained returns the divergence of an ack that nothing explains.
func (t *sliceTaker) unexplained(d *machine.Datagram, c sliceClaim) *machine.Divergence {
	want := t.nearest(c)
	if c.chunk != uint16(t.base.chunk) {
		if c.chunk == uint16(t.base.chunk-1) && c.came == allSlices(c.count) {
			return ackDiffers(d, AckUnasked, machine.RestsOnBoth, want, c,
				fmt.Sprintf("no slice of block %d has come since the last ack of it", c.chunk), t.last)
		}
		if c.chunk == uint16(t.base.chunk-1) {
			want.chunk, want.count, want.came = c.chunk, c.count, allSlices(c.count)
			return ackDiffers(d, judge.AckWithdrawn, machine.RestsOnOwn, want, c,
				fmt.Sprintf("all slices of block %d had been received", c.chunk), t.last)
		}
		if c.chunk != uint16(t.base.chunk+1) {
			return ackDiffers(d, AckBlock, machine.RestsOnBoth, want, c,
				fmt.Sprintf("block %d is neither the one that is coming in nor the one before it", c.chunk), t.last)
		}
		// What was missing of the block before?
		if x := t.doubted(uint16(t.base.chunk)); x != nil {
			return x.divergence
		}
		for i := range t.queue.list {
			if p := &t.queue.list[i]; p.chunk == c.chunk && c.came.has(int(p.id)) {
				return ackDiffers(d, AckBlock, machine.RestsOnBoth, want, c,
					fmt.Sprintf("block %d is acked, and not all slices of the block before it were captured on their way to this side",
						c.chunk), t.last)
			}
		}
	} else if q := t.base.have.missing(&c.came); q >= 0 {
		want := c
		want.came = want.came.with(&t.base.have)
		return ackDiffers(d, judge.AckWithdrawn, machine.RestsOnOwn, want, c,
			fmt.Sprintf("slice %d was received, an earlier ack names it, and this one does not", q), t.last)
	}
	passed := t.base.have
	if c.chunk != uint16(t.base.chunk) {
		passed = sliceSet{}
	}
	for i := range t.queue.list {
		if p := &t.queue.list[i]; p.chunk == c.chunk {
			passed.add(int(p.id))
		}
	}
	q := c.came.missing(&passed)
	if q < 0 {
		return ackDiffers(d, AckUnasked, machine.RestsOnBoth, want, c, "no slice has come since the last ack", t.last)
	}
	for i := range t.doubts {
		if x := &t.doubts[i]; x.chunk == c.chunk && x.id == q {
			return x.divergence
		}
	}
	want = c
	want.came = c.came
	want.came[q/64] &^= 1 << (q % 64)
	return ackDiffers(d, judge.AckNeverArrived, machine.RestsOnBoth, want, c,
		fmt.Sprintf("the ack names slice %d of block %d, which was not captured on its way to this side", q, c.chunk), t.last)
}

// doubted returns a doubt about a block; nil for none.
func (t *sliceTaker) doubted(chunk uint16) *sliceDoubt {
	for i := range t.doubts {
		if x := &t.doubts[i]; x.chunk == chunk && !t.base.have.has(x.id) {
			return x
		}
	}
	return nil
}

// nearest returns the ack of the reference after all that has come.
func (t *sliceTaker) nearest(c sliceClaim) sliceClaim {
	tried := t.base
	tried.current = true
	want, _ := tried.claim()
	for i := range t.queue.list {
		p := &t.queue.list[i]
		tried.arrive(p.chunk, int(p.id), int(p.count))
		if claim, due := tried.claim(); due && claim.chunk == c.chunk {
			want = claim
		}
	}
	return want
}

// ackDiffers returns the divergence of an ack that is not the reference's.
func ackDiffers(
	d *machine.Datagram, rule *machine.Rule, rests machine.RestsOn, want, got sliceClaim, because string,
	frames ...machine.Ref,
) *machine.Divergence {
	m := machine.Differ("gaffer.slice.acked", want.came.draw(want.count), got.came.draw(got.count))
	v := diverges(d, rule, rests, m, because, frames...)
	if want.chunk != got.chunk {
		v.Mismatch = machine.Differ("gaffer.slice.chunk", want.chunk, got.chunk)
	}
	v.Reference = fmt.Sprintf("block %d: %s", want.chunk, want.came.draw(want.count))
	v.Captured = fmt.Sprintf("block %d: %s", got.chunk, got.came.draw(got.count))
	return v
}

// ackChains is what a far side's acks said of the newest blocks.
type ackChains struct{ ring [4]ackChain }

// ackChain is the acks of one block. In the order in which they were sent, each has all that
// the one before it has.
type ackChain struct {
	chunk int64
	live  bool
	said  []saidAck
}

type saidAck struct {
	came sliceSet
	ref  machine.Ref
}

// judge compares an ack of a far side with what passed, and with the other acks of the side.
func (t *ackChains) judge(peer *sliceSide, d *machine.Datagram, c sliceClaim) *machine.Divergence {
	b := &peer.blocks
	u := b.unwrap(c.chunk)
	e := b.of(u)
	switch {
	case !b.met || u <= b.newest-int64(len(b.ring)) || e == nil && u <= b.first+joinedBlocks:
		return nil // from before the capture, or too old to be kept
	case e == nil:
		return ackDiffers(d, judge.AckNeverArrived, machine.RestsOnBoth,
			sliceClaim{chunk: uint16(b.newest), count: c.count, came: c.came}, c,
			fmt.Sprintf("no slice of block %d was captured", c.chunk), b.ref)
	case e.count != c.count:
		return diverges(d, SliceCount, machine.RestsOnPeer, machine.Differ("gaffer.slice.count", e.count, c.count),
			fmt.Sprintf("the slices of block %d say that it has %d", c.chunk, e.count), e.ref)
	}
	if q := c.came.missing(&e.passed); q >= 0 && u > b.first+joinedBlocks {
		want := c
		want.came[q/64] &^= 1 << (q % 64)
		return ackDiffers(d, judge.AckNeverArrived, machine.RestsOnBoth, want, c,
			fmt.Sprintf("the ack names slice %d of block %d, which was not captured", q, c.chunk), b.ref)
	}
	x := &t.ring[u&3]
	if !x.live || x.chunk != u {
		if x.live && x.chunk > u {
			return nil
		}
		*x = ackChain{chunk: u, live: true, said: x.said[:0]}
	}
	for i := range x.said {
		was := &x.said[i]
		if was.came == c.came {
			return nil
		}
		if p, q := was.came.missing(&c.came), c.came.missing(&was.came); p >= 0 && q >= 0 {
			want := c
			want.came.add(p)
			return ackDiffers(d, judge.AckWithdrawn, machine.RestsOnOwn, want, c,
				fmt.Sprintf("one ack names slice %d and not %d, another names %d and not %d: one of two acks must have all that "+
					"the other has", p, q, q, p), was.ref)
		}
	}
	x.said = append(x.said, saidAck{c.came, d.Ref}) // at most one for each slice, since each has more than another
	return nil
}
