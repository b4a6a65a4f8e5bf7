package riptide

import (
	"errors"
	"fmt"

	"github.com/ackscope/ackscope/machine"
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
	guiseMost  = 16
	guiseBytes = 12 // no header is longer
)

// keep keeps a message, but for one whose header was held against the reference's
// as what it says that it is.
func (g *guises) keep(d *machine.Datagram, kind wire.Type, known bool) {
	if known && kind != wire.Unreliable && kind != wire.Connect && kind != wire.Reject && kind != wire.Disconnect {
		return
	}
	if g.list == nil {
		g.list = make([]guise, guiseMost)
	}
	e := &g.list[g.next]
	*e = guise{ref: d.Ref, at: d.At, length: d.Length, kind: kind, known: known}
	e.n = copy(e.bytes[:], d.Bytes)
	g.next = (g.next + 1) % guiseMost
}

// find gives the newest message, after a frame, that would be what is looked for
// if its type were t.
func (g *guises) find(c wire.Codec, t wire.Type, after machine.Ref, is func(m *wire.Message) bool) *guise {
	value, ok := c.Dialect.Value(t)
	if !ok {
		return nil
	}
	for i := range g.list {
		e := &g.list[(g.next+guiseMost-1-i)%guiseMost]
		if e.ref <= after || e.n == 0 {
			continue
		}
		b := e.bytes
		if c.Dialect.Form == wire.BitPacked {
			b[0] = b[0]&^15 | value
		} else {
			b[0] = value
		}
		var m wire.Message
		if c.Parse(b[:e.n], e.length, &m) == nil && is(&m) {
			return e
		}
	}
	return nil
}

// disguised words that a message has the type of another.
func (s *judged) disguised(p *sight, g *guise, t wire.Type, because string) *machine.Divergence {
	got := "no type of this dialect"
	if g.known {
		got = g.kind.String()
	}
	v := s.diverge(p, "type", "riptide.type", t.String(), got, because, p.ref)
	v.Ref, v.At = g.ref, g.at
	v.Captured = fmt.Sprintf("%s: % x", got, g.bytes[:g.n])
	return v
}

// unsentAs looks, among what a side at the tap sent after a frame, for a reliable
// message that has a sequence and another type.
func (s *judged) unsentAs(c wire.Codec, p *sight, id uint16) *machine.Divergence {
	for _, t := range [...]wire.Type{wire.Reliable, wire.Welcome, wire.ClientConnected, wire.ClientDisconnected} {
		if g := s.guises.find(c, t, s.sends.ref, func(m *wire.Message) bool { return m.Sequence == id }); g != nil {
			return s.disguised(p, g, t, fmt.Sprintf("it is message %d but for its type: no other message has this sequence, and the next one is there", id))
		}
	}
	return nil
}

// unsentNotify is the same of notify messages.
func (s *judged) unsentNotify(c wire.Codec, p *sight, id uint16) *machine.Divergence {
	if g := s.guises.find(c, wire.Notify, s.notes.ref, func(m *wire.Message) bool { return m.Sequence == id }); g != nil {
		return s.disguised(p, g, wire.Notify, fmt.Sprintf("it is notify message %d but for its type: no other has this sequence, and the next one is there", id))
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
		if g := s.guises.find(c, t, x.ref, func(m *wire.Message) bool { return m.Cause == x.sequence && m.Last == last && m.AckBits == bits }); g != nil {
			return s.disguised(p, g, t, fmt.Sprintf("it is the Ack of message %d but for its type: no Ack answers that message", x.sequence))
		}
	}
	return nil
}

// unsentBeat looks for a heartbeat under another type.
func (s *judged) unsentBeat(c wire.Codec, p *sight, ping uint8, after machine.Ref, asks bool) *machine.Divergence {
	if g := s.guises.find(c, wire.Heartbeat, after, func(m *wire.Message) bool { return m.Ping == ping && m.HasRTT == asks }); g != nil {
		return s.disguised(p, g, wire.Heartbeat, fmt.Sprintf("it is the heartbeat with id %d but for its type: no other has this id", ping))
	}
	return nil
}

// undeadAs looks, where a side goes on after its own Disconnect, for what that was
// but for its type.
func (s *judged) undeadAs(j *Judge, p *sight) *machine.Divergence {
	c, ended := j.config.Senders[s.side].Codec, j.life.ended
	is := func(v *machine.Divergence) *machine.Divergence {
		if v != nil && v.At == ended {
			return v
		}
		return nil
	}
	if open := s.acks.open(); len(open) > 0 {
		if v := is(s.unsentAck(c, p, &open[0])); v != nil {
			return v
		}
	}
	if s.client(j) {
		return is(s.unsentBeat(c, p, s.session.ping+1, s.session.pingRef, true))
	}
	if asked := s.session.asked; len(asked) > 0 {
		return is(s.unsentBeat(c, p, asked[0].id, asked[0].ref, false))
	}
	return nil
}

// unreadable judges what is no message, or one that is too long for its type.
func (s *judged) unreadable(j *Judge, d *machine.Datagram, err error) *machine.Divergence {
	if !s.near || s.behaviour.Port || d.Length > len(d.Bytes) {
		return nil
	}
	var bad *base.ParseError
	if !errors.As(err, &bad) {
		return nil
	}
	p := &sight{d.At, d.Ref, d.Bytes, &j.m}
	v := s.diverge(p, "unreadable", "riptide."+bad.Field, bad.Expected, bad.Found, "an endpoint of this protocol sends nothing else from its port", s.spokeRef)
	if v.Expected == "" {
		v.Expected = "a message of dialect " + j.config.Senders[s.side].Codec.Dialect.Name
	}
	v.Captured = fmt.Sprintf("%d bytes, the first % x", d.Length, d.Bytes[:min(len(d.Bytes), guiseBytes)])
	return v
}

// miscast judges a type that the side's role does not have.
func (s *judged) miscast(j *Judge, p *sight) *machine.Divergence {
	if !s.near || !j.life.roles || !j.life.begun || s.behaviour.Port {
		return nil
	}
	client, role := s.client(j), "server"
	if client {
		role = "client"
	}
	var wrong bool
	switch p.m.Type {
	case wire.ClientConnected, wire.ClientDisconnected, wire.Reject:
		wrong = client
	case wire.Heartbeat:
		wrong = p.m.HasRTT != client && !j.config.Senders[s.side].Codec.Dialect.RTTBothWays
	case wire.Disconnect:
		wrong = client && p.m.HasReason
	}
	if !wrong {
		return nil
	}
	return s.diverge(p, "role", "riptide.type", "what a "+role+" sends", told(p.m), fmt.Sprintf("this side is the %s of the connection, and such messages are the other's", role), s.spokeRef)
}

// doubtful says how far what a side at the tap sent is open: it was shown to go
// wrong in what it sends, or in what it says that it received.
func (s *judged) doubtful() (sent, received bool) {
	v := s.opinion.Divergence
	if v == nil || !s.ordered {
		return false, false
	}
	switch v.Rule {
	case "ack", "ack-unasked", "ack-missing", "ack-unsent", "ack-forgotten":
		return false, true
	case "notify-ack":
		return false, false
	}
	return true, true
}

// restsOn says what of its peer's a divergence follows from.
func restsOn(v *machine.Divergence) (sent, received bool) {
	switch v.Rule {
	case "ack-unsent", "ack-unasked", "ack-missing", "ack", "notify-ack", "heartbeat-answer", "rtt", "timeout", "after-the-end":
		return true, false
	case "resend-after-ack", "resend-late", "resend-early":
		return true, true
	}
	return false, false
}
