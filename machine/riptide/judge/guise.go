package judge

import (
	"errors"
	"fmt"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	base "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// guises are the last messages of a side at the tap, by their bytes. Where one is
// missing in what the side sends, one of them may be it under a wrong type: all
// but its first bits are those that were due.
type guises struct {
	list []guise
	next int
}

// guise is the head of one message.
type guise struct {
	ref    machine.Ref
	at     machine.Instant
	length int
	n      int
	bytes  [guiseBytes]byte
	kind   wire.Type
	known  bool // kind is a type of the dialect
}

const (
	// Source: bound, the heads of messages that are kept
	guiseFirst, guiseMost = 4, 64
	// guiseBytes: no header is longer
	// Source: bound, the bytes of such a head
	guiseBytes = 12
)

// headOf digests the beginning of a message, but for the bits that are its type in
// either form.
func headOf(b []byte, length int) uint64 {
	var head [guiseBytes]byte
	n := copy(head[:], b)
	head[0] &^= 15
	return machine.Digest(uint64(length), head[:n])
}

// bodyOf digests what stands behind the type and the sequence of a reliable message.
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

// keep keeps a message, but for one whose header was held against the reference's
// as what it says that it is, and decided.
func (g *guises) keep(d *machine.Datagram, kind wire.Type, known, undecided bool) {
	if known && !undecided && kind != wire.Reliable && kind != wire.Unreliable && kind != wire.Connect &&
		kind != wire.Reject && kind != wire.Disconnect {
		return
	}
	if n := len(g.list); g.next == n && n < guiseMost {
		g.list = append(g.list, make([]guise, max(guiseFirst, n))...)
	} else if g.next == n {
		g.next = 0
	}
	g.list[g.next] = newGuise(d, kind, known)
	g.next++
}

func newGuise(d *machine.Datagram, kind wire.Type, known bool) guise {
	g := guise{ref: d.Ref, at: d.At, length: d.Length, kind: kind, known: known}
	g.n = copy(g.bytes[:], d.Bytes)
	return g
}

// find returns the newest message, after a frame, that would be what is looked for
// if its type were t.
func (g *guises) find(c wire.Codec, t wire.Type, after machine.Ref, is func(m *wire.Message, head uint64) bool) *guise {
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

// disguised formats that a message has the type of another.
func (s *judged) disguised(p *sight, g *guise, t wire.Type, because string, frames ...machine.Ref) *machine.Divergence {
	got := "no type of this dialect"
	if g.known {
		got = g.kind.String()
	}
	v := s.diverge(p, difference{"type", "riptide.type", t.String(), got, because}, append(frames, p.ref)...)
	v.Ref, v.At = g.ref, g.at
	v.Captured = fmt.Sprintf("%s: % x", got, g.bytes[:g.n])
	return v
}

var reliables = [...]wire.Type{wire.Reliable, wire.Welcome, wire.ClientConnected, wire.ClientDisconnected}

// unsentAs looks, among what a side at the tap sent after a frame, for a reliable
// message that has a sequence and another type.
func (s *judged) unsentAs(c wire.Codec, p *sight, id uint16) *machine.Divergence {
	for _, t := range reliables {
		if g := s.guises.find(c, t, s.sends.ref, func(m *wire.Message, _ uint64) bool { return m.Sequence == id }); g != nil {
			return s.disguised(p, g, t,
				fmt.Sprintf("it is message %d but for its type: no other message has this sequence, and the next one is there", id))
		}
	}
	return nil
}

// renumbered formats that a message is a copy of another one, but for its sequence.
func (s *judged) renumbered(p *sight, x, last *pending) *machine.Divergence {
	v := s.diverge(p, difference{
		"sequence", "riptide.sequence", x.id, last.id,
		fmt.Sprintf("it is a copy of message %d but for its sequence: what followed shows that message %d was another",
			x.id, last.id),
	}, x.first, p.ref)
	v.Ref, v.At = last.first, last.lastAt
	v.Captured = fmt.Sprintf("%s, sequence %d", wire.Reliable, last.id)
	return v
}

// unsentCopy looks for a copy of a message that was sent before.
func (s *judged) unsentCopy(c wire.Codec, p *sight, x *pending) *machine.Divergence {
	for _, t := range reliables {
		if g := s.guises.find(c, t,
			x.last, func(m *wire.Message, head uint64) bool { return m.Sequence == x.id && head == x.head }); g != nil {
			return s.disguised(p, g, t,
				fmt.Sprintf("it is a copy of message %d but for its type, and is answered as such", x.id), x.last)
		}
	}
	return nil
}

// unsentNotify is the same of notify messages.
func (s *judged) unsentNotify(c wire.Codec, p *sight, id uint16) *machine.Divergence {
	if g := s.guises.find(c, wire.Notify,
		s.notes.ref, func(m *wire.Message, _ uint64) bool { return m.Sequence == id }); g != nil {
		return s.disguised(p, g, wire.Notify,
			fmt.Sprintf("it is notify message %d but for its type: no other has this sequence, and the next one is there", id))
	}
	return nil
}

// unsentAck looks for the Ack of an arrival under another type: it says just what
// the receiver holds then.
func (s *judged) unsentAck(c wire.Codec, p *sight, x *judgedArrival) *machine.Divergence {
	after := s.acks.receiver.Clone()
	after.Take(x.sequence)
	last, bits := after.Ack()
	for _, t := range [...]wire.Type{wire.Ack, wire.AckExtra} {
		if g := s.guises.find(c, t, x.ref, func(m *wire.Message, _ uint64) bool {
			return (m.Unnamed || m.Cause == x.sequence) && m.Last == last && m.AckBits == bits
		}); g != nil {
			return s.disguised(p, g, t,
				fmt.Sprintf("it is the Ack of message %d but for its type: no Ack answers that message", x.sequence))
		}
	}
	return nil
}

// unsentBeat looks for a heartbeat under another type.
func (s *judged) unsentBeat(c wire.Codec, p *sight, ping uint8, after machine.Ref, asks bool) *machine.Divergence {
	timed := asks || c.Dialect.RTTBothWays
	if g := s.guises.find(c, wire.Heartbeat,
		after, func(m *wire.Message, _ uint64) bool { return m.Ping == ping && m.HasRTT == timed }); g != nil {
		return s.disguised(p, g, wire.Heartbeat,
			fmt.Sprintf("it is the heartbeat with id %d but for its type: no other has this id", ping))
	}
	return nil
}

// undead judges that a side goes on after its own Disconnect: that was none. A thread
// of Pytide may send what it had begun.
func (s *judged) undead(p *sight) *machine.Divergence {
	g := &s.parting
	if g.n == 0 || p.m.Type == wire.Disconnect || s.behaviour.Port && p.at.Sub(g.at) < endedSlack {
		return nil
	}
	v := s.diverge(p, difference{
		"type", "riptide.type", "no Disconnect", wire.Disconnect,
		"the side goes on after it",
	}, p.ref)
	v.Ref, v.At = g.ref, g.at
	v.Captured = fmt.Sprintf("%s: % x", wire.Disconnect, g.bytes[:g.n])
	return v
}

// unreadable judges what is no message, or one that is too long for its type. In a
// stream that was joined in its middle it is a likely one that messages were looked
// for in the wrong place.
func (s *judged) unreadable(j *Judge, d *machine.Datagram, err error) *machine.Divergence {
	if !s.near || d.Length > len(d.Bytes) || s.stream && !j.life.begun {
		return nil
	}
	var bad *base.ParseError
	if !errors.As(err, &bad) {
		return nil
	}
	p := &sight{at: d.At, ref: d.Ref, bytes: d.Bytes, m: &j.m}
	v := s.diverge(p, difference{
		"unreadable", "riptide." + bad.Field, bad.Expected, bad.Found,
		"an endpoint of this protocol sends nothing else from its port",
	}, s.spokeRef)
	if v.Expected == "" {
		v.Expected = "a message of dialect " + j.config.Senders[s.side].Codec.Dialect.Name
	}
	v.Captured = fmt.Sprintf("%d bytes, the first % x", d.Length, d.Bytes[:min(len(d.Bytes), guiseBytes)])
	return v
}

// miscast judges a type that the side's role does not have.
func (s *judged) miscast(j *Judge, p *sight) *machine.Divergence {
	if !s.near || !j.life.sure || !j.life.begun {
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
		// Where a client gives a reason, two of them remain the server's alone.
		wrong = client && p.m.HasReason &&
			(!dialect.ReasonBothWays || p.m.Reason == riptide.Kicked || p.m.Reason == riptide.ServerStopped)
	case wire.Welcome:
		wrong = client && dialect.WelcomeOneWay
	}
	if !wrong {
		return nil
	}
	return s.diverge(p, difference{
		"role", "riptide.type", "what a " + role + " sends", told(p.m),
		fmt.Sprintf("this side is the %s of the connection, and such messages are the other's", role),
	}, s.spokeRef)
}

// restsOnPeer reports whether a divergence follows from what the other side sent.
func restsOnPeer(v *machine.Divergence) bool {
	switch v.Rule {
	case "ack-unsent", "ack-unasked", "ack-missing", "ack", "notify-ack", "heartbeat-answer", "rtt", "timeout",
		"after-the-end",
		"resend-after-ack", "resend-late", "resend-early":
		return true
	}
	return false
}
