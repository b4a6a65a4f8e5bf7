package messages

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/schema"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// ErrQueueFull is the error of Submit when the send buffer is full. The application
// must wait for acks.
var ErrQueueFull = errors.New("message send buffer is full")

// Message is one message that waits to be sent or delivered.
type Message struct {
	ID     int64 // unwrapped: the id on the wire is its low 16 bits; -1 for no message
	Kind   uint32
	values schema.Record // the values that its body serialises; never changed
}

// Queued is a message in the send buffer.
type Queued struct {
	Message
	Attempts int
	sentAt   machine.Instant // of the latest attempt
}

// Sender is the sending half of the article's reliable ordered messages. Its send
// buffer is indexed by message id. A map goes from packet sequences to the messages
// that the packets carried.
type Sender struct {
	Queue   []Queued // by id mod len
	Oldest  int64    // oldest unacked id; equal to Next if there is none
	Next    int64    // id of the next message submitted
	window  int64    // entries of the receiver's buffer
	resend  wire.Resend
	slip    ResendSlip
	packets []packetMessages // by packet sequence mod len
}

// packetMessages lists the messages that a packet carried.
type packetMessages struct {
	packet int64 // unwrapped sequence; -1 for none
	ids    []int64
}

// NewSender returns an empty send queue that remembers sentPackets packets.
func NewSender(o *Options, sentPackets int) Sender {
	s := Sender{
		Queue: make([]Queued, o.SendBuffer), window: int64(o.ReceiveBuffer), resend: o.Resend, slip: o.ResendSlip,
		packets: make([]packetMessages, sentPackets), Oldest: int64(o.FirstID), Next: int64(o.FirstID),
	}
	if o.NoWindow {
		s.window = math.MaxInt64 / 2
	}
	for i := range s.Queue {
		s.Queue[i].ID = -1
	}
	for i := range s.packets {
		s.packets[i].packet = -1
	}
	return s
}

// Entry returns the queue's place for a message id.
func (s *Sender) Entry(id int64) *Queued { return &s.Queue[id%int64(len(s.Queue))] }

// Submit puts a message into the send buffer.
func (s *Sender) Submit(kind uint32, values schema.Record) error {
	if s.Next-s.Oldest >= int64(len(s.Queue)) {
		return fmt.Errorf("message %d: %w: %d messages since the oldest unacked one, %d", s.Next, ErrQueueFull,
			len(s.Queue), s.Oldest)
	}
	*s.Entry(s.Next) = Queued{Message: Message{ID: s.Next, Kind: kind, values: values}}
	s.Next++
	return nil
}

// Pick appends to ids the messages of a packet sent now, and returns them. It starts at
// the oldest and takes each message that is due and fits, at most count of them. It
// never takes a message that the receiver could not buffer: its packet would be acked,
// and the message with it. If enough space is left, fits reserves the space of a
// message.
func (s *Sender) Pick(ids []int64, now machine.Instant, rtt time.Duration, count int,
	fits func(*Message) bool,
) []int64 {
	for id := s.Oldest; id < s.Next && id < s.Oldest+s.window && count > 0; id++ {
		e := s.Entry(id)
		if e.ID != id || e.Attempts > 0 && now.Sub(e.sentAt) < s.wait(e, rtt) || !fits(&e.Message) {
			continue
		}
		count--
		ids = append(ids, id)
	}
	return ids
}

// wait returns the time from a message's latest send to the next one.
func (s *Sender) wait(e *Queued, rtt time.Duration) time.Duration {
	w := s.resend.Wait(e.Attempts, rtt)
	if s.slip == ResendRight || e.ID%slipEvery != slipEvery-1 {
		return w
	}
	switch {
	case s.slip == ResendEarly && e.Attempts == 1:
		return w / 2
	case s.slip == ResendNever:
		return math.MaxInt64
	case s.slip == ResendStorm:
		return 0
	}
	return w
}

// PickRun appends to ids the run of messages from the oldest that fits. The simple
// scheme sends that run in every packet.
func (s *Sender) PickRun(ids []int64, count int, fits func(*Message) bool) []int64 {
	for id := s.Oldest; id < s.Next && id < s.Oldest+int64(count) && fits(&s.Entry(id).Message); id++ {
		ids = append(ids, id)
	}
	return ids
}

// Sent records that a packet carried ids.
func (s *Sender) Sent(packet int64, now machine.Instant, ids []int64) {
	for _, id := range ids {
		e := s.Entry(id)
		e.sentAt = now
		e.Attempts++
	}
	c := &s.packets[packet%int64(len(s.packets))]
	c.packet, c.ids = packet, append(c.ids[:0], ids...)
}

// Acked applies the ack of a packet. It appends to ids the messages that this settles,
// and returns them.
func (s *Sender) Acked(packet int64, ids []int64) []int64 {
	c := &s.packets[packet%int64(len(s.packets))]
	if c.packet != packet {
		return ids
	}
	for _, id := range c.ids {
		if e := s.Entry(id); e.ID == id {
			*e = Queued{Message: Message{ID: -1}}
			ids = append(ids, id)
		}
	}
	c.packet = -1
	s.Advance()
	return ids
}

// AckedUpTo settles all messages up to last, as the simple scheme does. It appends them
// to ids, and returns them.
func (s *Sender) AckedUpTo(last int64, ids []int64) []int64 {
	for id := s.Oldest; id <= last && id < s.Next; id++ {
		if e := s.Entry(id); e.ID == id {
			*e = Queued{Message: Message{ID: -1}}
			ids = append(ids, id)
		}
	}
	s.Advance()
	return ids
}

// Advance moves the oldest id past messages that are settled.
func (s *Sender) Advance() {
	for s.Oldest < s.Next && s.Entry(s.Oldest).ID != s.Oldest {
		s.Oldest++
	}
}

// Clone returns an independent copy.
func (s *Sender) Clone() Sender {
	c := *s
	c.Queue = slices.Clone(s.Queue)
	c.packets = slices.Clone(s.packets)
	for i := range c.packets {
		c.packets[i].ids = slices.Clone(c.packets[i].ids)
	}
	return c
}
