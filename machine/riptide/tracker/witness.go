package tracker

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
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

// put enters an arrival, and reports whether the oldest had to make room.
func (q *queue) put(a arrival) (full bool) {
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	if len(q.items) >= riptide.QueueMost {
		full = q.head < len(q.items)/2
		n := copy(q.items, q.items[max(q.head, len(q.items)/2):])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, a)
	return full
}

func (q *queue) open() []arrival { return q.items[q.head:] }

func (q *queue) drop(n int) { q.head += n }

// answering is the id that an Ack answers. Where the Ack does not name it
// (wire.Message.Unnamed) and nothing else tells it, it is not known, and id is
// the newest that the Ack names.
type answering struct {
	id    uint16
	known bool
}

// answerOf gives what an Ack says by itself.
func answerOf(m *wire.Message) answering { return answering{m.Cause, !m.Unnamed} }

// witness takes an Ack of a side that reads what passes the tap in order: it
// answers the oldest arrival with that id, and shows the state after it.
func (t *follower) witness(s, peer *side, p *sighting, m *wire.Message, out *machine.Effects) answering {
	open := s.queue.open()
	answers := answerOf(m)
	k := 0
	if answers.known || !s.received {
		for k < len(open) && open[k].sequence != answers.id {
			k++
		}
	} else if k = s.receiver.Answers(m, len(open), func(i int) uint16 { return open[i].sequence }); k < len(open) {
		answers = answering{open[k].sequence, true}
	}
	if !s.received {
		// Joined in the middle: the Ack is where its state begins.
		s.received = true
		s.receiver.Adopt(m.Last, m.AckBits)
		s.unsure = peer.unwrap(m.Last)
		if k < len(open) {
			t.hand(s, peer, &open[k], p, out)
			s.queue.drop(k + 1)
		}
		return answers
	}
	if k == len(open) {
		t.unseen(s, peer, p, m)
		return answers
	}
	if k > 0 {
		// The Acks of those before it are not in the capture; or they were not
		// read, and then the Ack does not show them.
		all := s.receiver.Clone()
		for i := range open[:k] {
			all.Take(open[i].sequence)
		}
		all.Take(answers.id)
		if last, bits := all.Ack(); last == m.Last && bits == m.AckBits {
			for i := range open[:k] {
				t.read(s, peer, &open[i], s.receiver.Take(open[i].sequence), p, out)
			}
		}
	}
	a := open[k]
	s.queue.drop(k + 1)
	s.proves(a.at, a.ref)
	t.doubt(s, peer, open[:k], &a, m)
	gap, jump := riptide.GapOf(a.sequence, s.receiver.Last), s.behaviour.Jump()
	jumps := gap >= jump && (s.behaviour.ShiftFault || s.behaviour.Receive == riptide.ReceiveWindow)
	var before riptide.Receiver
	if jumps {
		before = s.receiver.Clone()
		out.Report(riptide.WindowJump, s.side, s.grade(), p.at, a.ref, 0, float64(gap), float64(a.sequence))
	}
	fresh := s.receiver.Take(a.sequence)
	follows := s.follows(m)
	if jumps && !follows && s.behaviour.ShiftFault {
		// A library without the fault?
		before.List.Fault = false
		mended := before.Take(a.sequence)
		if last, bits := before.Ack(); last == m.Last && bits == m.AckBits {
			s.behaviour = riptide.LookupBehaviour("riptide@main")
			s.receiver, fresh, follows, jumps = before, mended, true, false
			s.receiver.Behaviour = s.behaviour
			s.once(out, riptide.WindowRepaired, s.grade(), p, float64(gap))
		}
	}
	if s.behaviour.ShiftFault && gap >= peer.behaviour.Misread() {
		s.jumped(peer.unwrap(a.sequence), gap, p.at)
	}
	if jumps && s.behaviour.ShiftFault {
		if s.unsure > 0 {
			// The fault leaves bits behind that nobody has seen being set.
			s.unsure = max(s.unsure, peer.unwrap(a.sequence))
		}
		if follows {
			s.lie(peer, a.sequence, gap, p, out)
		}
	}
	t.agree(s, peer, m)
	t.read(s, peer, &a, fresh, p, out)
	return answers
}

// read notes that s has read an arrival, and what its window made of it.
func (t *follower) read(s, peer *side, a *arrival, fresh bool, p *sighting, out *machine.Effects) {
	if fresh {
		t.hand(s, peer, a, p, out)
		return
	}
	s.duplicates++
	t.refuse(s, peer, a, p, out)
}

// follows reports whether the receiver's state is what an Ack shows.
func (s *side) follows(m *wire.Message) bool {
	return s.receiver.Holds(m)
}

