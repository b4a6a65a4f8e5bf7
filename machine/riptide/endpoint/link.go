package endpoint

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// link is one connection as one side has it.
type link struct {
	peer  machine.Peer
	life  uint32 // of this connection among all of the endpoint
	state linkState
	id    uint16 // the client's

	receiver     riptide.Receiver
	sender       riptide.Sender
	notifyIn     riptide.NotifyReceiver
	notifyOut    riptide.NotifySender
	next         int64 // reliable sequence, unwrapped
	nextNotify   int64
	newest       int64 // of the peer, unwrapped: for events
	newestNotify int64

	pending []outgoing
	free    []int32
	slots   map[uint16]int32 // of pending, by sequence

	rtt, smoothed int   // ms; -1 while unknown
	heard         int64 // when the timeout was last put off
	ping          uint8 // of the next heartbeat
	waiting       uint8 // the ping whose answer counts
	pingAt        int64
	sends, losses riptide.Quality

	answers int // Acks sent, as faults count them

	// Over TCP.
	streaming bool
	asked     bool // a Connect has come
	in        []byte
}

type linkState uint8

const (
	linkConnecting linkState = iota
	linkPending              // a decision or an answer is awaited
	linkConnected
	linkClosed
)

// outgoing is a reliable message that is not acked.
type outgoing struct {
	data     []byte
	sequence int64
	channel  uint8
	attempts int
	sentAt   int64
	copy     uint32 // how often the slot was used: timers of an earlier use do not count
	used     bool
}

func (e *Endpoint) newLink(p machine.Peer) *link {
	e.lives++
	first := int64(e.build.FirstSequence)
	b := e.behaviour
	l := &link{
		peer: p, life: e.lives, receiver: riptide.NewReceiver(b), sender: riptide.NewSender(b), notifyIn: riptide.NewNotifyReceiver(b),
		next: first, nextNotify: 1, rtt: -1, smoothed: -1, slots: map[uint16]int32{}, heard: e.clock,
	}
	if e.build.PingStays {
		l.ping = 1
	}
	e.links[p] = l
	return l
}

func (l *link) clone() *link {
	c := *l
	c.receiver, c.sender, c.notifyIn = l.receiver.Clone(), l.sender.Clone(), l.notifyIn.Clone()
	c.pending, c.free, c.slots, c.in = slices.Clone(l.pending), slices.Clone(l.free), maps.Clone(l.slots), slices.Clone(l.in)
	for i := range c.pending {
		c.pending[i].data = slices.Clone(c.pending[i].data)
	}
	return &c
}

// transmit puts a message on the network.
func (e *Endpoint) transmit(l *link, b []byte) {
	if !e.options.Stream {
		e.out.Send(l.peer, machine.SendDatagram, b)
		return
	}
	if !l.streaming {
		return
	}
	framed, err := e.codec.AppendFrame(e.framed[:0], e.codec.Dialect.Prefixes[0], len(b))
	if err != nil {
		return // cannot be: messages are bounded
	}
	e.framed = append(framed, b...)
	e.out.Send(l.peer, machine.SendBytes, e.framed)
}

// write gives a message's bytes, valid until the next call. What is written is
// in its dialect, but for submissions that are too large.
func (e *Endpoint) write(m *wire.Message, body []byte, bits int) ([]byte, error) {
	b, err := e.codec.Append(e.bytes[:0], m, body, bits)
	e.bytes = b
	if err == nil && len(b) > e.codec.Dialect.MaxMessage {
		err = fmt.Errorf("submit: a message of %d bytes, expected at most %d", len(b), e.codec.Dialect.MaxMessage)
	}
	return b, err
}

// internal sends one of the protocol's own unreliable messages.
func (e *Endpoint) internal(l *link, m wire.Message, data []byte) error {
	b, err := e.write(&m, data, 8*len(data))
	if err == nil {
		e.transmit(l, b)
	}
	return err
}

// send sends a user message to one peer.
func (e *Endpoint) send(l *link, channel uint8, m wire.Message, body []byte, bits int) error {
	switch channel {
	case riptide.ChannelReliable:
		return e.sendReliable(l, channel, &m, body, bits)
	case riptide.ChannelNotify:
		return e.sendNotify(l, &m, body, bits)
	}
	b, err := e.write(&m, body, bits)
	if err != nil {
		return err
	}
	e.transmit(l, b)
	e.tell(l, machine.Event{Kind: machine.EventSent, Channel: channel, RTT: -1})
	return nil
}

