// Package riptide follows Riptide flows: which messages passed the tap, how
// often, and what the acks that passed it say of them by their documented
// meaning.
//
//	reliable   seq ── copy, copy ──> acked by Ack(last, bits, cause) of the other side
//	notify     seq ── copy ────────> named by the header of the other side's Notify, or left behind
//	unreliable ── copy             (no identity: each copy is a message)
//
// This is the view on the wire. What the library made of the acks (which can
// lie up to 2.2.1, and of which it ignores some), and whether the receiver's
// filter let a message through, is another matter: nothing is claimed of it, so
// every delivery is unknown here and every ack likely.
package riptide

import (
	"bytes"
	"slices"
	"time"
	"unsafe"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
	"github.com/ackscope/ackscope/wire/seq"
)

const (
	// mostOpen bounds the messages of a side that are followed at one time; the
	// oldest is told as it stands.
	mostOpen = 512
	// settled is how long after its ack a message can still have a copy under way.
	settled = 3 * time.Second
	// notifyWindow is how far behind the newest id that the other side has
	// received a Notify is beyond being named: the header names last and 8 before.
	notifyWindow = 8
)

// Tracker follows one flow. It implements machine.Tracker.
type Tracker struct {
	codecs [2]wire.Codec
	facts  machine.Facts
	sides  [2]side
	// over is set by a Disconnect, or a Reject: the next Connect is another session.
	over bool
}

// side is what one end has sent.
type side struct {
	packets, bytes uint64
	rows           [2]row // by mode: reliable, notify
	open           []open // from head on, oldest first
	head           int
	acked, resends uint64
	rtt            time.Duration // sum over acked, from the last copy
}

// row is one run of sequence ids.
type row struct {
	began  bool
	newest int64
}

// open is a message whose life has not ended. Two messages of one id (Pytide
// 2.0.0, and broadcasts of 2.1.0) differ in their bytes.
type open struct {
	machine.Message
	bytes []byte // of the whole message, to know copies
	last  machine.Instant
}

const (
	reliableRow = iota
	notifyRow
)

// NewTracker gives the tracker of a flow whose sides speak by these codecs.
func NewTracker(codecs [2]wire.Codec, facts machine.Facts) machine.Tracker {
	return &Tracker{codecs: codecs, facts: facts}
}

// Observe takes the next message of the flow.
func (t *Tracker) Observe(d *machine.Datagram, out *machine.Effects) {
	var m wire.Message
	c := t.codecs[d.From]
	known := c.Fits(d.Bytes, d.Length, &m)
	if known && m.Type == wire.Connect && t.over {
		out.NewSession = true
		return
	}
	s, peer := &t.sides[d.From], &t.sides[d.From.Other()]
	s.packets++
	s.bytes += uint64(d.Length)
	t.sweep(d.At, out)
	if !known {
		return
	}
	switch {
	case m.Type == wire.Unreliable:
		out.Messages = append(out.Messages, message(d, &m, machine.ModeUnreliable))
	case m.Type == wire.Notify && c.Dialect.Layout(wire.Notify) == c.Dialect.Layout(wire.Unreliable) && m.Oddities&wire.NotesHeader == 0:
		out.Messages = append(out.Messages, message(d, &m, machine.ModeNotify)) // the notes' form has no sequence
	case m.Type == wire.Notify:
		s.copy(d, &m, notifyRow, out)
		peer.ack(d, &m, notifyRow, m.Last, out)
	case m.Type.Reliable():
		s.copy(d, &m, reliableRow, out)
	case m.Type == wire.Ack || m.Type == wire.AckExtra:
		peer.ack(d, &m, reliableRow, m.Cause, out)
	case m.Type == wire.Disconnect || m.Type == wire.Reject:
		t.over = true
	}
}

