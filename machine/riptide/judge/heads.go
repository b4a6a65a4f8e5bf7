package judge

import (
	"errors"
	"fmt"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	base "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// recentHeads are the heads of the last messages of a side at the tap. If a message is missing
// in what the side sends, one of them may be it under a wrong type. Then all but its first
// bits are those of the message that is due.
type recentHeads struct {
	list []messageHead
	next int
}

// messageHead is the head of one message.
type messageHead struct {
	ref    machine.Ref
	at     machine.Instant
	length int
	n      int
	bytes  [headBytes]byte
	kind   wire.Type
	known  bool // kind is a type of the dialect
}

const (
	// headsFirst and headsMost are how many heads of messages a recentHeads has room for, at first and
	// at most.
	// Source: bound, the heads of messages that are kept
	headsFirst, headsMost = 4, 64
	// headBytes is how many bytes of a message its head holds. No header is longer.
	// Source: bound, the bytes of the head of a message
	headBytes = 12
)

// headOf returns a digest of the head of a message without the bits of its type. The bits
// are the same in both forms.
func headOf(b []byte, length int) uint64 {
	var head [headBytes]byte
	n := copy(head[:], b)
	head[0] &^= 15
	return machine.Digest(uint64(length), head[:n])
}

// bodyOf returns a digest of what stands behind the type and the sequence of a reliable message.
func bodyOf(form wire.Form, b []byte) uint64 {
	if len(b) < 3 {
		return 0
	}
	seed := uint64(1)
	if form == wire.BitPacked {
		seed += uint64(b[2] >> 4)
	}
	return machine.Digest(seed, b[3:])
}

// keep keeps the head of a message. It keeps none of a message whose header was compared with
// the reference and decided: that message is what its type says.
func (g *recentHeads) keep(d *machine.Datagram, kind wire.Type, known, undecided bool) {
	if known && !undecided && kind != wire.Reliable && kind != wire.Unreliable && kind != wire.Connect &&
		kind != wire.Reject && kind != wire.Disconnect {
		return
	}
	if n := len(g.list); g.next == n && n < headsMost {
		g.list = append(g.list, make([]messageHead, max(headsFirst, n))...)
	} else if g.next == n {
		g.next = 0
	}
	g.list[g.next] = newHead(d, kind, known)
	g.next++
}

func newHead(d *machine.Datagram, kind wire.Type, known bool) messageHead {
	g := messageHead{ref: d.Ref, at: d.At, length: d.Length, kind: kind, known: known}
	g.n = copy(g.bytes[:], d.Bytes)
	return g
}

// find returns the newest message after a frame that would be the one that is looked for if
// its type were t.
func (g *recentHeads) find(
	c wire.Codec, t wire.Type, after machine.Ref, is func(m *wire.Message, head uint64) bool,
) *messageHead {
	value, ok := c.Dialect.Value(t)
	if !ok {
		return nil
	}
	for i := range g.list {
		e := &g.list[(g.next+2*len(g.list)-1-i)%len(g.list)]
		if e.ref <= after || e.n == 0 || e.known && e.kind == t {
			continue
		}
		b := e.bytes
		if c.Dialect.Form == wire.BitPacked {
			b[0] = b[0]&^15 | value
		} else {
			b[0] = value
		}
		var m wire.Message
		if c.Parse(b[:e.n], e.length, &m) == nil && is(&m, headOf(b[:e.n], e.length)) {
			return e
		}
	}
	return nil
}

// mistyped returns the divergence of a message that has the type of another kind.
func (s *judged) mistyped(
	p *observed, g *messageHead, t wire.Type, because string, frames ...machine.Ref,
) *machine.Divergence {
	got := "no type of this dialect"
	if g.known {
		got = g.kind.String()
	}
	v := s.diverge(p, difference{WrongType, machine.RestsOnAbsence, "riptide.type", t.String(), got, because},
		append(frames, p.ref)...)
	v.Ref, v.At = g.ref, g.at
	v.Captured = fmt.Sprintf("%s: % x", got, g.bytes[:g.n])
	return v
}

var reliables = [...]wire.Type{wire.Reliable, wire.Welcome, wire.ClientConnected, wire.ClientDisconnected}

// unsentAs looks for a reliable message that has a sequence and another type, in what a side at
// the tap sent after a frame.
func (s *judged) unsentAs(c wire.Codec, p *observed, id uint16) *machine.Divergence {
	for _, t := range reliables {
		if g := s.recent.find(c, t, s.sends.ref, func(m *wire.Message, _ uint64) bool { return m.Sequence == id }); g != nil {
			return s.mistyped(p, g, t,
				fmt.Sprintf("apart from its type, it is message %d: no other message has this sequence, and the next one is "+
					"there", id))
		}
	}
	return nil
}

// renumbered returns the divergence of a message that is a copy of another but for its sequence.
func (s *judged) renumbered(p *observed, x, last *pending, rests machine.RestsOn) *machine.Divergence {
	v := s.diverge(p, difference{
		Sequence, rests, "riptide.sequence", x.id, last.id,
		fmt.Sprintf("apart from its sequence, it is a copy of message %d: what followed shows that message %d was another",
			x.id, last.id),
	}, x.first, p.ref)
	v.Ref, v.At, v.Assumed = last.first, last.lastAt, true
	v.Captured = fmt.Sprintf("%s, sequence %d", wire.Reliable, last.id)
	return v
}

// unsentCopy looks for a copy of a message under another type.
func (s *judged) unsentCopy(c wire.Codec, p *observed, x *pending) *machine.Divergence {
	for _, t := range reliables {
		if g := s.recent.find(c, t,
			x.last, func(m *wire.Message, head uint64) bool { return m.Sequence == x.id && head == x.head }); g != nil {
			return s.mistyped(p, g, t,
				fmt.Sprintf("apart from its type, it is a copy of message %d, and it was answered as one", x.id), x.last)
		}
	}
	return nil
}

// unsentNotify looks for a notify message under another type.
func (s *judged) unsentNotify(c wire.Codec, p *observed, id uint16) *machine.Divergence {
	if g := s.recent.find(c, wire.Notify,
		s.notes.ref, func(m *wire.Message, _ uint64) bool { return m.Sequence == id }); g != nil {
		return s.mistyped(p, g, wire.Notify,
			fmt.Sprintf("apart from its type, it is notify message %d: no other has this sequence, and the next one is "+
				"there", id))
	}
	return nil
}

// unsentAck looks for the Ack of an arrival under another type. It says just what the receiver
// holds then.
func (s *judged) unsentAck(c wire.Codec, p *observed, x *judgedArrival) *machine.Divergence {
	after := s.acks.receiver.Clone()
	after.Take(x.sequence)
	last, bits := after.Ack()
	for _, t := range [...]wire.Type{wire.Ack, wire.AckExtra} {
		if g := s.recent.find(c, t, x.ref, func(m *wire.Message, _ uint64) bool {
			return (m.Unnamed || m.Cause == x.sequence) && m.Last == last && m.AckBits == bits
		}); g != nil {
			return s.mistyped(p, g, t,
				fmt.Sprintf("apart from its type, it is the Ack of message %d: no Ack answers that message", x.sequence))
		}
	}
	return nil
}

// unsentBeat looks for a heartbeat under another type.
func (s *judged) unsentBeat(c wire.Codec, p *observed, ping uint8, after machine.Ref, asks bool) *machine.Divergence {
	timed := asks || c.Dialect.RTTBothWays
	if g := s.recent.find(c, wire.Heartbeat,
		after, func(m *wire.Message, _ uint64) bool { return m.Ping == ping && m.HasRTT == timed }); g != nil {
		return s.mistyped(p, g, wire.Heartbeat,
			fmt.Sprintf("apart from its type, it is the heartbeat with id %d: no other has this id", ping))
	}
	return nil
}

// afterDisconnect returns the divergence of a Disconnect after which its side goes on: it was
// none, unless the capture lacks a new Connect. A thread of Pytide may still send what it
// had begun.
func (s *judged) afterDisconnect(p *observed) *machine.Divergence {
	g := &s.parting
	if g.n == 0 || p.m.Type == wire.Disconnect || s.behaviour.Port && p.at.Sub(g.at) < endedSlack {
		return nil
	}
	v := s.diverge(p, difference{
		WrongType, machine.RestsOnAbsence, "riptide.type", "no Disconnect", wire.Disconnect,
		"the side goes on after it",
	}, p.ref)
	v.Ref, v.At = g.ref, g.at
	v.Captured = fmt.Sprintf("%s: % x", wire.Disconnect, g.bytes[:g.n])
	return v
}

// unreadable judges bytes that are no message, or a message that is too long for its type. In
// a stream that was joined in its middle, messages may have been looked for in the wrong
// place: there nothing is judged.
func (s *judged) unreadable(j *Judge, d *machine.Datagram, err error) *machine.Divergence {
	if !s.near || d.Length > len(d.Bytes) || s.stream && !j.connection.begun {
		return nil
	}
	var bad *base.ParseError
	if !errors.As(err, &bad) {
		return nil
	}
	p := &observed{at: d.At, ref: d.Ref, bytes: d.Bytes, m: &j.m}
	v := s.diverge(p, difference{
		Unreadable, machine.RestsOnOwn, "riptide." + bad.Field, bad.Expected, bad.Found,
		"an endpoint of this protocol sends nothing else from its port",
	}, s.spokeRef)
	if v.Expected == "" {
		v.Expected = "a message of dialect " + j.config.Senders[s.side].Codec.Dialect.Name
	}
	v.Captured = fmt.Sprintf("%d bytes, the first % x", d.Length, d.Bytes[:min(len(d.Bytes), headBytes)])
	return v
}

// wrongRole judges a type that the side's role does not send.
func (s *judged) wrongRole(j *Judge, p *observed) *machine.Divergence {
	if !s.near || !j.connection.sure || !j.connection.begun {
		return nil
	}
	client, role := s.client(j), "server"
	if client {
		role = "client"
	}
	var wrong bool
	dialect := j.config.Senders[s.side].Codec.Dialect
	switch p.m.Type {
	case wire.ClientConnected, wire.ClientDisconnected, wire.Reject:
		wrong = client
	case wire.Heartbeat:
		wrong = p.m.HasRTT != client && !dialect.RTTBothWays
	case wire.Disconnect:
		// Where a client gives a reason, two reasons remain the server's alone.
		wrong = client && p.m.HasReason &&
			(!dialect.ReasonBothWays || p.m.Reason == riptide.Kicked || p.m.Reason == riptide.ServerStopped)
	case wire.Welcome:
		wrong = client && dialect.WelcomeOneWay
	}
	if !wrong {
		return nil
	}
	return s.diverge(p, difference{
		WrongRole, machine.RestsOnOwn, "riptide.type", "what a " + role + " sends", told(p.m),
		fmt.Sprintf("this side is the %s of the connection, and only the other side sends such messages", role),
	}, s.spokeRef)
}
