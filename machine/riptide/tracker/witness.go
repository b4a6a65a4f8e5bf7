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
//
//   - 0 ≤ head ≤ len(items) ≤ riptide.QueueMost
type queue struct {
	items []arrival
	head  int // index in items; those before it are finished
}

// put appends an arrival. full reports whether the oldest had to make room.
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

// answering is the id that an Ack answers. known is false where the Ack does not name it
// (wire.Message.Unnamed) and nothing else shows it. Then id is the newest that the Ack names.
type answering struct {
	id    uint16
	known bool
}

// answerOf returns the id that an Ack itself names.
func answerOf(m *wire.Message) answering { return answering{m.Cause, !m.Unnamed} }

// witness processes an Ack of a side that reads in the order of the tap. The Ack answers the oldest
// arrival with its id, and shows the state after it.
func (t *follower) witness(p *step) answering {
	s := p.own
	open := s.in.queue.open()
	k, answers := s.in.answered(p.m)
	switch {
	case !s.in.known:
		t.joins(p, k)
		return answers
	case k == len(open):
		t.unseen(p)
		return answers
	}
	if k > 0 {
		t.readBefore(p, open[:k], answers.id)
	}
	a := open[k]
	s.in.queue.drop(k + 1)
	s.read.proves(a.at, a.ref)
	t.doubt(p, open[:k], &a)
	t.showRead(s, proof{a.at, a.ref}, p.at)
	fresh := t.window(p, &a)
	s.in.agree(p.m, p.peer.out.unwrap(p.m.Last))
	t.read(p, &a, fresh)
	return answers
}

// answered returns which of the open arrivals an Ack answers, and its id. k is len(open) for none.
func (i *inbound) answered(m *wire.Message) (k int, answers answering) {
	open := i.queue.open()
	answers = answerOf(m)
	if answers.known || !i.known {
		for k < len(open) && open[k].sequence != answers.id {
			k++
		}
		return k, answers
	}
	if k = i.receiver.Answers(m, len(open), func(n int) uint16 { return open[n].sequence }); k < len(open) {
		answers = answering{open[k].sequence, true}
	}
	return k, answers
}

// joins records the first Ack of a side in a capture that begins in the middle. The Ack is the
// side's first known state. k is the index of the open arrival that it answers.
func (t *follower) joins(p *step, k int) {
	s, open := p.own, p.own.in.queue.open()
	s.in.known = true
	s.in.receiver.Adopt(p.m.Last, p.m.AckBits)
	s.in.unsure = p.peer.out.unwrap(p.m.Last)
	if k < len(open) {
		t.deliver(p, s, &open[k])
		s.in.queue.drop(k + 1)
	}
}

// readBefore checks the arrivals before the one that an Ack answers. If the Ack shows them, their
// own Acks are missing from the capture. Otherwise they were not read.
func (t *follower) readBefore(p *step, before []arrival, answers uint16) {
	s := p.own
	all := s.in.receiver.Clone()
	for i := range before {
		all.Take(before[i].sequence)
	}
	all.Take(answers)
	if !all.Holds(p.m) {
		return
	}
	for i := range before {
		t.read(p, &before[i], s.takes(before[i].sequence))
	}
}

// window runs the library's window of a side over an arrival that its Ack answers. It reports
// whether the library delivers the message. It also checks for jumps that corrupt the window.
func (t *follower) window(p *step, a *arrival) bool {
	s, peer := p.own, p.peer
	gap := riptide.GapOf(a.sequence, s.in.receiver.Last)
	jumps := gap >= s.behaviour.Jump() && (s.behaviour.ShiftFault || s.behaviour.Receive == riptide.ReceiveWindow)
	s.divides(gap)
	if jumps {
		p.out.At(p.at, a.ref).Report(riptide.WindowJump, s.side, s.tap.grade(), 0, float64(gap), float64(a.sequence))
	}
	fresh := s.in.receiver.Take(a.sequence)
	fresh, follows := t.compare(p, a, fresh, s.in.receiver.Holds(p.m))
	if s.behaviour.ShiftFault && gap >= peer.behaviour.Misread() {
		s.in.addJump(peer.out.unwrap(a.sequence), gap, p.at)
	}
	if jumps && s.behaviour.ShiftFault {
		if s.in.unsure > 0 {
			// The fault leaves bits behind whose origin the capture does not show.
			s.in.unsure = max(s.in.unsure, peer.out.unwrap(a.sequence))
		}
		if follows {
			t.falseAcks(p, a.sequence, gap)
		}
	}
	return fresh
}

// read records that a side has read an arrival, and what its window did with it.
func (t *follower) read(p *step, a *arrival, fresh bool) {
	if fresh {
		t.deliver(p, p.own, a)
		return
	}
	p.own.figures.duplicates++
	t.refuse(p, a)
}

// agree sets the receiver's state to that of an Ack, if they differ. They differ when the capture
// missed arrivals. Then it is no longer certain what the side took of the ids up to newest.
func (i *inbound) agree(m *wire.Message, newest int64) {
	if i.receiver.Holds(m) {
		return
	}
	i.receiver.Merge(m.Last, m.AckBits)
	i.unsure = max(i.unsure, newest)
}

// waitingMost is how many unanswered arrivals mayTakeAgain checks.
// Source: bound, the arrivals that are checked
const waitingMost = 256

