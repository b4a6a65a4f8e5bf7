package judge

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// passedIDs records which ids of a sequence passed the tap towards a side, of the newest
// passedSpan.
type passedIDs struct {
	met   bool
	floor uint16 // the oldest id of which it is known whether it passed
	top   uint16
	bits  [passedSpan / 64]uint64
}

// passedSpan is how many of the newest ids a passedIDs covers.
// Source: bound, the ids of which it is known whether they passed
const passedSpan = 256

// pass records an id. If the beginning of the sequence is in the capture, first is its first
// id. Otherwise nothing is known of ids older than the first that passes.
func (p *passedIDs) pass(id, first uint16, begun bool) {
	if !p.met {
		p.met, p.floor, p.top = true, id, id
		if begun {
			p.floor = first
		}
	}
	gap := riptide.GapOf(id, p.top)
	switch {
	case gap >= passedSpan:
		p.bits = [passedSpan / 64]uint64{}
	case gap > 0:
		for q := p.top + 1; q != id; q++ {
			p.bits[q%passedSpan/64] &^= 1 << (q % 64)
		}
	case gap <= -passedSpan:
		return
	}
	if gap > 0 {
		p.top = id
		if riptide.GapOf(id, p.floor) >= passedSpan {
			p.floor = id - (passedSpan - 1)
		}
	}
	p.bits[id%passedSpan/64] |= 1 << (id % 64)
}

// missing reports whether an id is known not to have passed.
func (p *passedIDs) missing(id uint16) bool {
	if !p.met || riptide.GapOf(id, p.floor) < 0 {
		return false
	}
	return riptide.GapOf(id, p.top) > 0 || p.bits[id%passedSpan/64]>>(id%64)&1 == 0
}

// farAcks are the Acks of a side away from the tap. Each is a snapshot of a set that only
// grows. The order in which they were sent does not show, but of two Acks one has all that
// the other has.
type farAcks struct{ ring []farAck } // by their newest id

type farAck struct {
	ref  machine.Ref
	last uint16
	live bool
	bits []uint16 // of the Acks with this newest id: each once, those with fewer bits first
}

// farAckRing is more than the ids of which two Acks can both speak.
const farAckRing = 2*riptide.WindowAcks + 2

// snapshot compares an Ack of a far side with those before it, and with what passed the tap
// towards the side.
func (s *judged) snapshot(p *observed) *machine.Divergence {
	if b := s.behaviour; b.Receive != riptide.ReceiveList && b.Receive != riptide.ReceiveNotes || b.ShiftFault || b.Port ||
		b.OneSequence {
		return nil // what its receiver holds can shrink
	}
	f, m := &s.acks.far, p.m
	names := func(id uint16) *machine.Divergence {
		return s.diverge(p, difference{
			AckUnsent, machine.RestsOnBoth, "riptide.ack_bits", fmt.Sprintf("no message %d", id), id,
			fmt.Sprintf("the Ack names message %d, which was not captured on its way to this side", id),
		}, s.acks.last)
	}
	for _, id := range [2]uint16{m.Last, m.Cause} {
		if s.acks.passed.missing(id) {
			return names(id)
		}
	}
	for left := m.AckBits; left != 0; left &= left - 1 {
		if id := m.Last - 1 - uint16(bits.TrailingZeros16(left)); s.acks.passed.missing(id) {
			return names(id)
		}
	}
	if f.ring == nil {
		f.ring = make([]farAck, farAckRing)
	}
	differs := func(e *farAck, want uint16) *machine.Divergence {
		return s.diverge(p, difference{
			AckForgotten, machine.RestsOnOwn, "riptide.ack_bits", machine.Hex(uint64(want), 4),
			machine.Hex(uint64(m.AckBits), 4),
			"each of two Acks names a message that the other leaves out: what was received stays received",
		}, e.ref)
	}
	for i := range f.ring {
		e := &f.ring[i]
		gap := riptide.GapOf(m.Last, e.last)
		switch {
		case !e.live || gap > riptide.WindowAcks || gap < -riptide.WindowAcks:
		case gap > 0:
			if must := carried(e.bits[len(e.bits)-1], gap); must&^m.AckBits != 0 {
				return differs(e, m.AckBits|must)
			}
		case gap < 0:
			if must := carried(m.AckBits, -gap); must&^e.bits[0] != 0 {
				return differs(e, m.AckBits&^(must&^e.bits[0]))
			}
		default:
			for _, b := range e.bits {
				if b&^m.AckBits != 0 && m.AckBits&^b != 0 {
					return differs(e, m.AckBits|b)
				}
			}
		}
	}
	f.enter(m.Last, m.AckBits, p.ref)
	return nil
}

// carried returns the bits that an Ack must have which contains an older Ack. The newest id
// of the older one lies gap behind, and b are its bits.
func carried(b uint16, gap int) uint16 {
	return uint16(uint32(b)<<gap | 1<<(gap-1))
}