// body gives a message's body within its bytes.
func body(b []byte, m *wire.Message) ([]byte, uint8) {
	if at := m.BodyBit / 8; m.BodyBits > 0 && at < len(b) {
		return b[at:], uint8(m.BodyBit % 8)
	}
	return nil, 0
}

// message gives the first copy of a message. Its body is the datagram's.
func message(d *machine.Datagram, m *wire.Message, mode machine.Mode) machine.Message {
	x := machine.Message{
		From: d.From, Mode: mode, Channel: -1, ID: -1, Type: uint32(m.Type), Bits: m.BodyBits, Sequence64: -1,
		Attempts: 1, At: d.At, BlockedBy: -1,
	}
	x.Frames[0] = d.Ref
	switch {
	case m.Type == wire.Notify && m.MessageID == 0:
	case m.Type.User():
		x.ID, x.IDBits = int64(m.MessageID), 16
	default:
		x.Mode, x.Name = machine.ModeInternal, m.Type.String()
	}
	x.Body, x.BodyBit = body(d.Bytes, m)
	return x
}

// copy enters a message with a sequence id: a new one, or another copy.
func (s *side) copy(d *machine.Datagram, m *wire.Message, which int, out *machine.Effects) {
	r := &s.rows[which]
	id := int64(m.Sequence)
	if r.began {
		id = seq.Bits16.Unwrap(uint32(m.Sequence), r.newest)
	}
	event := machine.Event{Kind: machine.EventSent, Side: d.From, Certainty: machine.Certain, Sequence: uint32(m.Sequence), Sequence64: id, At: d.At, Ref: d.Ref, RTT: -1}
	live := s.live()
	for i := range live {
		o := &live[i]
		if r.began && id > r.newest {
			break // none has it
		}
		if o.Sequence64 == id && rowOf(o) == which && bytes.Equal(o.bytes, d.Bytes) {
			if o.Attempts < len(o.Frames) {
				o.Frames[o.Attempts] = d.Ref
			}
			o.Attempts++
			o.last = d.At
			s.resends++
			event.Kind, event.About = machine.EventResent, o.Frames[0]
			out.Events = append(out.Events, event)
			return
		}
	}
	if !r.began || id > r.newest {
		r.began, r.newest = true, id
	}
	mode := machine.ModeReliable
	if which == notifyRow {
		mode = machine.ModeNotify
	}
	o := open{Message: message(d, m, mode), bytes: bytes.Clone(d.Bytes), last: d.At}
	o.Sequence, o.Sequence64 = uint32(m.Sequence), id
	o.Body, o.BodyBit = body(o.bytes, m)
	if len(live) >= mostOpen {
		out.Messages = append(out.Messages, live[0].Message)
		s.retire(1)
	}
	s.open = append(s.open, o)
	out.Events = append(out.Events, event)
}

// live gives the messages whose life is open.
func (s *side) live() []open { return s.open[s.head:] }

// retire drops the oldest n. What is dropped is moved over only when it is half
// of all, so that a message costs the same however many are open.
func (s *side) retire(n int) {
	clear(s.open[s.head : s.head+n])
	if s.head += n; s.head > len(s.open)/2 {
		n := copy(s.open, s.open[s.head:])
		clear(s.open[n:])
		s.open, s.head = s.open[:n], 0
	}
}

func rowOf(o *open) int {
	if o.Mode == machine.ModeNotify {
		return notifyRow
	}
	return reliableRow
}

