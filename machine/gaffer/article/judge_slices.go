package article

import (
	"errors"
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/judge"
	"github.com/ackscope/ackscope/machine/gaffer/tracker"
	base "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// sliceJudge compares a flow of large blocks with the reference. It judges the slices that a
// side sends, in the order of its round, and its acks of the slices that came. For example:
// block 8 must not begin before all slices of block 7 are acked.
//
//	near side   sends the slices of one block until they are acked. Before each
//	            slice, its reference reads as many of the acks that passed as make
//	            that slice the next one. Its acks are those of the reference after
//	            it has read some of the slices that passed, in order.
//	far side    its slices agree with each other. No block begins before all slices
//	            of the one before have passed. Its acks name what had passed, and
//	            of two acks of a block one has all that the other has.
type sliceJudge struct {
	profile *wire.Profile
	sides   [2]sliceSide
	packet  wire.Packet
}

// sliceSide is one side of a flow: what it sends, and what it receives.
type sliceSide struct {
	near     bool
	asSample bool
	opinion  machine.Opinion
	blocks   sentBlocks // those that it sends
	send     sliceSender
	take     sliceTaker // of a near side
	told     ackChains  // of a far side
	last     machine.Instant
	begunAs  *machine.Divergence // the divergence of a block that began too soon, should the block before go on
}

const (
	// clockSlack is how much sooner than due something may pass the tap. An endpoint reads
	// its clock once a frame. What it sends may be late by more than a frame.
	// Source: measured, TestMarginsGaffer
	clockSlack = 20 * time.Millisecond
	// ackEvery is the article's least time between two acks of slices.
	// Source: law, the article "Sending Large Blocks of Data": an ack at most every 0.1 s
	ackEvery = 100 * time.Millisecond
	// joinedBlocks is how many blocks after the first captured one may also have begun
	// before the capture. This happens where slices overtake each other.
	// Source: unmeasured, its tap is supposed, so divergences are likely at most
	joinedBlocks int64 = 2
	// unreadFor is how long packets from before the capture may lie in a socket.
	// Source: unmeasured, its tap is supposed, so divergences are likely at most
	unreadFor = 500 * time.Millisecond
	// restartSilence is the silence after which a sender of blocks may have begun anew.
	restartSilence = tracker.LongestTransit
)

// newSliceJudge returns the judge of a flow whose sides have the named behaviours.
func newSliceJudge(p *wire.Profile, facts machine.Facts, behaviours [2]string) *sliceJudge {
	j := &sliceJudge{profile: p}
	for i := range j.sides {
		s := &j.sides[i]
		s.near, s.asSample = facts.Vantage.Near(machine.Side(i)), behaviours[i] == judge.BehaviourSample
		s.opinion.Inferred.Tick = facts.Tick[i]
	}
	return j
}

// Observe judges the next datagram.
func (j *sliceJudge) Observe(d *machine.Datagram) {
	p := &j.packet
	err := j.profile.Parse(d.Bytes, d.Length, p)
	s, peer := &j.sides[d.From], &j.sides[d.From.Other()]
	cut := errors.Is(err, base.ErrSnapped)
	if err != nil && !(cut && p.Kind == wire.KindSlice && p.SliceCount > 0) {
		s.send.passesOver(s, d, cut)
		if cut { // it may have been a slice, or an ack
			peer.send.loose = true
			for _, x := range []*sliceSide{s, peer} {
				x.take.queue.lost = true
				x.blocks.hide()
			}
		}
		return
	}
	switch p.Kind {
	case wire.KindSlice:
		j.slice(s, peer, d, p, cut || p.PayloadOffset+p.PayloadLen > len(d.Bytes))
	case wire.KindSliceAck:
		j.ack(s, peer, d, p)
	}
}

// slice judges a slice that a side sent.
func (j *sliceJudge) slice(s, peer *sliceSide, d *machine.Datagram, p *wire.Packet, cut bool) {
	if p.Chunk == 0 && p.SliceID == 0 && s.blocks.met && d.At.Sub(s.last) >= restartSilence &&
		s.blocks.newest&0xffff != 0xffff {
		// It may be another program on the same addresses.
		s.blocks, s.send = sentBlocks{}, sliceSender{}
		peer.take, peer.told = sliceTaker{}, ackChains{}
		s.opinion.Undecided++
	}
	s.last = d.At
	u := s.blocks.unwrap(p.Chunk)
	digest := uint64(0)
	if !cut {
		digest = machine.Digest(1, d.Bytes[p.PayloadOffset:p.PayloadOffset+p.PayloadLen]) | 1
	}
	if s.opinion.Divergence == nil {
		s.opinion.Compared++
		if s.blocks.of(u) == nil {
			s.opinion.Inferred.Submitted++
		}
		v := s.blocks.disagree(d, p, u, digest)
		if v == nil {
			v = s.follows(peer, d, p, u)
		}
		if v == nil && s.near {
			v = s.send.judge(s, peer, d, p, u)
		}
		s.opinion.Divergence = v
	}
	s.blocks.pass(u, d, p, digest)
	if peer.near {
		peer.take.queue.push(pendingSlice{ref: d.Ref, chunk: p.Chunk, id: uint16(p.SliceID), count: uint16(p.SliceCount)})
	}
}

// ack judges an ack that a side sent.
func (j *sliceJudge) ack(s, peer *sliceSide, d *machine.Datagram, p *wire.Packet) {
	c := sliceClaim{p.Chunk, p.SliceCount, p.SliceAcked}
	if s.opinion.Divergence == nil {
		s.opinion.Compared++
		var v *machine.Divergence
		switch {
		case c.came == sliceSet{}:
			v = diverges(d, AckEmpty, machine.RestsOnOwn,
				machine.Differ("gaffer.slice.acked", "at least one slice", c.came.draw(c.count)),
				"an ack goes out when a slice has come, and names it")
		case s.near:
			v = s.take.judge(s, peer, d, c)
		default:
			v = s.told.judge(peer, d, c)
		}
		if v != nil && v.RestsOn.Peer() && peer.opinion.Divergence != nil {
			s.opinion.Undecided++ // which slices the peer sent is open
			v = nil
		}
		s.opinion.Divergence = v
	}
	if b := peer.blocks.of(peer.blocks.unwrap(c.chunk)); b != nil && b.count == c.count && c.came == allSlices(c.count) {
		b.acked = true
	}
	if peer.near {
		peer.send.pending.push(pendingClaim{sliceClaim: c, ref: d.Ref})
	}
}

// follows judges the first slice of a block: all slices of the one before are acked by then.
func (s *sliceSide) follows(peer *sliceSide, d *machine.Datagram, p *wire.Packet, u int64) *machine.Divergence {
	b := &s.blocks
	if !b.met || u == b.newest {
		return nil
	}
	if u < b.newest {
		if !s.near {
			return nil // late
		}
		if s.begunAs != nil && u == b.newest-1 {
			return s.begunAs
		}
		return diverges(d, BlockWentBack, machine.RestsOnOwn, machine.Differ("gaffer.slice.chunk", uint16(b.newest), p.Chunk),
			"blocks are sent one after the other, and none again once all of it is acked", b.ref)
	}
	s.begunAs = nil
	early := b.newest <= b.first+joinedBlocks && !s.near || b.newest == b.first && b.at.Sub(b.begun) < unreadFor
	before := b.of(b.newest)
	if before.hidden {
		s.opinion.Undecided++
		return nil
	}
	if u > b.newest+1 && !(early && !s.near) {
		return diverges(d, BlockOrder, machine.RestsOnAbsence,
			machine.Differ("gaffer.slice.chunk", uint16(b.newest+1), p.Chunk),
			"the number of a block is one more than that of the one before it", b.ref)
	}
	if u == b.newest+1 && (before.acked || before.passed == allSlices(before.count) && (!s.near || peer.near)) {
		return nil
	}
	missing := "the capture has no ack of all its slices"
	if !s.near || peer.near {
		missing = fmt.Sprintf("its slice %d has not been captured", allSlices(before.count).missing(&before.passed))
	}
	v := diverges(d, BlockOrder, machine.RestsOnBoth, machine.Differ("gaffer.slice.chunk", uint16(b.newest), p.Chunk),
		fmt.Sprintf("block %d begins, though block %d is not acked: %s", p.Chunk, uint16(b.newest), missing), b.ref)
	if early || peer.opinion.Divergence != nil {
		s.opinion.Undecided++
		s.begunAs = v // for the case that the block before goes on
		return nil
	}
	return v
}

// missing returns the first slice of s that is not in o; -1 for none.
func (s sliceSet) missing(o *sliceSet) int {
	left := s.less(o)
	return left.first()
}

// diverges returns the divergence of a packet that the reference would not have sent.
func diverges(
	d *machine.Datagram, rule *machine.Rule, rests machine.RestsOn, m machine.Mismatch, because string,
	frames ...machine.Ref,
) *machine.Divergence {
	v := machine.Diverge(d, rule, rests, m, because)
	v.Frames, v.Reference, v.Captured = gaffer.Refs(frames...), m.Expected, m.Got
	return v
}

// Finish ends the flow: what is still open counts as undecided.
func (j *sliceJudge) Finish() {
	for i := range j.sides {
		s, peer := &j.sides[i], &j.sides[1-i]
		o := &s.opinion
		if v, w := o.Divergence, peer.opinion.Divergence; !s.near && peer.near && v != nil && w != nil && v.RestsOn.Peer() {
			// Which of its slices the peer sent is open, so what this side had is open.
			o.Divergence = nil
			o.Undecided++
		}
		switch {
		case !s.near:
			o.Undecided = o.Compared // the capture does not show what it received
			o.Why = machine.NotCapturedHere
		case o.Undecided > 0:
			o.Why = "slices or acks from before the capture; or such as arrived and were not taken"
		}
	}
}

// Opinion returns what is found of a side.
func (j *sliceJudge) Opinion(s machine.Side) *machine.Opinion { return &j.sides[s].opinion }

// sentBlocks is what passed the tap of the newest blocks of a side.
type sentBlocks struct {
	met           bool
	newest, first int64 // unwrapped
	begun         machine.Instant
	at            machine.Instant // when the last slice of the newest block passed
	ref           machine.Ref
	ring          [8]sentBlock
}

type sentBlock struct {
	chunk   int64
	count   int
	live    bool
	acked   bool // an ack of all its slices passed the tap
	hidden  bool // while it was the newest, a datagram passed that the snap length cut before its numbers
	passed  sliceSet
	digests []uint64 // of each slice; 0 for unknown
	ref     machine.Ref
}

func (b *sentBlocks) unwrap(chunk uint16) int64 {
	if !b.met {
		return int64(chunk)
	}
	return b.newest + int64(int16(chunk-uint16(b.newest)))
}

// of returns a block; nil where none of it passed or it is too old.
func (b *sentBlocks) of(u int64) *sentBlock {
	if e := &b.ring[u&7]; e.live && e.chunk == u {
		return e
	}
	return nil
}

// hide notes that the snap length cut a datagram: a slice of the newest block, an ack of it, or
// another one.
func (b *sentBlocks) hide() {
	if e := b.of(b.newest); b.met && e != nil {
		e.hidden = true
	}
}

// disagree returns the divergence of a slice that gives its block another count than its other
// slices, or that differs from another copy.
func (b *sentBlocks) disagree(d *machine.Datagram, p *wire.Packet, u int64, digest uint64) *machine.Divergence {
	e := b.of(u)
	switch {
	case e == nil:
	case e.count != p.SliceCount:
		return diverges(d, SliceCount, machine.RestsOnOwn, machine.Differ("gaffer.slice.count", e.count, p.SliceCount),
			fmt.Sprintf("all slices of block %d name the same count", p.Chunk), e.ref)
	case digest != 0 && e.digests[p.SliceID] != 0 && e.digests[p.SliceID] != digest:
		return diverges(d, SliceChanged, machine.RestsOnOwn,
			machine.Differ("gaffer.payload", fmt.Sprintf("the bytes of slice %d as they were sent before", p.SliceID),
				"other bytes"),
			fmt.Sprintf("slice %d of block %d goes out again with another content", p.SliceID, p.Chunk), e.ref)
	}
	return nil
}

// pass records a slice that passed the tap.
func (b *sentBlocks) pass(u int64, d *machine.Datagram, p *wire.Packet, digest uint64) {
	if !b.met {
		b.met, b.newest, b.first, b.begun = true, u, u, d.At
	}
	if u <= b.newest-int64(len(b.ring)) || u < 0 {
		return
	}
	e := b.of(u)
	if e == nil {
		e = &b.ring[u&7]
		if cap(e.digests) < p.SliceCount {
			e.digests = make([]uint64, p.SliceCount)
		}
		*e = sentBlock{chunk: u, count: p.SliceCount, live: true, digests: e.digests[:p.SliceCount]}
		clear(e.digests)
	}
	if b.newest = max(b.newest, u); u == b.newest {
		b.ref, b.at = d.Ref, d.At
	}
	e.ref = d.Ref
	if p.SliceCount != e.count {
		return // another block, or a slice with a wrong count
	}
	e.passed.add(p.SliceID)
	if digest != 0 && e.digests[p.SliceID] == 0 {
		e.digests[p.SliceID] = digest
	}
}