// broadcast sends a message to all clients but one; Everyone as that one leaves out
// none. Release 2.1.0 keeps one message object for all, into which it ORs the
// sequences; one that is relayed begins with the sequence under which it came.
func (e *Endpoint) broadcast(except machine.Peer, channel uint8, m wire.Message, body []byte, bits int) error {
	for _, p := range e.clients.slots {
		l := e.links[p.peer]
		if !p.used || p.peer == except || l == nil {
			continue
		}
		if channel == riptide.ChannelReliable || channel == riptide.ChannelInternal {
			if err := e.sendReliable(l, channel, &m, body, bits); err != nil {
				return err
			}
			continue
		}
		if err := e.send(l, channel, m, body, bits); err != nil {
			return err
		}
	}
	return nil
}

// sendReliable sends a message under the next sequence, OR-ed into what m has.
func (e *Endpoint) sendReliable(l *link, channel uint8, m *wire.Message, body []byte, bits int) error {
	sequence := l.next
	if e.behaviour.MergedSequences {
		m.Sequence |= uint16(sequence)
	} else {
		m.Sequence = uint16(sequence)
	}
	if f := e.options.Fault.sequence; f != nil {
		m.Sequence = f(m.Sequence)
	}
	b, err := e.write(m, body, bits)
	if err != nil {
		return err
	}
	if !e.build.OneSequence {
		l.next++
	}
	e.tell(l, machine.Event{Kind: machine.EventSent, Channel: channel, Sequence: uint32(uint16(sequence)), Sequence64: sequence, RTT: -1})
	if e.build.OneSequence {
		e.transmit(l, b)
		return nil
	}
	e.try(l, l.hold(sequence, channel, b))
	return nil
}

// hold makes a message pending.
func (l *link) hold(sequence int64, channel uint8, data []byte) int32 {
	slot := int32(len(l.pending))
	if n := len(l.free); n > 0 {
		slot, l.free = l.free[n-1], l.free[:n-1]
	} else {
		l.pending = append(l.pending, outgoing{})
	}
	p := &l.pending[slot]
	*p = outgoing{data: append(p.data[:0], data...), sequence: sequence, channel: channel, copy: p.copy + 1, used: true}
	l.slots[uint16(sequence)] = slot
	return slot
}

// retry sends a message again, but not within half a round trip of the last time.
func (e *Endpoint) retry(l *link, slot int32) {
	p := &l.pending[slot]
	if !p.used {
		return
	}
	half := int64(riptide.ResendUnknown/time.Millisecond) / 2
	if l.smoothed >= 0 {
		half = int64(l.smoothed / 2)
	}
	if p.sentAt+half <= e.clock {
		e.try(l, slot)
		return
	}
	// The library sets a timer that counts for nothing, unless this very tick
	// sent the message.
	e.resendLater(l, slot)
}

func (e *Endpoint) resendLater(l *link, slot int32) {
	if e.limit > 0 {
		after := e.options.Resend.after(l.smoothed)
		if f := e.options.Fault.resend; f != nil {
			after = f(after)
		}
		e.later(after, timer{kind: timerResend, peer: l.peer, life: l.life, slot: slot, at: e.clock, copy: l.pending[slot].copy})
	}
}

// try sends a pending message, unless it was sent too often.
func (e *Endpoint) try(l *link, slot int32) {
	p := &l.pending[slot]
	over := e.limit > 0 && p.attempts >= e.limit && !e.options.Fault.endless
	switch {
	case over && !e.behaviour.DropsConnection:
		e.tell(l, machine.Event{Kind: machine.EventLost, Channel: p.channel, Sequence: uint32(uint16(p.sequence)), Sequence64: p.sequence, RTT: -1})
		l.release(slot)
		return
	case over && !e.options.Limits.Off:
		e.poor(l)
		return
	}
	e.transmit(l, p.data)
	if p.attempts > 0 {
		e.tell(l, machine.Event{Kind: machine.EventResent, Channel: p.channel, Sequence: uint32(uint16(p.sequence)), Sequence64: p.sequence, RTT: -1})
	}
	p.sentAt = e.clock
	p.attempts++
	e.resendLater(l, slot)
}

func (l *link) release(slot int32) {
	p := &l.pending[slot]
	delete(l.slots, uint16(p.sequence))
	p.used = false
	l.free = append(l.free, slot)
}

// poor ends a connection for its quality. One that does not stand yet goes on.
func (e *Endpoint) poor(l *link) {
	if l.state != linkConnected || e.options.Limits.Off {
		return
	}
	e.close(l, riptide.PoorConnection, nil)
}

