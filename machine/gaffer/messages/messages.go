package messages

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/schema"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Options set up the messages of a reference endpoint, in addition to its profile.
type Options struct {
	SendBuffer    int         // messages that may wait for an ack; 0: the profile's, or 1024
	ReceiveBuffer int         // of both ends, at most 32768; 0: the profile's, or 1024
	Budget        int         // bytes of a packet that the section may take; 0: 1000
	FirstID       uint16      // id of the first message
	Resend        wire.Resend // none set: the profile's, or the article's, 0.1 s after the last send
	// NoWindow breaks the rule that the article calls super important: ids are sent
	// whether or not the receiver can buffer them. It is for tests of the result.
	NoWindow bool
	// TypeSlips breaks the range of types: now and then the first copy of a message has the
	// first type that does not exist. It has no effect if each value is a type.
	TypeSlips bool
	// ResendSlip breaks the resend policy now and then.
	ResendSlip ResendSlip
}

// slipEvery is the count of messages from one slip of TypeSlips or ResendSlip to the next.
//
// Source: definition, message-type: each twentieth message has a slip
const slipEvery = 20

// ResendSlip is how one message in twenty is sent again.
type ResendSlip uint8

const (
	ResendRight ResendSlip = iota // by the policy
	ResendEarly                   // the first time after half the wait
	ResendNever                   // never
	ResendStorm                   // in every packet until it is acked
)

