package judge

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// judgedArrival is a message that passed the tap towards a side. The side's own messages will
// show that it was read.
type judgedArrival struct {
	sequence uint16
	place    int64
	at       machine.Instant
	ref      machine.Ref
}

// arrivals is a queue of them, in order; its memory is bounded by riptide.QueueMost.
type arrivals struct {
	items []judgedArrival
	head  int
	over  bool // some were dropped unread
}

func (q *arrivals) put(a judgedArrival) {
	switch {
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
	case len(q.items) >= riptide.QueueMost:
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

// judgedAcks is how a side answers reliable messages.
type judgedAcks struct {
	arrivals
	receiver riptide.Receiver
	known    bool // the state of receiver is known
	shallow  bool // but only as far back as an Ack shows
	jumped   bool // its ids have jumped so far that a receiver with the library's fault loses some
	newest   uint16
	met      bool // newest is set
	last     machine.Ref
	passed   passedIDs // of a far side: the peer's ids that passed the tap towards it
	far      farAcks
}

func (a *judgedAcks) begin(b *riptide.Behaviour) { a.receiver = riptide.NewReceiver(b) }

// sent records that the peer has sent a reliable message.
func (a *judgedAcks) sent(id uint16) {
	if !a.met || riptide.GapOf(id, a.newest) > 0 {
		a.newest, a.met = id, true
	}
}

// answers judges an Ack of s.
func (s *judged) answers(j *Judge, peer *judged, p *observed) *machine.Divergence {
	a, m := &s.acks, p.m
	defer func() { a.last = p.ref }()
	if s.behaviour.Receive == riptide.ReceiveEverything {
		s.opinion.Undecided++ // it answers only Welcome, with any id
		return nil
	}
	if s.stream && (s.hole || peer.hole) {
		s.opinion.Undecided++
		return nil
	}
	if v := s.flagged(j, p); v != nil {
		return v
	}
	mixes := s.behaviour.Port && !s.client(j) // a server of Pytide that relays mixes its messages up
	if v := s.consistent(p); v != nil && !mixes {
		return v
	}
	if s.ordered {
		return s.answersInOrder(j, p)
	}
	s.opinion.Undecided++
	if mixes {
		return nil
	}
	switch {
	case peer.near && len(peer.sends.merged) > 0:
		// Which ids the peer sent is open: some are hidden under OR-ed ones.
	case j.settling(p.at):
		// The first ids that pass can be those of old messages that are sent again.
	case !m.Unnamed && peer.near && a.met && riptide.GapOf(m.Cause, a.newest) > 0 &&
		riptide.GapOf(m.Cause, a.newest) < farAhead:
		return s.diverge(p, difference{
			AckUnsent, machine.RestsOnBoth, "riptide.ack_cause", fmt.Sprintf("at most %d", a.newest), m.Cause,
			fmt.Sprintf("nothing newer than message %d had been sent", a.newest),
		}, a.last)
	case peer.near && a.met && riptide.GapOf(m.Last, a.newest) > 0 && riptide.GapOf(m.Last, a.newest) < farAhead:
		return s.diverge(p, difference{
			AckUnsent, machine.RestsOnBoth, "riptide.last", fmt.Sprintf("at most %d", a.newest), m.Last,
			fmt.Sprintf("nothing newer than message %d had been sent", a.newest),
		}, a.last)
	}
	return s.snapshot(p)
}

// flagged checks the flag of an Ack: it says whether the id that is answered differs from the
// newest id.
func (s *judged) flagged(j *Judge, p *observed) *machine.Divergence {
	m := p.m
	if j.config.Senders[s.side].Codec.Dialect.Form != wire.BitPacked || !m.HasCause || m.Flag == (m.Cause != m.Last) ||
		s.behaviour.Port {
		return nil
	}
	return s.diverge(p, difference{
		AckWrong, machine.RestsOnOwn, "riptide.ack_flag", m.Cause != m.Last, m.Flag,
		fmt.Sprintf("the Ack answers message %d, and its newest is %d: the flag must say whether they "+
			"differ", m.Cause, m.Last),
	}, s.acks.last)
}

// farAhead is the gap below which an acked id counts as newer than the newest one sent, in ids. An
// id that is half the range away does not count as newer.
// Source: law, ids of 16 bits: a quarter of their range, and half is the most that can be ahead
const farAhead = 1 << 14

// consistent checks an Ack by itself: the id that it answers was received. An Ack that says otherwise is wrong at any
// tap, whatever the capture lacks.
func (s *judged) consistent(p *observed) *machine.Divergence {
	m := p.m
	behind := riptide.GapOf(m.Last, m.Cause)
	if s.behaviour.Receive != riptide.ReceiveList || behind <= 0 || behind > riptide.WindowAcks ||
		m.AckBits>>(behind-1)&1 == 1 {
		if s.behaviour.Receive == riptide.ReceiveList && behind < 0 {
			return s.diverge(p, difference{
				AckWrong, machine.RestsOnOwn, "riptide.last", m.Cause, m.Last,
				"the newest id received is not older than the one that is answered",
			})
		}
		return nil
	}
	want := m.AckBits | 1<<(behind-1)
	return s.diverge(p, difference{
		AckWrong, machine.RestsOnOwn, "riptide.ack_bits", machine.Hex(uint64(want), 4),
		machine.Hex(uint64(m.AckBits), 4),
		fmt.Sprintf("the Ack answers message %d and does not name it", m.Cause),
	})
}

// answersInOrder judges an Ack of a side that reads all that passed the tap, in order.
func (s *judged) answersInOrder(j *Judge, p *observed) *machine.Divergence {
	a, m := &s.acks, p.m
	open, k := a.open(), a.answered(m, j.connection.begun)
	unordered := s.behaviour.Port // Pytide reads the newest first
	if unordered && s.relays && k == len(open) {
		// A server of Pytide that relays mixes its messages up.
		s.opinion.Undecided++
		return nil
	}
	for k > 0 && k < len(open) && !j.connection.begun && open[0].at.Sub(j.connection.first) < settlingTime {
		// Which copies the first Acks answer is not known.
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
	peer := &j.sides[s.side.Other()]
	switch {
	case k == len(open) && s.stream && !peer.sends.met:
		// Where its messages begin in the stream is not found yet: they come late.
		s.hole = true
		s.opinion.Undecided++
		a.adopt(m.Last, m.AckBits)
		return nil
	case k == len(open) && (!j.connection.begun && !a.known || a.over):
		// The message came before the capture.
		s.opinion.Undecided++
		a.adopt(m.Last, m.AckBits)
		return nil
	case k == len(open) && m.Unnamed:
		return s.answersNothing(j, p)
	case k == len(open):
		if len(open) == 0 {
			return s.diverge(p, difference{
				AckUnasked, machine.RestsOnBoth, "riptide.ack_cause", "no Ack", m.Cause,
				fmt.Sprintf("every copy of message %d that was captured on its way to this side was answered before", m.Cause),
			}, a.last)
		}
		return s.diverge(p, difference{
			AckUnasked, machine.RestsOnBoth, "riptide.ack_cause", open[0].sequence, m.Cause,
			fmt.Sprintf("every copy of message %d that was captured on its way to this side was answered before; one of "+
				"message "+
				"%d did", m.Cause, open[0].sequence),
		}, open[0].ref)
	case k > 0 && (a.known || j.connection.begun) && !unordered:
		if v := s.unsentAck(j.config.Senders[s.side].Codec, p, &open[0]); v != nil {
			return v
		}
		v := s.diverge(p, difference{
			AckMissing, machine.RestsOnBoth, "riptide.ack_cause", open[0].sequence, open[k].sequence,
			fmt.Sprintf("message %d came before message %d, and each copy of a reliable message is answered at once",
				open[0].sequence, open[k].sequence),
		}, open[0].ref, open[k].ref)
		if m.Unnamed {
			expects(v, a.after(open[0].sequence), m)
		}
		return v
	}
	x := open[k]
	if unordered {
		copy(open[1:k+1], open[:k])
		open[0] = x
		a.head++
	} else {
		a.head += k + 1
	}
	s.readTo, s.since = max(s.readTo, x.place), max(s.since, x.at)
	if !a.known && !j.connection.begun {
		a.adopt(m.Last, m.AckBits)
		s.opinion.Undecided++
		return nil
	}
	a.known = true
	gap := riptide.GapOf(x.sequence, a.receiver.Last)
	a.jumped = a.jumped || s.behaviour.ShiftFault && gap >= riptide.JumpList
	a.receiver.Take(x.sequence)
	if a.receiver.Overran && s.session.overran.at == 0 {
		s.session.overran = x
	}
	if a.receiver.Holds(m) {
		return nil
	}
	if unordered && s.relays {
		s.opinion.Undecided++
		a.adopt(m.Last, m.AckBits)
		return nil
	}
	if a.shallow && gap > 1 && (gap >= riptide.JumpList || s.behaviour.Receive != riptide.ReceiveList) {
		// The side was joined by an Ack. What lies beyond its bits is not known.
		s.opinion.Undecided++
		a.adopt(m.Last, m.AckBits)
		return nil
	}
	return s.ackDiffers(j, p, &x, &a.receiver, &a.receiver)
}

// answered returns which of the waiting arrivals an Ack answers; their number for none. An Ack
// that names no id answers the first arrival that leads to what it says. With begun, the
// capture has the beginning of the connection.
func (a *judgedAcks) answered(m *wire.Message, begun bool) int {
	open := a.open()
	if m.Unnamed && (a.known || begun) {
		return a.receiver.Answers(m, len(open), func(i int) uint16 { return open[i].sequence })
	}
	for k := range open {
		if open[k].sequence == m.Cause {
			return k
		}
	}
	return len(open)
}

// answersNothing judges an Ack that names no id and that no arrival leads to.
func (s *judged) answersNothing(j *Judge, p *observed) *machine.Divergence {
	a, m := &s.acks, p.m
	open := a.open()
	switch {
	case len(open) == 0:
		return s.diverge(p, difference{
			AckUnasked, machine.RestsOnBoth, "riptide.type", "no Ack", m.Type,
			"every reliable message that was captured on its way to this side was answered before",
		}, a.last)
	case a.receiver.Holds(m), a.met && riptide.GapOf(m.Last, a.newest) > 0 && riptide.GapOf(m.Last, a.newest) < farAhead:
		v := s.diverge(p, difference{
			AckUnasked, machine.RestsOnBoth, "", "", "",
			fmt.Sprintf("no message that waits for an answer leads to this Ack; message %d is the oldest of them",
				open[0].sequence),
		}, open[0].ref, a.last)
		expects(v, a.after(open[0].sequence), m)
		return v
	}
	return s.ackDiffers(j, p, &open[0], &a.receiver, a.after(open[0].sequence))
}

// after returns the receiver after it has taken one more id.
func (a *judgedAcks) after(id uint16) *riptide.Receiver {
	r := a.receiver.Clone()
	r.Take(id)
	return &r
}

// ackDiffers returns the divergence of an Ack from what the receiver holds after an arrival.
// The state had is what the side has received, by its own Acks.
func (s *judged) ackDiffers(
	j *Judge, p *observed, x *judgedArrival, had, holds *riptide.Receiver,
) *machine.Divergence {
	v := s.diverge(p, difference{
		AckWrong, s.restsOf(j, p, had), "", "", "",
		fmt.Sprintf("after message %d and all before it, the receiver's window should be another one", x.sequence),
	}, x.ref, s.acks.last)
	expects(v, holds, p.m)
	return v
}

// expects writes into a divergence how an Ack differs from what a receiver holds.
func expects(v *machine.Divergence, holds *riptide.Receiver, m *wire.Message) {
	last, bits := holds.Ack()
	v.Mismatch = machine.Differ("riptide.ack_bits", machine.Hex(uint64(bits), 4), machine.Hex(uint64(m.AckBits), 4))
	if last != m.Last {
		v.Mismatch = machine.Differ("riptide.last", last, m.Last)
	}
	v.Reference, v.Captured = "received "+window(last, uint64(bits), riptide.WindowAcks), "received "+
		window(m.Last, uint64(m.AckBits), riptide.WindowAcks)
}

// holds reports whether an Ack says just what the receiver holds after it has read what the
// Ack answers.
func (a *judgedAcks) holds(m *wire.Message) bool {
	return a.known && a.after(m.Cause).Holds(m)
}

// adopt sets the receiver to what an Ack shows.
func (a *judgedAcks) adopt(last, bits uint16) {
	a.receiver.Adopt(last, bits)
	a.known, a.shallow = true, true
}

// answerSlack is how long an answer may wait for its side's frame while the side sends other
// things.
// Source: measured, TestMarginsRiptide
const answerSlack = time.Second

// unanswered looks for a message that s should have answered long ago.
func (s *judged) unanswered(j *Judge, p *observed) *machine.Divergence {
	open := s.acks.open()
	if len(open) == 0 || !s.near || !s.acks.known || s.behaviour.Port || s.left(p).Sub(open[0].at) < answerSlack ||
		s.spoke.Sub(open[0].at) < answerSlack/2 {
		return nil
	}
	if v := s.unsentAck(j.config.Senders[s.side].Codec, p, &open[0]); v != nil {
		return v
	}
	return s.diverge(p, difference{
		AckMissing, machine.RestsOnBoth, "riptide.type", "ack", p.m.Type,
		fmt.Sprintf("message %d came %.0f ms ago, and each copy of a reliable message is answered at once", open[0].sequence,
			machine.Milliseconds(p.at.Sub(open[0].at))),
	}, open[0].ref)
}