func (f *farAcks) enter(last, b uint16, ref machine.Ref) {
	e := &f.ring[int(last)%farAckRing]
	if !e.live || e.last != last {
		*e = farAck{ref: ref, last: last, live: true, bits: append(e.bits[:0], b)}
		return
	}
	at := 0
	for at < len(e.bits) && bits.OnesCount16(e.bits[at]) < bits.OnesCount16(b) {
		at++
	}
	if at < len(e.bits) && e.bits[at] == b {
		return
	}
	e.bits = append(e.bits, 0)
	copy(e.bits[at+1:], e.bits[at:])
	e.bits[at] = b
}

// farNotes are the notify headers of a far side, by their sequence. An id that was passed over
// is never taken later. So two headers agree on every id of which both speak.
type farNotes struct {
	ring []farNote
	top  uint16
	met  bool
}

type farNote struct {
	ref      machine.Ref
	sequence uint16
	last     uint16
	bits     uint8
	live     bool
}

// farNoteRing is how many notify headers of a far side the judge keeps.
// Source: bound, the notify headers of a far side that are kept
const farNoteRing = 32

// notesSnapshot compares a notify header of a far side with its neighbours.
func (s *judged) notesSnapshot(p *observed) *machine.Divergence {
	if s.behaviour.ShiftFault || s.behaviour.Port {
		return nil
	}
	n, m := &s.notes, p.m
	f := &n.far
	for i := -1; i < 8; i++ {
		id := m.Last - uint16(i+1)
		if (i < 0 || m.AckBits>>i&1 == 1) && n.passed.missing(id) {
			return s.diverge(p, difference{
				AckUnsent, machine.RestsOnBoth, "riptide.ack_bits", fmt.Sprintf("no notify message %d", id), id,
				fmt.Sprintf("the header names notify message %d, which was not captured on its way to this side", id),
			}, n.ref)
		}
	}
	if f.ring == nil {
		f.ring = make([]farNote, farNoteRing)
	}
	if !f.met || riptide.GapOf(m.Sequence, f.top) > 0 {
		f.met, f.top = true, m.Sequence
	}
	at := func(sequence uint16) *farNote {
		if e := &f.ring[sequence%farNoteRing]; e.live && e.sequence == sequence {
			return e
		}
		return nil
	}
	own := farNote{p.ref, m.Sequence, m.Last, uint8(m.AckBits), true}
	for k := uint16(1); k < farNoteRing; k++ {
		if e := at(m.Sequence - k); e != nil {
			if !follows(e, &own) {
				return s.diverge(p, difference{
					NotifyAck, machine.RestsOnOwn, "riptide.ack_bits", "what the header before it says",
					machine.Hex(uint64(m.AckBits), 2),
					fmt.Sprintf("notify message %d, which was sent before, contradicts it", e.sequence),
				}, e.ref)
			}
			break
		}
	}
	for k := 1; k <= min(riptide.GapOf(f.top, m.Sequence), farNoteRing-1); k++ {
		if e := at(m.Sequence + uint16(k)); e != nil {
			if !follows(&own, e) {
				return s.diverge(p, difference{
					NotifyAck, machine.RestsOnOwn, "riptide.ack_bits", "what the header after it says",
					machine.Hex(uint64(m.AckBits), 2),
					fmt.Sprintf("notify message %d, which was sent later, contradicts it", e.sequence),
				}, e.ref)
			}
			break
		}
	}
	if riptide.GapOf(f.top, m.Sequence) < farNoteRing {
		f.ring[m.Sequence%farNoteRing] = own
	}
	return nil
}

// follows reports whether header b can come after header a.
func follows(a, b *farNote) bool {
	gap := riptide.GapOf(b.last, a.last)
	if gap < 0 || gap > riptide.NotifySpan-1 {
		return gap >= 0
	}
	const told = 1<<riptide.NotifySpan - 1
	before, after := (uint32(a.bits)<<1|1)<<gap, uint32(b.bits)<<1|1
	return before&told == after&^(1<<gap-1)&told
}

// farBeats are the last heartbeats of a far client. A heartbeat that comes again with the same
// id is a copy.
type farBeats struct {
	beats [8]farBeat
	next  int
}

type farBeat struct {
	ref  machine.Ref
	at   machine.Instant
	rtt  int16
	ping uint8
}

// pingAround is less time than it takes for the ids of heartbeats to repeat.
// Source: law, heartbeats have 256 ids and come once a second
const pingAround = 200 * time.Second

// beatRepeats compares a heartbeat of a far client with those before it.
func (s *judged) beatRepeats(p *observed) *machine.Divergence {
	f, m := &s.session.far, p.m
	if s.behaviour.Port {
		return nil
	}
	for i := range f.beats {
		if e := &f.beats[i]; e.ref != 0 && e.ping == m.Ping && p.at.Sub(e.at) < pingAround && e.rtt != m.RTT {
			return s.diverge(p, difference{
				HeartbeatID, machine.RestsOnOwn, "riptide.ping", "another id", m.Ping,
				fmt.Sprintf("the heartbeat with id %d had another RTT: the id steps by one", m.Ping),
			}, e.ref)
		}
	}
	f.beats[f.next] = farBeat{p.ref, p.at, m.RTT, m.Ping}
	f.next = (f.next + 1) % len(f.beats)
	return nil
}