// agree makes the receiver's state that of the Ack, where it is not: the capture
// missed arrivals, and what it took of the ids so far is not certain any more.
func (t *follower) agree(s, peer *side, m *wire.Message) {
	if s.follows(m) {
		return
	}
	s.receiver.Merge(m.Last, m.AckBits)
	s.unsure = max(s.unsure, peer.unwrap(m.Last))
}

// waitingMost bounds the unanswered arrivals that are looked through.
const waitingMost = 256

// mayTakeAgain reports whether the window of s would hand a message over once more:
// a copy of it has passed the tap that no Ack has answered, as at the end, where
// the Ack may wait for the stream's window or not have been sent any more.
func (s *side) mayTakeAgain(e *life) bool {
	open := s.queue.open()
	if len(open) == 0 || e.lastAt < open[0].at {
		return false
	}
	if len(open) > waitingMost {
		return true
	}
	r := s.receiver.Clone()
	for i := range open {
		if fresh := r.Take(open[i].sequence); fresh && open[i].life == e.number {
			return true
		}
	}
	return false
}

// unseenMost bounds the ids that are remembered of arrivals that the capture missed.
const unseenMost = 64

// unseen takes an Ack that answers a copy which the capture does not have.
func (t *follower) unseen(s, peer *side, p *sighting, m *wire.Message) {
	id := peer.unwrap(m.Cause)
	peer.came(id)
	if !m.Unnamed && !s.stream && id > s.unsure && peer.met {
		s.doubts.lacks++
	}
	fresh := s.receiver.Take(m.Cause)
	t.agree(s, peer, m)
	if !fresh {
		return
	}
	if e := peer.sent.find(id); e != nil {
		if e.Delivered == machine.Unanswered {
			e.Delivered, e.DeliveredAt, e.DeliveredBy, e.Certainty, e.Deliveries = machine.Yes, p.at, p.ref, machine.Likely, 1
		}
		return
	}
	s.missed = machine.KeepNewest(s.missed, missed{id, p.at, p.ref}, unseenMost)
}

// missed is an arrival that the capture does not have, as its Ack tells of it.
type missed struct {
	id  int64
	at  machine.Instant
	ref machine.Ref
}

// before takes what was known of a message whose first copy the capture missed.
func (s *side) before(e *life) {
	for i := range s.missed {
		if x := &s.missed[i]; x.id == e.Sequence64 {
			e.Delivered, e.DeliveredAt, e.DeliveredBy, e.Certainty, e.Deliveries = machine.Yes, x.at, x.ref, machine.Likely, 1
			return
		}
	}
}

// hand notes that a message was handed to the application of s.
func (t *follower) hand(s, peer *side, a *arrival, p *sighting, out *machine.Effects) {
	if a.life < peer.sent.first {
		s.taken++
		return
	}
	e := peer.sent.at(a.life)
	e.answeredAt = p.at
	t.taken(s, e, p, out)
	e.Deliveries++
	sure := s.sure(e.Sequence64)
	if e.Deliveries > 1 {
		out.Report(riptide.DeliveredTwice, s.side, sure, p.at, a.ref, e.frame, float64(e.Deliveries), s.behaviour.Number())
		return
	}
	e.Delivered, e.DeliveredAt, e.DeliveredBy, e.Certainty = machine.Yes, a.at, a.ref, sure
	if e.Mode == machine.ModeInternal {
		t.arrived(s.side, e, sure, p, out)
	}
}

// sure grades what the window of s made of an id: it may have come before the
// capture began, or in a copy that the capture missed; and Pytide away from the
// tap is known to ack what it loses.
func (s *side) sure(id int64) machine.Certainty {
	if !s.knows(id) {
		return machine.Likely
	}
	return s.grade()
}

func (s *side) knows(id int64) bool { return id > s.unsure && (s.near || !s.behaviour.Port) }

// refuse notes that a message was refused as already received.
func (t *follower) refuse(s, peer *side, a *arrival, p *sighting, out *machine.Effects) {
	if a.life < peer.sent.first {
		return
	}
	e := peer.sent.at(a.life)
	e.answeredAt = p.at
	t.event(out, machine.EventDuplicate, s.side, s.sure(e.Sequence64), e, a.ref, 0, p)
	if e.Delivered == machine.Unanswered && s.knows(e.Sequence64) && (!s.behaviour.ShiftFault || s.leapt(e.Sequence64)) {
		// Otherwise it was handed over unseen.
		e.Delivered, e.Certainty = machine.No, s.grade()
		if e.refused = s.behaviour.ShiftFault && !e.clash; e.refused {
			m := t.moreOf(e)
			m.refusedAt, m.refusedRef = p.at, a.ref
		}
	}
}
