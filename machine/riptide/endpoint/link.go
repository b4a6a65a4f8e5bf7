package endpoint

import (
	"fmt"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// link is one connection as one side has it. Fields that change together form a group. Sequences
// are unwrapped.
type link struct {
	peer   machine.Peer
	number uint32 // index of this connection among all of the endpoint
	state  linkState
	id     uint16 // the client's

	in     inbox
	out    outbox
	notify notifyState
	beats  heartbeats
	stream stream
}

// inbox is what has arrived of the peer's reliable messages.
type inbox struct {
	receiver riptide.Receiver
	newest   int64 // newest delivered sequence, for events; 0 for none
	answers  int   // Acks sent, as faults count them
}

// notifyState is the state of both sides' notify messages. Sequences begin at 1.
type notifyState struct {
	in     riptide.NotifyReceiver
	out    riptide.NotifySender
	next   int64 // sequence of its own next message
	newest int64 // newest delivered sequence of the peer, for events; 0 for none
	losses riptide.Quality
}

// heartbeats is what heartbeats measure. Either both RTTs are -1 or neither is.
type heartbeats struct {
	rtt, smoothed int   // ms; -1 while unknown
	heard         int64 // when a message last restarted the timeout
	ping          uint8 // id of the next heartbeat
	waiting       uint8 // the ping whose answer counts
	pingAt        int64 // when that one was sent
}

// sample records a new round trip time, in ms.
func (p *heartbeats) sample(rtt int) {
	if p.rtt < 0 {
		p.smoothed = rtt
	} else {
		p.smoothed = riptide.Smooth(p.smoothed, rtt)
	}
	p.rtt = rtt
}

// stream is the connection over TCP. unread holds the message being read and the bytes behind it.
type stream struct {
	open   bool
	asked  bool // a Connect has come
	unread []byte
}

type linkState uint8

const (
	linkConnecting linkState = iota
	linkPending              // waits for a decision or an answer
	linkConnected
	linkClosed
)

func (e *Endpoint) newLink(p machine.Peer) *link {
	e.linkCount++
	first := int64(e.build.FirstSequence)
	b := e.behaviour
	l := &link{
		peer: p, number: e.linkCount,
		in:     inbox{receiver: riptide.NewReceiver(b)},
		out:    outbox{sender: riptide.NewSender(b), next: first, slots: map[uint16]int32{}},
		notify: notifyState{in: riptide.NewNotifyReceiver(b), next: 1},
		beats:  heartbeats{rtt: -1, smoothed: -1, heard: e.clock},
	}
	if e.build.PingStays {
		l.beats.ping = 1
	}
	e.links[p] = l
	return l
}

func (l *link) clone() *link {
	c := *l
	c.in.receiver, c.out, c.notify.in = l.in.receiver.Clone(), l.out.clone(), l.notify.in.Clone()
	c.stream.unread = slices.Clone(l.stream.unread)
	return &c
}

// transmit puts a message on the network.
func (e *Endpoint) transmit(l *link, b []byte) {
	if !e.options.Stream {
		e.out.Send(l.peer, machine.SendDatagram, b)
		return
	}
	if !l.stream.open {
		return
	}
	framed, err := e.codec.AppendFrame(e.buffers.framed[:0], e.codec.Dialect.Prefixes[0], len(b))
	if err != nil {
		return // cannot happen: messages are bounded
	}
	e.buffers.framed = append(framed, b...)
	e.out.Send(l.peer, machine.SendBytes, e.buffers.framed)
}

// write returns a message's bytes, valid until the next call. It fails for a submission that the
// dialect cannot write or that is too large.
func (e *Endpoint) write(m *wire.Message, body []byte, bits int) ([]byte, error) {
	b, err := e.codec.Append(e.buffers.message[:0], m, body, bits)
	e.buffers.message = b
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
	e.emit(l, machine.Event{Kind: machine.EventSent, Channel: channel, RTT: -1})
	return nil
}

// broadcast sends a message to all clients except one. except is Everyone for all clients. Release
// 2.1.0 keeps one message object for all clients, and ORs their sequences into it. A relayed
// message begins with the sequence that it had when it came.
func (e *Endpoint) broadcast(except machine.Peer, channel uint8, m wire.Message, body []byte, bits int) error {
	for _, p := range e.lobby.clients.slots {
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

// sendReliable sends a message under the next sequence. Release 2.1.0 ORs that into the sequence in
// m.
func (e *Endpoint) sendReliable(l *link, channel uint8, m *wire.Message, body []byte, bits int) error {
	sequence := l.out.next
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
		l.out.next++
	}
	e.emit(l, machine.Event{
		Kind: machine.EventSent, Channel: channel, Sequence: uint32(uint16(sequence)),
		Sequence64: sequence, RTT: -1,
	})
	if e.build.OneSequence {
		e.transmit(l, b)
		return nil
	}
	e.try(l, l.out.hold(sequence, channel, b))
	return nil
}

// retry sends a message again, but not within half a round trip of the last time.
func (e *Endpoint) retry(l *link, slot int32) {
	p := &l.out.pending[slot]
	if !p.used {
		return
	}
	half := int64(riptide.ResendUnknown/time.Millisecond) / 2
	if l.beats.smoothed >= 0 {
		half = int64(l.beats.smoothed / 2)
	}
	if p.sentAt+half <= e.clock {
		e.try(l, slot)
		return
	}
	// The library sets a timer here. It has no effect, unless the message was sent in this same tick.
	e.resendLater(l, slot)
}

func (e *Endpoint) resendLater(l *link, slot int32) {
	if e.limit > 0 {
		after := e.options.Resend.after(l.beats.smoothed)
		if f := e.options.Fault.resend; f != nil {
			after = f(after)
		}
		e.schedule(after,
			timer{kind: timerResend, peer: l.peer, link: l.number, slot: slot, at: e.clock, copy: l.out.pending[slot].copy})
	}
}

// try sends a pending message, unless it was sent too often.
func (e *Endpoint) try(l *link, slot int32) {
	p := &l.out.pending[slot]
	over := e.limit > 0 && p.attempts >= e.limit && !e.options.Fault.noLimit
	switch {
	case over && !e.behaviour.DropsConnection:
		e.emit(l, machine.Event{
			Kind: machine.EventLost, Channel: p.channel, Sequence: uint32(uint16(p.sequence)),
			Sequence64: p.sequence, RTT: -1,
		})
		l.out.release(slot)
		return
	case over && !e.options.Limits.Off:
		e.endForQuality(l)
		return
	}
	e.transmit(l, p.data)
	if p.attempts > 0 {
		e.emit(l, machine.Event{
			Kind: machine.EventResent, Channel: p.channel, Sequence: uint32(uint16(p.sequence)),
			Sequence64: p.sequence, RTT: -1,
		})
	}
	p.sentAt = e.clock
	p.attempts++
	e.resendLater(l, slot)
}

// endForQuality ends a connection for its quality. It leaves alone a connection that is not made
// yet.
func (e *Endpoint) endForQuality(l *link) {
	if l.state != linkConnected || e.options.Limits.Off {
		return
	}
	e.close(l, riptide.PoorConnection)
}

// sendAck sends the Ack of a reliable message.
func (e *Endpoint) sendAck(l *link, cause uint16, fresh bool) {
	last, bits := l.in.receiver.Ack()
	m := wire.Message{Type: wire.Ack, Last: last, AckBits: bits, Cause: cause}
	times := 1
	if f := e.options.Fault.ack; f != nil {
		times = f(&m, l.in.answers, fresh)
		l.in.answers++
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

// acked processes an Ack.
func (e *Endpoint) acked(l *link, m *wire.Message) {
	if e.options.Fault.ignoresAcks {
		return
	}
	l.out.sender.Acked(m.Last, m.AckBits, m.Cause, func(id uint16, v riptide.Verdict) {
		slot, ok := l.out.slots[id]
		switch {
		case !ok:
		case v == riptide.Again:
			e.retry(l, slot)
		default:
			e.clear(l, slot)
		}
	})
}

// clear counts a message as delivered.
func (e *Endpoint) clear(l *link, slot int32) {
	p := l.out.pending[slot]
	l.out.release(slot)
	e.emit(l, machine.Event{
		Kind: machine.EventAcked, Channel: p.channel, Sequence: uint32(uint16(p.sequence)),
		Sequence64: p.sequence, RTT: -1,
	})
	if !e.behaviour.QualityLimits {
		return
	}
	e.countOutcome(l, &l.out.sends, l.out.sends.Add(uint8(min(p.attempts, 255))) > e.options.Limits.Sends)
}

// countOutcome counts outcomes in a row that are beyond a limit.
func (e *Endpoint) countOutcome(l *link, q *riptide.Quality, beyond bool) {
	if !beyond {
		q.Row = 0
		return
	}
	if q.Row++; q.Row >= e.options.Limits.Row {
		e.endForQuality(l)
	}
}

// sendNotify sends a notify message, whose header acks the peer's.
func (e *Endpoint) sendNotify(l *link, m *wire.Message, body []byte, bits int) error {
	last, acks := l.notify.in.Header()
	m.Last, m.AckBits, m.Sequence = last, uint16(acks), uint16(l.notify.next)
	if f := e.options.Fault.notify; f != nil {
		f(m)
	}
	b, err := e.write(m, body, bits)
	if err != nil {
		return err
	}
	event := machine.Event{Kind: machine.EventSent, Channel: riptide.ChannelNotify, RTT: -1}
	if !e.bareNotify() {
		event.Sequence, event.Sequence64 = uint32(m.Sequence), l.notify.next
		l.notify.next++
	}
	e.emit(l, event)
	e.transmit(l, b)
	return nil
}

// bareNotify reports whether notify messages are as in the notes: a message id and no more.
func (e *Endpoint) bareNotify() bool { return e.codec.Dialect.BareNotify() && !e.codec.NotifyHeader }

// notified processes the acks in the header of a notify message.
func (e *Endpoint) notified(l *link, m *wire.Message) {
	l.notify.out.Acked(m.Last, uint8(m.AckBits), func(id uint16, f riptide.Fate) {
		event := machine.Event{Kind: machine.EventLost, Channel: riptide.ChannelNotify, Sequence: uint32(id), RTT: -1}
		event.Sequence64 = l.notify.next - 1 + int64(int16(id-uint16(l.notify.next-1)))
		if f == riptide.Delivered {
			event.Kind = machine.EventAcked
		}
		e.emit(l, event)
		if f == riptide.LostUncounted || l.state == linkClosed {
			return
		}
		lost := uint8(0)
		if f == riptide.Lost {
			lost = 1
		}
		l.notify.losses.Add(lost)
		e.countOutcome(l, &l.notify.losses, e.behaviour.QualityLimits &&
			float64(l.notify.losses.Sum)/riptide.QualityRow > e.options.Limits.Loss)
	})
}