// ack notes which of this side's ids an ack of the other side, or the header of
// a Notify, names by its documented meaning as it passes the tap: last, the id
// that it answers, and last-1-i for each bit i. A Notify that is left behind
// without being named can no longer be.
func (s *side) ack(d *machine.Datagram, m *wire.Message, which int, cause uint16, out *machine.Effects) {
	r := &s.rows[which]
	if !r.began {
		return
	}
	last := seq.Bits16.Unwrap(uint32(m.Last), r.newest)
	answers := seq.Bits16.Unwrap(uint32(cause), r.newest)
	live := s.live()
	for i := range live {
		o := &live[i]
		if o.Acked != machine.Unanswered || rowOf(o) != which {
			continue
		}
		event := machine.Event{
			Kind: machine.EventAcked, Side: o.From, Certainty: machine.Likely, Sequence: o.Sequence, Sequence64: o.Sequence64,
			At: d.At, Ref: d.Ref, By: d.Ref, About: o.Frames[0], RTT: -1,
		}
		switch behind := last - o.Sequence64; {
		case behind == 0 || o.Sequence64 == answers:
		case behind >= 1 && behind <= 16 && m.AckBits>>(behind-1)&1 == 1:
			event.Bit = uint8(behind - 1)
		case which == notifyRow && behind > notifyWindow:
			o.Acked, o.AckedAt, o.AckedBy = machine.No, d.At, d.Ref
			event.Kind = machine.EventLost
			out.Events = append(out.Events, event)
			continue
		default:
			continue
		}
		o.Acked, o.AckedAt, o.AckedBy = machine.Yes, d.At, d.Ref
		s.acked++
		s.rtt += d.At.Sub(o.last)
		out.Events = append(out.Events, event)
	}
}

// sweep tells the messages of which nothing more is expected.
func (t *Tracker) sweep(now machine.Instant, out *machine.Effects) {
	for i := range t.sides {
		s := &t.sides[i]
		live, n := s.live(), 0
		for n < len(live) && live[n].Acked != machine.Unanswered && now.Sub(live[n].last) > settled {
			out.Messages = append(out.Messages, live[n].Message)
			n++
		}
		if n > 0 {
			s.retire(n)
		}
	}
}

// Finish tells the messages whose life is still open.
func (t *Tracker) Finish(out *machine.Effects) {
	for i := range t.sides {
		s := &t.sides[i]
		for j := range s.live() {
			out.Messages = append(out.Messages, s.live()[j].Message)
		}
		s.open, s.head = nil, 0
	}
}

// Inspect draws the messages of a side that wait for an ack, as far as acks
// have passed the tap.
func (t *Tracker) Inspect(which machine.Side, v *machine.View) {
	s := &t.sides[which]
	waiting := 0
	for i := range s.live() {
		if o := &s.live()[i]; o.Acked == machine.Unanswered && o.Mode != machine.ModeNotify {
			waiting++
		}
	}
	v.Gauges = append(v.Gauges,
		machine.Gauge{Name: "reliable messages not acked at the tap", Value: float64(waiting), Unit: "messages", Grade: machine.Certain},
		machine.Gauge{Name: "copies sent again", Value: float64(s.resends), Unit: "packets", Grade: machine.Certain},
	)
}

// Summary gives the figures of a side.
func (t *Tracker) Summary(which machine.Side) machine.Summary {
	s := &t.sides[which]
	sum := machine.Summary{Packets: s.packets, Bytes: s.bytes, Acked: s.acked, NeverAcked: -1, Loss: -1, RTT: -1, WireRTT: -1, Resends: s.resends}
	if s.acked > 0 {
		sum.WireRTT = s.rtt / time.Duration(s.acked)
	}
	return sum
}

// Learned gives what was known beforehand: the tracker learns nothing of its own.
func (t *Tracker) Learned() machine.Facts { return t.facts }

// Clone gives an independent copy.
func (t *Tracker) Clone() machine.Tracker {
	c := *t
	for i := range c.sides {
		// The bytes of messages are never changed: copies may share them.
		c.sides[i].open, c.sides[i].head = slices.Clone(t.sides[i].live()), 0
	}
	return &c
}

// Size gives the bytes of a clone, about.
func (t *Tracker) Size() int {
	n := int(unsafe.Sizeof(*t))
	for i := range t.sides {
		n += len(t.sides[i].live()) * int(unsafe.Sizeof(open{}))
	}
	return n
}
