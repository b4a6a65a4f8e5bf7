package gaffer

import (
	"errors"
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// MessageOptions set up the messages of a reference endpoint, beside what the
// profile says of them.
type MessageOptions struct {
	SendBuffer    int    // messages that may wait for an ack; 0 is the profile's, or 1024
	ReceiveBuffer int    // of both ends, at most 32768; 0 is the profile's, or 1024
	Budget        int    // bytes of a packet that the section may take; 0 is 1000
	FirstID       uint16 // id of the first message
	Resend        Resend // the zero value is the article's: 0.1 s after it was last sent
	// NoWindow breaks the rule that the article calls super important: ids go
	// out whether or not the receiver can buffer them. For tests of what then
	// happens.
	NoWindow bool
}

func (o *MessageOptions) defaults(m *wire.MessageSection) error {
	if m.Form == wire.MessagesNone || m.Bodies == nil {
		return errors.New("message options: expected a profile with a message section and the bodies of its messages")
	}
	const half = 1 << (idBits - 1)
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
		return fmt.Errorf("message options: buffers of %d and %d, expected at most half the range of ids, %d", o.SendBuffer, o.ReceiveBuffer, half)
	}
	if o.Resend == (Resend{}) {
		o.Resend.After = 100 * time.Millisecond
	}
	return nil
}

// messages is the message system of one endpoint.
type messages struct {
	options MessageOptions
	layout  section
	send    messageSender
	receive messageReceiver
	content sectionContent // of the packet that is being read
	section []byte         // its bytes; valid while the packet is handled
	body    []byte
	settled []int64
}

func newMessages(o *MessageOptions, p *wire.Profile) (*messages, error) {
	m := &messages{options: *o, layout: section{&p.Messages}}
	if err := m.options.defaults(&p.Messages); err != nil {
		return nil, err
	}
	m.send = newMessageSender(&m.options, p.SentBuffer)
	m.receive = newMessageReceiver(&m.options)
	return m, nil
}

func (m *messages) canSubmit() bool { return m.send.next-m.send.oldest < int64(len(m.send.queue)) }

// submit measures a message and takes it into the send buffer.
func (m *messages) submit(kind uint32, body []byte) error {
	if int64(kind) >= int64(m.layout.Types) {
		return fmt.Errorf("message of type %d: expected a type below %d", kind, m.layout.Types)
	}
	r := bits.NewReader(body)
	if err := m.layout.Bodies.Skip(kind, &r); err != nil {
		return fmt.Errorf("message of type %d: %w", kind, err)
	}
	size := r.Pos()
	if !r.Align() || r.Left() > 0 {
		return fmt.Errorf("message of type %d: body of %d bytes, expected %d bits and zero padding", kind, len(body), size)
	}
	if most := m.options.Budget*8 - m.layout.fixed() - m.layout.head(); size > most {
		return fmt.Errorf("message of type %d: body of %d bits would never fit a packet, expected at most %d", kind, size, most)
	}
	return m.send.submit(kind, body, size)
}

// write appends the section of a packet sent now and the ids that it carries.
func (m *messages) write(to []byte, ids []int64, now machine.Instant, rtt time.Duration) ([]byte, []int64) {
	o := m.layout
	budget := m.options.Budget*8 - o.fixed()
	if o.Form == wire.MessagesSimple {
		ids = m.send.pickRun(ids, o.head(), budget, o.MaxPerPacket)
	} else {
		ids = m.send.pick(ids, now, rtt, o.head(), budget, o.MaxPerPacket)
	}
	w := bits.NewWriter(to)
	if o.Form == wire.MessagesSimple {
		w.Bits(uint64(uint16(m.receive.next-1)), idBits)
	}
	w.Bits(uint64(len(ids)), o.countBits())
	if o.Form == wire.MessagesSimple {
		w.Bits(uint64(uint16(m.send.oldest)), idBits)
	}
	for _, id := range ids {
		e := m.send.entry(id)
		if o.Form == wire.MessagesByID {
			w.Bits(uint64(uint16(id)), idBits)
		}
		w.Bits(uint64(e.kind), o.typeBits())
		writeBits(&w, e.body, 0, e.bits)
	}
	w.Align()
	return w.Data(), ids
}

func (m *messages) sent(packet int64, now machine.Instant, ids []int64) {
	m.send.sent(packet, now, ids)
}

// read reads the section of a packet, to be entered by deliver if the packet is
// accepted, and gives what follows it.
func (m *messages) read(payload []byte) (rest []byte, err error) {
	if err := m.layout.read(payload, &m.content); err != nil {
		return nil, err
	}
	m.section = payload[:m.content.End]
	return payload[m.content.End:], nil
}

// deliver enters the messages of the accepted packet and hands over all that
// are now in order.
func (m *messages) deliver(now machine.Instant, side machine.Side, out *machine.Effects) {
	c := &m.content
	if m.layout.Form == wire.MessagesSimple {
		// The ack is older than half a range of ids only where the peer is broken.
		last := m.send.oldest - 1 + int64(int16(c.Ack-uint16(m.send.oldest-1)))
		m.settled = m.send.ackedUpTo(last, m.settled[:0])
	}
	for i := range c.Messages {
		s := &c.Messages[i]
		id := m.receive.unwrap(s.ID)
		if m.layout.Form == wire.MessagesSimple && id > m.receive.next {
			break // the scheme keeps nothing that is not in order
		}
		m.body = copyBits(m.body[:0], m.section, s.Body, s.End)
		m.receive.put(id, s.Type, m.body, s.End-s.Body)
		if m.layout.Form == wire.MessagesSimple {
			m.hand(now, side, out)
		}
	}
	m.hand(now, side, out)
}

func (m *messages) hand(now machine.Instant, side machine.Side, out *machine.Effects) {
	for msg, ok := m.receive.take(); ok; msg, ok = m.receive.take() {
		out.Hand(machine.Delivery{Channel: ChannelMessage, Type: msg.kind, ID: uint64(msg.id), Payload: msg.body})
		out.Events = append(out.Events, machine.Event{
			Kind: machine.EventDelivered, Side: side, Certainty: machine.Certain,
			Sequence: uint32(uint16(msg.id)), Sequence64: msg.id, At: now, RTT: -1,
		})
	}
}

// acked takes the ack of a packet.
func (m *messages) acked(packet int64) {
	if m.layout.Form == wire.MessagesByID {
		m.settled = m.send.acked(packet, m.settled[:0])
	}
}

func (m *messages) clone() *messages {
	c := *m
	c.send, c.receive = m.send.clone(), m.receive.clone()
	c.content.Messages, c.section, c.body, c.settled = nil, nil, nil, nil
	return &c
}
