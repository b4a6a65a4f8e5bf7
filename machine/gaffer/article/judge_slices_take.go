package article

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/judge"
)

// sliceTaker is the reference of a side at the tap that takes blocks.
type sliceTaker struct {
	base   sliceIntake
	opened bool
	queue  sliceQueue
	doubts []sliceDoubt
	last   machine.Ref // its last ack
	lastAt machine.Instant
	begun  machine.Instant // its first
	// Of blocks from this one on all slices passed the tap: some of the one before
	// were still missing when an ack was captured.
	whole     int64
	wholeSome bool
	assumed   sliceSet // of the block that was under way when the capture began
	first     int64    // that block
	wrong     *machine.Divergence
}

// pendingSlice is a slice that lies in a near side's socket.
type pendingSlice struct {
	ref       machine.Ref
	chunk     uint16
	id, count uint16
}

// sliceQueue is what lies unread, in order.
type sliceQueue struct {
	list []pendingSlice
	lost bool // more than is kept
}

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

// sliceDoubt is a slice that was read, for an ack names later ones, and that this
// ack does not name: the host dropped it, or the ack is wrong. If a later ack names
// it without another copy having come, the ack was wrong.
type sliceDoubt struct {
	chunk      uint16
	id         int
	divergence *machine.Divergence
}