// answer sends the Ack of a reliable message.
func (e *Endpoint) answer(l *link, cause uint16, fresh bool) {
	last, bits := l.receiver.Ack()
	m := wire.Message{Type: wire.Ack, Last: last, AckBits: bits, Cause: cause}
	times := 1
	if f := e.options.Fault.ack; f != nil {
		times = f(&m, l.answers, fresh)
		l.answers++
	}
	m.Flag, m.HasCause = cause != m.Last, cause != m.Last
	switch d := e.codec.Dialect; {
	case d.AcksUnnamed:
		m.HasCause = false
	case d.SeparateCause && m.Flag:
		m.Type = wire.AckExtra
	case e.build.Cause == wire.CauseAlways:
		m.HasCause = true
	}
	for range times {
		_ = e.internal(l, m, nil)
	}
}

// acked takes an Ack.
func (e *Endpoint) acked(l *link, m *wire.Message) {
	if e.options.Fault.deaf {
		return
	}
	l.sender.Acked(m.Last, m.AckBits, m.Cause, func(id uint16, v riptide.Verdict) {
		slot, ok := l.slots[id]
		switch {
		case !ok:
		case v == riptide.Again:
			e.retry(l, slot)
		default:
			e.clear(l, slot)
		}
	})
}

// clear takes a message for delivered.
func (e *Endpoint) clear(l *link, slot int32) {
	p := l.pending[slot]
	l.release(slot)
	e.tell(l, machine.Event{Kind: machine.EventAcked, Channel: p.channel, Sequence: uint32(uint16(p.sequence)), Sequence64: p.sequence, RTT: -1})
	if !e.behaviour.QualityLimits {
		return
	}
	e.weigh(l, &l.sends, l.sends.Add(uint8(min(p.attempts, 255))) > e.options.Limits.Sends)
}

// weigh counts outcomes in a row that are beyond a limit.
func (e *Endpoint) weigh(l *link, q *riptide.Quality, beyond bool) {
	if !beyond {
		q.Row = 0
		return
	}
	if q.Row++; q.Row >= e.options.Limits.Row {
		e.poor(l)
	}
}

// sendNotify sends a message whose header acknowledges the peer's.
func (e *Endpoint) sendNotify(l *link, m *wire.Message, body []byte, bits int) error {
	last, acks := l.notifyIn.Header()
	m.Last, m.AckBits, m.Sequence = last, uint16(acks), uint16(l.nextNotify)
	if f := e.options.Fault.notify; f != nil {
		f(m)
	}
	b, err := e.write(m, body, bits)
	if err != nil {
		return err
	}
	event := machine.Event{Kind: machine.EventSent, Channel: riptide.ChannelNotify, RTT: -1}
	if !e.bareNotify() {
		event.Sequence, event.Sequence64 = uint32(m.Sequence), l.nextNotify
		l.nextNotify++
	}
	e.tell(l, event)
	e.transmit(l, b)
	return nil
}

// bareNotify reports whether notify messages are as the notes have them: a
// message id and no more.
func (e *Endpoint) bareNotify() bool { return e.codec.Dialect.BareNotify() && !e.codec.NotifyHeader }

// notified takes what the header of a notify message acknowledges.
func (e *Endpoint) notified(l *link, m *wire.Message) {
	l.notifyOut.Acked(m.Last, uint8(m.AckBits), func(id uint16, f riptide.Fate) {
		event := machine.Event{Kind: machine.EventLost, Channel: riptide.ChannelNotify, Sequence: uint32(id), RTT: -1}
		event.Sequence64 = l.nextNotify - 1 + int64(int16(id-uint16(l.nextNotify-1)))
		if f == riptide.Delivered {
			event.Kind = machine.EventAcked
		}
		e.tell(l, event)
		if f == riptide.LostUncounted || l.state == linkClosed {
			return
		}
		lost := uint8(0)
		if f == riptide.Lost {
			lost = 1
		}
		l.losses.Add(lost)
		e.weigh(l, &l.losses, e.behaviour.QualityLimits && float64(l.losses.Sum)/riptide.QualityRow > e.options.Limits.Loss)
	})
}

// sample takes a new round trip time, in ms.
func (l *link) sample(rtt int) {
	if l.rtt < 0 {
		l.smoothed = rtt
	} else {
		l.smoothed = riptide.Smooth(l.smoothed, rtt)
	}
	l.rtt = rtt
}