// defaults completes the options and returns the profile's schema.
func (o *Options) defaults(m *wire.MessageSection) (messageTypes, error) {
	types, ok := m.Bodies.(messageTypes)
	if m.Form == wire.MessagesNone || !ok {
		return nil, errors.New("message options: expected a profile with a message section and a schema of its messages")
	}
	for kind := range uint32(m.Types) {
		if types.Body(kind) == nil {
			return nil, fmt.Errorf("message options: the schema has no message of type %d, expected all of 0 to %d",
				kind, m.Types-1)
		}
	}
	// half is half the range of message ids. No buffer may have more entries.
	// Source: law, the article "Reliable Ordered Messages": half the range of 16-bit ids
	const half = 1 << (wire.MessageIDBits - 1)
	for _, d := range []struct {
		field          *int
		profile, value int
	}{{&o.SendBuffer, m.SendQueue, 1024}, {&o.ReceiveBuffer, m.ReceiveQueue, 1024}, {&o.Budget, 0, 1000}} {
		if *d.field == 0 {
			*d.field = d.profile
		}
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.ReceiveBuffer > half || o.SendBuffer > half {
		return nil, fmt.Errorf("message options: buffers of %d and %d, expected at most half the range of ids, %d",
			o.SendBuffer, o.ReceiveBuffer, half)
	}
	if !o.Resend.IsSet() {
		o.Resend = m.Resend
	}
	if !o.Resend.IsSet() {
		o.Resend.After = wire.ResendUsual
	}
	return types, nil
}

// messageTypes creates a game's messages: a schema, or a type that has one.
type messageTypes interface {
	wire.Bodies
	Read(kind uint32, r *bits.Reader) (schema.Record, error)
	Body(kind uint32) *schema.Body
}

// Queues is the message system of one endpoint. Its messages are values of a schema.
// That one description writes, reads and measures them.
type Queues struct {
	options Options
	section *wire.MessageSection
	types   messageTypes
	send    Sender
	receive Receiver
	content []Message // of the packet that is being read; ids as on the wire
	ack     uint16    // of that packet, in the simple scheme
	settled []int64
	body    []byte
}

// NewQueues returns empty queues for a profile with a message section.
func NewQueues(o *Options, p *wire.Profile) (*Queues, error) {
	m := &Queues{options: *o, section: &p.Messages}
	types, err := m.options.defaults(&p.Messages)
	if err != nil {
		return nil, err
	}
	m.types = types
	m.send = NewSender(&m.options, gaffer.RulesOf(p).Sent)
	m.receive = NewReceiver(&m.options)
	return m, nil
}

// CanSubmit reports whether the send queue has room for one more message.
func (m *Queues) CanSubmit() bool { return m.send.Next-m.send.Oldest < int64(len(m.send.Queue)) }

// fixed returns the size of a section without messages, in bits.
func (m *Queues) fixed() int {
	n := m.section.CountBits()
	if m.section.Form == wire.MessagesSimple {
		n += 2 * wire.MessageIDBits
	}
	return n
}

// head returns the size of a message without its body, in bits.
func (m *Queues) head() int {
	n := m.section.TypeBits()
	if m.section.Form == wire.MessagesByID {
		n += wire.MessageIDBits
	}
	return n
}

// Submit puts a message into the send buffer. It returns an error if no packet could
// carry the message.
func (m *Queues) Submit(kind uint32, body []byte) error {
	if int64(kind) >= int64(m.section.Types) {
		return fmt.Errorf("message of type %d: expected a type below %d", kind, m.section.Types)
	}
	r := bits.NewReader(body)
	values, err := m.types.Read(kind, &r)
	if err != nil {
		return fmt.Errorf("message of type %d: %w", kind, err)
	}
	size := r.Pos()
	if !r.Align() || r.Left() > 0 {
		return fmt.Errorf("message of type %d: body of %d bytes, expected %d bits and zero padding", kind, len(body), size)
	}
	if at := m.fixed() + m.head(); at+m.measure(at, kind, values) > m.options.Budget*8 {
		return fmt.Errorf("message of type %d: body of %d bits would never fit a packet, expected at most %d with what "+
			"stands before it", kind, size, m.options.Budget*8-at)
	}
	return m.send.Submit(kind, values)
}

// measure returns the size of a body that begins at bit at of the section, in bits. The
// values are of this schema, so writing them never fails.
func (m *Queues) measure(at int, kind uint32, values schema.Record) int {
	n, err := m.types.Body(kind).Measure(at, values)
	if err != nil {
		return math.MaxInt32 // fits nowhere
	}
	return n
}

// Write appends the section of a packet sent now, and returns the ids that it carries.
func (m *Queues) Write(to []byte, ids []int64, now machine.Instant, rtt time.Duration) ([]byte, []int64) {
	s := m.section
	at := m.fixed()
	fits := func(msg *Message) bool {
		n := m.head() + m.measure(at+m.head(), msg.Kind, msg.values)
		if at+n > m.options.Budget*8 {
			return false
		}
		at += n
		return true
	}
	if s.Form == wire.MessagesSimple {
		ids = m.send.PickRun(ids, s.MaxPerPacket, fits)
	} else {
		ids = m.send.Pick(ids, now, rtt, s.MaxPerPacket, fits)
	}
	w := bits.NewWriter(to)
	if s.Form == wire.MessagesSimple {
		w.Bits(uint64(uint16(m.receive.Next-1)), wire.MessageIDBits)
	}
	w.Bits(uint64(len(ids)), s.CountBits())
	if s.Form == wire.MessagesSimple {
		w.Bits(uint64(uint16(m.send.Oldest)), wire.MessageIDBits)
	}
	for _, id := range ids {
		e := m.send.Entry(id)
		if s.Form == wire.MessagesByID {
			w.Bits(uint64(uint16(id)), wire.MessageIDBits)
		}
		w.Bits(uint64(m.typeOf(e)), s.TypeBits())
		_ = m.types.Body(e.Kind).Write(&w, e.values) // never fails: see measure
	}
	w.Align()
	return w.Data(), ids
}

// typeOf returns the type that a packet says a message has.
func (m *Queues) typeOf(e *Queued) uint32 {
	none := uint32(m.section.Types)
	if m.options.TypeSlips && e.Attempts == 0 && e.ID%slipEvery == slipEvery-1 && none>>m.section.TypeBits() == 0 {
		return none
	}
	return e.Kind
}

// Read reads the section of a packet and returns what follows it. If the packet is
// accepted, Deliver enters the messages.
func (m *Queues) Read(payload []byte) (rest []byte, err error) {
	m.content = m.content[:0]
	section, err := m.section.Open(payload, 0)
	if err != nil {
		return nil, err
	}
	m.ack = section.Ack
	var one wire.Message
	for section.Next(&one) {
		if one.End < 0 {
			break
		}
		var r bits.Reader
		r.Reset(payload, one.Body)
		values, err := m.types.Read(one.Type, &r)
		if err != nil {
			return nil, err
		}
		m.content = append(m.content, Message{ID: int64(one.ID), Kind: one.Type, values: values})
	}
	end, err := section.Close()
	if err != nil {
		return nil, err
	}
	return payload[end:], nil
}

// Sent records that a packet with these messages was sent.
func (m *Queues) Sent(packet int64, now machine.Instant, ids []int64) {
	m.send.Sent(packet, now, ids)
}

// Deliver enters the messages of the accepted packet and delivers all messages that are
// now in order.
func (m *Queues) Deliver(now machine.Instant, side machine.Side, out *machine.Effects) {
	simple := m.section.Form == wire.MessagesSimple
	if simple {
		// The ack is older than half a range of ids only if the peer is broken.
		last := m.send.Oldest - 1 + int64(int16(m.ack-uint16(m.send.Oldest-1)))
		m.settled = m.send.AckedUpTo(last, m.settled[:0])
	}
	for _, msg := range m.content {
		msg.ID = m.receive.Unwrap(uint16(msg.ID))
		if simple && msg.ID > m.receive.Next {
			break // the scheme keeps no message that is out of order
		}
		m.receive.Put(msg)
		if simple {
			m.hand(now, side, out)
		}
	}
	m.hand(now, side, out)
}

func (m *Queues) hand(now machine.Instant, side machine.Side, out *machine.Effects) {
	for msg, ok := m.receive.Take(); ok; msg, ok = m.receive.Take() {
		w := bits.NewWriter(m.body[:0])
		_ = m.types.Body(msg.Kind).Write(&w, msg.values) // never fails: the same schema read these values
		m.body = w.Data()
		out.Hand(machine.Delivery{Channel: ChannelMessage, Type: msg.Kind, ID: uint64(msg.ID), Payload: m.body})
		out.Events = append(out.Events, machine.Event{
			Kind: machine.EventDelivered, Side: side, Certainty: machine.Certain,
			Sequence: uint32(uint16(msg.ID)), Sequence64: msg.ID, At: now, RTT: -1,
		})
	}
}

// Acked applies the ack of a packet.
func (m *Queues) Acked(packet int64) {
	if m.section.Form == wire.MessagesByID {
		m.settled = m.send.Acked(packet, m.settled[:0])
	}
}

// Clone returns an independent copy.
func (m *Queues) Clone() *Queues {
	c := *m
	c.send, c.receive = m.send.Clone(), m.receive.Clone()
	c.content, c.body, c.settled = nil, nil, nil
	return &c
}

// Channels of Submit and Delivery.
const (
	// ChannelPacket is a packet's own payload. Submit sends a packet at once, with the
	// messages that are due. An empty payload sends just these and the acks. The ID of a
	// Delivery is the packet's sequence as on the wire.
	// Source: name, a channel of the reference
	ChannelPacket = 0
	// ChannelMessage is a reliable ordered message. Type is the message's type. Payload is
	// its body, as the type's schema serialises it. The message travels with the packets
	// that are sent after it. The ID of a Delivery is the message's, unwrapped.
	// Source: name, a channel of the reference
	ChannelMessage = 1
)