// judge holds an ack of the side against the reference's.
func (t *sliceTaker) judge(s, peer *sliceSide, d *machine.Datagram, c sliceClaim) *machine.Divergence {
	if t.last != 0 && d.At.Sub(t.lastAt) < ackEvery-clockSlack {
		return diverges(d, "ack-early",
			machine.Differ("gaffer.slice.acked", "after 100 ms at the soonest",
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
	if trial, n, ok := t.retrace(c, false); ok {
		t.commit(trial, n)
		return nil
	}
	v = t.explain(peer, d, c)
	switch {
	case v != nil && v.Rule != "slice-count" && d.At.Sub(t.begun) < unreadFor && t.mayPrecede(&peer.blocks, u):
		// It had received slices before the capture began, or they lay in its socket.
		wrong := t.wrong
		t.join(peer, c)
		if t.wrong = wrong; wrong == nil && v.Rule == "ack-never-arrived" {
			t.wrong = v
		}
		s.opinion.Undecided++
		return nil
	case v != nil && t.queue.lost:
		t.join(peer, c)
		s.opinion.Undecided++
		return nil
	case v != nil:
		return v
	}
	s.opinion.Undecided++
	return nil
}

// mayPrecede reports whether slices of a block may have come before the capture.
func (t *sliceTaker) mayPrecede(b *sentBlocks, u int64) bool {
	return !b.met || u >= b.first-1 && u <= b.first+1 && !(t.wholeSome && (u >= t.whole || u < t.base.chunk-1))
}

// retrace finds how much the side has read when it sent an ack. With drop, the
// slices of the block that the ack does not name are taken not to have come.
func (t *sliceTaker) retrace(c sliceClaim, drop bool) (trial sliceIntake, n int, ok bool) {
	trial = t.base
	if claim, due := trial.claim(); due && claim == c {
		return trial, 0, true
	}
	for i := range t.queue.list {
		p := &t.queue.list[i]
		if drop && p.chunk == c.chunk && (int(p.count) != c.count || !c.came.has(int(p.id))) {
			continue
		}
		trial.arrive(p.chunk, int(p.id), int(p.count))
		if claim, due := trial.claim(); due && claim == c {
			return trial, i + 1, true
		}
	}
	return trial, 0, false
}

func (t *sliceTaker) commit(trial sliceIntake, n int) {
	t.base = trial
	t.base.claimed()
	t.queue.drop(n)
}

// join takes what the first ack says for what had come before the capture.
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

// explain looks for slices that the side's host may have dropped, and words what
// nothing explains.
func (t *sliceTaker) explain(peer *sliceSide, d *machine.Datagram, c sliceClaim) *machine.Divergence {
	trial, n, ok := t.retrace(c, true)
	if !ok {
		return t.word(peer, d, c)
	}
	for i := range n {
		p := &t.queue.list[i]
		if id := int(p.id); p.chunk == c.chunk && int(p.count) == c.count && !c.came.has(id) {
			want := c
			want.came.add(id)
			v := t.differs(d, "ack-omitted", want, c,
				fmt.Sprintf("slice %d came before this ack, which names later ones and not it; a later ack names it without "+
					"another copy of it", id), p.ref)
			t.doubts = machine.KeepNewest(t.doubts, sliceDoubt{c.chunk, id, v}, judge.DoubtsMost)
		}
	}
	t.commit(trial, n)
	return nil
}

// word says what is wrong with an ack.
func (t *sliceTaker) word(peer *sliceSide, d *machine.Datagram, c sliceClaim) *machine.Divergence {
	want := t.nearest(c)
	if b := peer.blocks.of(peer.blocks.unwrap(c.chunk)); b != nil && b.count != c.count {
		want := c
		want.count = b.count
		v := t.differs(d, "slice-count", want, c, fmt.Sprintf("the slices of block %d say that it has %d", c.chunk, b.count),
			b.ref)
		v.Field, v.Expected, v.Got = "gaffer.slice.count", fmt.Sprint(b.count), fmt.Sprint(c.count)
		return v
	}
	if c.chunk != uint16(t.base.chunk) {
		if c.chunk == uint16(t.base.chunk-1) && c.came == allSlices(c.count) {
			return t.differs(d, "ack-unasked", want, c,
				fmt.Sprintf("no slice of block %d has come since the last ack of it", c.chunk), t.last)
		}
		if c.chunk == uint16(t.base.chunk-1) {
			want.chunk, want.count, want.came = c.chunk, c.count, allSlices(c.count)
			return t.differs(d, "ack-withdrawn", want, c, fmt.Sprintf("all slices of block %d had been received", c.chunk),
				t.last)
		}
		if c.chunk != uint16(t.base.chunk+1) {
			return t.differs(d, "ack-block", want, c,
				fmt.Sprintf("block %d is neither the one that is coming in nor the one before it", c.chunk), t.last)
		}
		// What was missing of the block before?
		if x := t.doubted(uint16(t.base.chunk)); x != nil {
			return x.divergence
		}
		for i := range t.queue.list {
			if p := &t.queue.list[i]; p.chunk == c.chunk && c.came.has(int(p.id)) {
				return t.differs(d, "ack-block", want, c,
					fmt.Sprintf("block %d is acked, and not all slices of the one before it passed the tap towards this side",
						c.chunk), t.last)
			}
		}
	} else if q := t.base.have.missing(&c.came); q >= 0 {
		want := c
		want.came = want.came.with(&t.base.have)
		return t.differs(d, "ack-withdrawn", want, c,
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
		return t.differs(d, "ack-unasked", want, c, "no slice has come since the last ack", t.last)
	}
	for i := range t.doubts {
		if x := &t.doubts[i]; x.chunk == c.chunk && x.id == q {
			return x.divergence
		}
	}
	want = c
	want.came = c.came
	want.came[q/64] &^= 1 << (q % 64)
	return t.differs(d, "ack-never-arrived", want, c,
		fmt.Sprintf("the ack names slice %d of block %d, and it did not pass the tap towards this side", q, c.chunk), t.last)
}

// doubted returns a doubt about a block, nil for none.
func (t *sliceTaker) doubted(chunk uint16) *sliceDoubt {
	for i := range t.doubts {
		if x := &t.doubts[i]; x.chunk == chunk && !t.base.have.has(x.id) {
			return x
		}
	}
	return nil
}

// nearest returns the reference's ack after all that has come.
func (t *sliceTaker) nearest(c sliceClaim) sliceClaim {
	trial := t.base
	trial.current = true
	want, _ := trial.claim()
	for i := range t.queue.list {
		p := &t.queue.list[i]
		trial.arrive(p.chunk, int(p.id), int(p.count))
		if claim, due := trial.claim(); due && claim.chunk == c.chunk {
			want = claim
		}
	}
	return want
}

func (t *sliceTaker) differs(d *machine.Datagram, rule string, want, got sliceClaim, because string,
	frames ...machine.Ref) *machine.Divergence {
	return ackDiffers(d, rule, want, got, because, frames...)
}

// ackDiffers formats an ack that is not the reference's.
func ackDiffers(d *machine.Datagram, rule string, want, got sliceClaim, because string,
	frames ...machine.Ref) *machine.Divergence {
	v := diverges(d, rule, machine.Differ("gaffer.slice.acked", want.came.draw(want.count), got.came.draw(got.count)),
		because, frames...)
	if want.chunk != got.chunk {
		v.Field, v.Expected, v.Got = "gaffer.slice.chunk", fmt.Sprint(want.chunk), fmt.Sprint(got.chunk)
	}
	v.Reference = fmt.Sprintf("block %d: %s", want.chunk, want.came.draw(want.count))
	v.Captured = fmt.Sprintf("block %d: %s", got.chunk, got.came.draw(got.count))
	return v
}

// ackChains is what a far side's acks said of the newest blocks.
type ackChains struct{ ring [4]ackChain }

// ackChain is the acks of one block: as they were sent, each has all that the one
// before it has.
type ackChain struct {
	chunk int64
	live  bool
	said  []saidAck
}

type saidAck struct {
	came sliceSet
	ref  machine.Ref
}

// judge holds an ack of a far side against what passed, and against its others.
func (t *ackChains) judge(peer *sliceSide, d *machine.Datagram, c sliceClaim) *machine.Divergence {
	b := &peer.blocks
	u := b.unwrap(c.chunk)
	e := b.of(u)
	switch {
	case !b.met || u <= b.newest-int64(len(b.ring)) || e == nil && u <= b.first+joinedBlocks:
		return nil // from before the capture, or longer ago than is kept
	case e == nil:
		return ackDiffers(d, "ack-never-arrived", sliceClaim{chunk: uint16(b.newest), count: c.count, came: c.came}, c,
			fmt.Sprintf("no slice of block %d passed the tap", c.chunk), b.ref)
	case e.count != c.count:
		return diverges(d, "slice-count", machine.Differ("gaffer.slice.count", e.count, c.count),
			fmt.Sprintf("the slices of block %d say that it has %d", c.chunk, e.count), e.ref)
	}
	if q := c.came.missing(&e.passed); q >= 0 && u > b.first+joinedBlocks {
		want := c
		want.came[q/64] &^= 1 << (q % 64)
		return ackDiffers(d, "ack-never-arrived", want, c,
			fmt.Sprintf("the ack names slice %d of block %d, which did not pass the tap", q, c.chunk), b.ref)
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
			return ackDiffers(d, "ack-withdrawn", want, c,
				fmt.Sprintf("an ack names slice %d and not %d, another %d and not %d: of two acks of a block one has all that "+
					"the other has", p, q, q, p), was.ref)
		}
	}
	x.said = append(x.said, saidAck{c.came, d.Ref}) // at most one for each slice: each has more than another
	return nil
}