// mayTakeAgain reports whether the window would deliver a message once more. It would if another
// copy passed the tap and no Ack has answered it. At the end of a capture that Ack may wait for the
// stream's window, or may never have been sent.
func (i *inbound) mayTakeAgain(e *life, rival *riptide.Receiver) bool {
	open := i.queue.open()
	if len(open) == 0 || e.copies.last < open[0].at {
		return false
	}
	if len(open) > waitingMost {
		return true
	}
	takes := func(r riptide.Receiver) bool {
		for k := range open {
			if fresh := r.Take(open[k].sequence); fresh && open[k].life == e.number {
				return true
			}
		}
		return false
	}
	return takes(i.receiver.Clone()) || rival != nil && takes(rival.Clone())
}

// overruns reports whether the window of the side has dropped an id that never came, or does so with what waits for an
// Ack. A client that ends its connection for it answers no more.
func (i *inbound) overruns() bool {
	if i.receiver.Overran || i.receiver.Behaviour.WindowMost == 0 {
		return i.receiver.Overran
	}
	r, open := i.receiver.Clone(), i.queue.open()
	for k := range min(len(open), waitingMost) {
		r.Take(open[k].sequence)
	}
	return r.Overran
}

// unseen processes an Ack of a copy that the capture does not have.
func (t *follower) unseen(p *step) {
	s, peer, m := p.own, p.peer, p.m
	id := peer.out.unwrap(m.Cause)
	peer.out.came(id)
	if !m.Unnamed && !s.tap.stream && id > s.in.unsure && peer.out.met {
		s.tap.lacks++
	}
	fresh := s.takes(m.Cause)
	s.in.agree(m, peer.out.unwrap(m.Last))
	s.rivals.agree(m)
	if !fresh {
		return
	}
	if e := peer.out.lives.find(id); e == nil {
		s.in.miss(missed{id, p.at, p.ref})
	} else if e.receiver.delivered == machine.Unanswered {
		e.receiver.took(p.at, p.ref)
		e.certainty = machine.Likely
		e.bounds.shown(p.at)
	}
}

// missed is an arrival that only its Ack shows.
type missed struct {
	id  int64
	at  machine.Instant
	ref machine.Ref
}

// unseenMost is how many arrivals that the capture missed are remembered.
// Source: bound, the missed arrivals that are remembered
const unseenMost = 64

// miss remembers an arrival that the capture does not have.
func (i *inbound) miss(x missed) {
	i.missed = machine.KeepNewest(i.missed, x, unseenMost)
}

// before applies what is known of a message whose first copy the capture missed.
func (i *inbound) before(e *life) {
	for k := range i.missed {
		if x := &i.missed[k]; x.id == e.sequence64 {
			e.receiver.took(x.at, x.ref)
			e.certainty = machine.Likely
			return
		}
	}
}

// deliver records that the library of s delivered a message to its application.
func (t *follower) deliver(p *step, s *side, a *arrival) {
	peer := &t.sides[s.side.Other()]
	if a.life < peer.out.lives.first {
		s.figures.taken++
		return
	}
	e := peer.out.lives.at(a.life)
	e.answers.last = p.at
	t.taken(p, s, e)
	sure := s.sure(e.sequence64)
	if e.receiver.times > 0 {
		e.receiver.times++
		p.out.At(p.at, a.ref).Report(riptide.DeliveredTwice, s.side, sure, e.copies.frame, float64(e.receiver.times),
			s.behaviour.Number())
		return
	}
	e.receiver.took(a.at, a.ref)
	e.certainty = sure
	if p.own == s { // an Ack of it shows the arrival
		e.bounds.shown(p.at)
	}
	if e.mode == machine.ModeInternal {
		t.arrived(p, s.side, e, sure)
	}
}

// sure grades what the window of s did with an id. It is likely where an earlier copy may be
// missing: from before the capture, or lost by it. It is also likely where the versions that the side can
// be disagree. Away from the tap, it is likely for what may be Pytide, which can ack what it loses.
func (s *side) sure(id int64) machine.Certainty {
	if !s.knows(id) || s.rivals.disputed {
		return machine.Likely
	}
	return s.tap.grade()
}

func (s *side) knows(id int64) bool {
	return id > s.in.unsure && (s.tap.near || !s.behaviour.Port && !s.maybePort)
}

// refuse records that a message was refused as already received.
func (t *follower) refuse(p *step, a *arrival) {
	s, peer := p.own, p.peer
	if a.life < peer.out.lives.first {
		return
	}
	e := peer.out.lives.at(a.life)
	e.answers.last = p.at
	t.messageEvent(p, e, fact{kind: machine.EventDuplicate, of: s.side, sure: s.sure(e.sequence64), about: a.ref})
	if e.receiver.delivered == machine.Unanswered && s.knows(e.sequence64) &&
		(!s.behaviour.ShiftFault || s.in.jumpCovers(e.sequence64)) {
		// Otherwise it was delivered unseen.
		e.receiver.delivered, e.certainty = machine.No, s.sure(e.sequence64)
		if e.receiver.refused = s.behaviour.ShiftFault && !e.clash; e.receiver.refused {
			m := t.detailsOf(e)
			m.refusedAt, m.refusedRef = p.at, a.ref
		}
	}
}
