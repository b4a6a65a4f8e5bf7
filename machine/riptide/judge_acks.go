package riptide

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// judgedArrival is something that passed the tap towards a side and that its own
// messages will show to have been read.
type judgedArrival struct {
	sequence uint16
	place    int64
	at       machine.Instant
	ref      machine.Ref
}

// arrivals holds them in order; its memory is bounded.
type arrivals struct {
	items []judgedArrival
	head  int
	over  bool // some were dropped unread
}

func (q *arrivals) put(a judgedArrival) {
	switch {
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
	case len(q.items) >= queueMost:
		from := q.head
		if from == 0 {
			from, q.over = len(q.items)/2, true
		}
		n := copy(q.items, q.items[from:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, a)
}

func (q *arrivals) open() []judgedArrival { return q.items[q.head:] }

// judgedAcks is how a side answers.
type judgedAcks struct {
	arrivals
	behaviour *Behaviour
	receiver  Receiver
	known     bool // receiver is
	shallow   bool // and only as far back as an Ack shows
	newest    uint16
	met       bool // newest is valid
	last      machine.Ref
	passed    passedIDs // of a far side: the peer's, on their way to it
	far       farAcks
}

func (a *judgedAcks) begin(b *Behaviour) { a.behaviour, a.receiver = b, NewReceiver(b) }

// sent notes that the peer has sent a reliable message.
func (a *judgedAcks) sent(id uint16) {
	if !a.met || gapOf(id, a.newest) > 0 {
		a.newest, a.met = id, true
	}
}

// answers takes an Ack of s.
func (s *judged) answers(j *Judge, peer *judged, p *sight) *machine.Divergence {
	a, m := &s.acks, p.m
	defer func() { a.last = p.ref }()
	if s.behaviour.Receive == ReceiveEverything {
		s.opinion.Undecided++ // it answers Welcome only, with anything
		return nil
	}
	if s.stream && (s.hole || peer.hole) {
		s.opinion.Undecided++
		return nil
	}
	if v := s.flagged(j, p); v != nil {
		return v
	}
	if s.ordered {
		return s.answersInOrder(j, p)
	}
	s.opinion.Undecided++
	if s.behaviour.Port && !s.client(j) {
		return nil // a server of Pytide that relays mixes its messages up
	}
	switch {
	case peer.near && len(peer.sends.merged) > 0:
		// Which ids it sent is open: those under OR-ed ones are among them.
	case peer.near && a.met && gapOf(m.Cause, a.newest) > 0 && gapOf(m.Cause, a.newest) < farAhead:
		return s.diverge(p, "ack-unsent", "riptide.ack_cause", fmt.Sprintf("at most %d", a.newest), m.Cause, fmt.Sprintf("nothing newer than message %d had been sent", a.newest), a.last)
	case peer.near && a.met && gapOf(m.Last, a.newest) > 0 && gapOf(m.Last, a.newest) < farAhead:
		return s.diverge(p, "ack-unsent", "riptide.last", fmt.Sprintf("at most %d", a.newest), m.Last, fmt.Sprintf("nothing newer than message %d had been sent", a.newest), a.last)
	}
	if v := s.consistent(p); v != nil {
		return v
	}
	return s.snapshot(p)
}

// flagged checks that the flag of an Ack says whether the id that it answers is
// another than the newest.
func (s *judged) flagged(j *Judge, p *sight) *machine.Divergence {
	m := p.m
	if j.config.Senders[s.side].Codec.Dialect.Form != wire.BitPacked || !m.HasCause || m.Flag == (m.Cause != m.Last) || s.behaviour.Port {
		return nil
	}
	return s.diverge(p, "ack", "riptide.ack_flag", m.Cause != m.Last, m.Flag, fmt.Sprintf("the Ack answers message %d, its newest is %d: the flag says whether they differ", m.Cause, m.Last), s.acks.last)
}

// farAhead bounds what counts as newer: half the range away nothing is.
const farAhead = 1 << 14

// consistent checks an Ack by itself: what it answers has been received.
func (s *judged) consistent(p *sight) *machine.Divergence {
	m := p.m
	behind := gapOf(m.Last, m.Cause)
	if s.behaviour.Receive != ReceiveList || behind <= 0 || behind > windowAcks || m.AckBits>>(behind-1)&1 == 1 {
		if s.behaviour.Receive == ReceiveList && behind < 0 {
			return s.diverge(p, "ack", "riptide.last", m.Cause, m.Last, "the newest id received is not older than the one that is answered")
		}
		return nil
	}
	want := m.AckBits | 1<<(behind-1)
	return s.diverge(p, "ack", "riptide.ack_bits", fmt.Sprintf("%#04x", want), fmt.Sprintf("%#04x", m.AckBits), fmt.Sprintf("the Ack answers message %d and does not name it", m.Cause))
}

// answersInOrder takes an Ack of a side that has read all that passed the tap,
// in order.
func (s *judged) answersInOrder(j *Judge, p *sight) *machine.Divergence {
	a, m := &s.acks, p.m
	open := a.open()
	k := 0
	for k < len(open) && open[k].sequence != m.Cause {
		k++
	}
	unordered := s.behaviour.Port // Pytide reads the newest first
	if unordered && s.relays && k == len(open) {
		// A server of Pytide that relays mixes its messages up.
		s.opinion.Undecided++
		return nil
	}
	for k > 0 && k < len(open) && !j.life.begun && open[0].at.Sub(j.life.first) < settlingTime {
		// Which copies the first answers are for is not known.
		a.head++
		open, k = a.open(), k-1
	}
	if j.settling(p.at) {
		if k < len(open) {
			s.readTo = max(s.readTo, open[k].place)
			a.head += k + 1
		}
		s.opinion.Undecided++
		a.adopt(m.Last, m.AckBits)
		return nil
	}
	switch {
	case k == len(open) && (!j.life.begun && !a.known || a.over):
		// It came before the capture.
		s.opinion.Undecided++
		a.adopt(m.Last, m.AckBits)
		return nil
	case k == len(open):
		if len(open) == 0 {
			return s.diverge(p, "ack-unasked", "riptide.ack_cause", "no Ack", m.Cause, fmt.Sprintf("no copy of message %d passed the tap towards this side that was not answered before", m.Cause), a.last)
		}
		return s.diverge(p, "ack-unasked", "riptide.ack_cause", open[0].sequence, m.Cause, fmt.Sprintf("no copy of message %d passed the tap towards this side that was not answered before; one of message %d did", m.Cause, open[0].sequence), open[0].ref)
	case k > 0 && (a.known || j.life.begun) && !unordered:
		if v := s.unsentAck(j.config.Senders[s.side].Codec, p, &open[0]); v != nil {
			return v
		}
		return s.diverge(p, "ack-missing", "riptide.ack_cause", open[0].sequence, m.Cause, fmt.Sprintf("message %d came before message %d, and each copy of a reliable message is answered at once", open[0].sequence, m.Cause), open[0].ref, open[k].ref)
	}
	x := open[k]
	if unordered {
		copy(open[1:k+1], open[:k])
		open[0] = x
		a.head++
	} else {
		a.head += k + 1
	}
	s.readTo = max(s.readTo, x.place)
	if !a.known && !j.life.begun {
		a.adopt(m.Last, m.AckBits)
		s.opinion.Undecided++
		return nil
	}
	a.known = true
	gap := gapOf(x.sequence, a.receiver.last)
	a.receiver.Take(x.sequence)
	last, bits := a.receiver.Ack()
	if last == m.Last && bits == m.AckBits {
		return nil
	}
	if unordered && s.relays {
		s.opinion.Undecided++
		a.adopt(m.Last, m.AckBits)
		return nil
	}
	if a.shallow && gap > 1 && (gap >= jumpList || s.behaviour.Receive != ReceiveList) {
		// What lies beyond the bits of the Ack that it was joined by is not known.
		s.opinion.Undecided++
		a.adopt(m.Last, m.AckBits)
		return nil
	}
	v := s.diverge(p, "ack", "riptide.ack_bits", fmt.Sprintf("%#04x", bits), fmt.Sprintf("%#04x", m.AckBits),
		fmt.Sprintf("after message %d, and all before it, the receiver holds something else", x.sequence), x.ref, a.last)
	if last != m.Last {
		v.Field, v.Expected, v.Got = "riptide.last", fmt.Sprint(last), fmt.Sprint(m.Last)
	}
	v.Reference, v.Captured = "received "+window(last, uint64(bits), 16), "received "+window(m.Last, uint64(m.AckBits), 16)
	return v
}

// holds reports whether an Ack says just what the receiver holds once it has read
// what the Ack answers.
func (a *judgedAcks) holds(m *wire.Message) bool {
	after := a.receiver.Clone()
	after.Take(m.Cause)
	last, bits := after.Ack()
	return a.known && last == m.Last && bits == m.AckBits
}

// adopt sets the receiver to what an Ack shows.
func (a *judgedAcks) adopt(last, bits uint16) {
	a.receiver.Adopt(last, bits)
	a.known, a.shallow = true, true
}

// answerSlack is how long an answer may wait for its side's frame, while the
// side sends other things.
const answerSlack = time.Second

// unanswered looks for a message that s ought to have answered long ago.
func (s *judged) unanswered(j *Judge, p *sight) *machine.Divergence {
	open := s.acks.open()
	if len(open) == 0 || !s.near || !s.acks.known || s.behaviour.Port || p.at.Sub(open[0].at) < answerSlack || s.spoke.Sub(open[0].at) < answerSlack/2 {
		return nil
	}
	if v := s.unsentAck(j.config.Senders[s.side].Codec, p, &open[0]); v != nil {
		return v
	}
	return s.diverge(p, "ack-missing", "riptide.type", "ack", p.m.Type, fmt.Sprintf("message %d came %.0f ms ago, and each copy of a reliable message is answered at once", open[0].sequence, ms(p.at.Sub(open[0].at))), open[0].ref)
}
