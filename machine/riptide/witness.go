package riptide

import (
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// arrival is a reliable message that passed the tap towards a side.
type arrival struct {
	life     int64 // its number
	at       machine.Instant
	ref      machine.Ref
	sequence uint16
}

// queue holds arrivals by age; its memory is bounded.
type queue struct {
	items []arrival
	head  int // of items: those before it are done with
}

const queueMost = 4096

func (q *queue) put(a arrival) {
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	if len(q.items) >= queueMost {
		// What was not answered for so long was not read.
		n := copy(q.items, q.items[max(q.head, len(q.items)/2):])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, a)
}

func (q *queue) open() []arrival { return q.items[q.head:] }

func (q *queue) drop(n int) { q.head += n }

// witness takes an Ack of a side that reads what passes the tap in order: it
// answers the oldest arrival with that id, and shows the state after it.
func (t *Tracker) witness(s, peer *side, p *sighting, m *wire.Message, out *machine.Effects) {
	open := s.queue.open()
	k := 0
	for k < len(open) && open[k].sequence != m.Cause {
		k++
	}
	if !s.received {
		// Joined in the middle: the Ack is where its state begins.
		s.received = true
		s.receiver.Adopt(m.Last, m.AckBits)
		s.joined = peer.unwrap(m.Last)
		if k < len(open) {
			t.hand(s, peer, &open[k], p, out)
			s.queue.drop(k + 1)
		}
		return
	}
	if k == len(open) {
		// Its message is not in the capture.
		s.receiver.Take(m.Cause)
		t.agree(s, m)
		return
	}
	if k > 0 {
		// The Acks of those before it are not in the capture; or they were not
		// read, and then the Ack does not show them.
		all := s.receiver.Clone()
		for i := range open[:k] {
			all.Take(open[i].sequence)
		}
		all.Take(m.Cause)
		if last, bits := all.Ack(); last == m.Last && bits == m.AckBits {
			for i := range open[:k] {
				if s.receiver.Take(open[i].sequence) {
					t.hand(s, peer, &open[i], p, out)
				}
			}
		}
	}
	a := open[k]
	s.queue.drop(k + 1)
	s.proof = max(s.proof, a.at)
	before := s.receiver
	if s.behaviour.ShiftFault && gapOf(a.sequence, s.receiver.last) >= wordBits {
		before = s.receiver.Clone()
	}
	jump := jumpList
	if s.behaviour.Receive == ReceiveWindow {
		jump = jumpWindow
	}
	gap := gapOf(a.sequence, s.receiver.last)
	fresh := s.receiver.Take(a.sequence)
	if gap >= jump && (s.behaviour.ShiftFault || jump == jumpWindow) {
		report(out, windowJump, s.side, machine.Certain, p.at, a.ref, 0, float64(gap), float64(a.sequence))
	}
	if last, bits := s.receiver.Ack(); (last != m.Last || bits != m.AckBits) && s.behaviour.ShiftFault && gapOf(a.sequence, before.last) >= wordBits {
		// A library without the fault?
		before.list.fault = false
		mended := before.Take(a.sequence)
		if last, bits := before.Ack(); last == m.Last && bits == m.AckBits {
			s.receiver, fresh = before, mended
			s.behaviour = LookupBehaviour("riptide@main")
			s.receiver.behaviour = s.behaviour
		}
	}
	if gap >= jumpList && s.behaviour.ShiftFault {
		s.lie(a.sequence, gap, p)
	}
	t.agree(s, m)
	s.truth(a.sequence)
	if fresh {
		t.hand(s, peer, &a, p, out)
	} else {
		s.duplicates++
		t.refuse(s, peer, &a, p, out)
	}
}

// agree makes the receiver's state that of the Ack, where it is not.
func (t *Tracker) agree(s *side, m *wire.Message) {
	if last, bits := s.receiver.Ack(); last != m.Last || bits != m.AckBits {
		s.receiver.Adopt(m.Last, m.AckBits)
	}
}

// hand notes that a message was handed to the application of s.
func (t *Tracker) hand(s, peer *side, a *arrival, p *sighting, out *machine.Effects) {
	if a.life < peer.sent.first {
		s.taken++
		return
	}
	e := peer.sent.at(a.life)
	t.taken(s, e, p, out)
	e.Deliveries++
	if e.Deliveries > 1 {
		report(out, deliveredTwice, s.side, machine.Certain, p.at, a.ref, e.Frames[0], float64(e.Deliveries))
		return
	}
	e.Delivered, e.DeliveredAt, e.DeliveredBy = machine.Yes, a.at, a.ref
	e.Certainty = machine.Certain
	if !t.begun && e.Sequence64 <= s.joined {
		e.Certainty = machine.Likely // may be sent again and have been handed over before the capture
	}
}

// refuse notes that a message was refused as already received.
func (t *Tracker) refuse(s, peer *side, a *arrival, p *sighting, out *machine.Effects) {
	if a.life < peer.sent.first {
		return
	}
	e := peer.sent.at(a.life)
	t.event(out, machine.Event{Kind: machine.EventDuplicate, Side: s.side, Certainty: machine.Certain, Sequence: e.Sequence, Sequence64: e.Sequence64, About: a.ref}, p)
	if e.Delivered == machine.Unanswered {
		if _, known := s.receiver.Received(a.sequence); known && s.behaviour.ShiftFault && !e.clash && e.Sequence64 > s.joined {
			report(out, ackedNotDelivered, s.side, machine.Certain, p.at, a.ref, e.Frames[0], 1, float64(uint16(s.doubt)))
		}
		e.Delivered, e.Certainty = machine.No, machine.Certain
	}
}

// lie is an id that Acks of a side named although it had not come.
type lie struct {
	id  uint16
	at  machine.Instant
	ref machine.Ref // of the Ack
}

const liesMost = 1 << 10

// lie notes the ids between the newest before a jump and the one after it that
// the Ack names: none of them can have come.
func (s *side) lie(newest uint16, gap int, p *sighting) {
	for bit := 1; bit <= windowAcks && bit < gap; bit++ {
		if has, _ := s.receiver.Received(newest - uint16(bit)); has && len(s.lies) < liesMost {
			s.lies = append(s.lies, lie{newest - uint16(bit), p.at, p.ref})
		}
	}
}

// truth takes an id that has come out of the lies.
func (s *side) truth(id uint16) {
	for i := range s.lies {
		if s.lies[i].id == id {
			s.lies[i] = s.lies[len(s.lies)-1]
			s.lies = s.lies[:len(s.lies)-1]
			return
		}
	}
}
