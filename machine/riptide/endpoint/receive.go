package endpoint

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	base "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// arrive processes a datagram from the network. It ignores one that it cannot read, as the library
// does.
func (e *Endpoint) arrive(p machine.Peer, b []byte) {
	m := &e.m
	if err := e.codec.Parse(b, len(b), m); err != nil && !errors.Is(err, base.ErrTrailing) {
		return
	}
	l := e.links[p]
	if e.server && m.Type == wire.Connect {
		if l = e.newcomer(p, l); l == nil {
			return
		}
		e.handleConnect(l, e.bodyOf(b))
		return
	}
	if l == nil || l.state == linkClosed || !e.running {
		return
	}
	switch {
	case m.Type == wire.Ack || m.Type == wire.AckExtra:
		e.acked(l, m)
	case m.Type == wire.Notify:
		e.arriveNotify(l, b)
	case m.Type.Reliable():
		e.arriveReliable(l, b)
	case m.Type == wire.Unreliable:
		e.deliver(l, riptide.ChannelUnreliable, 0, b)
	default:
		e.handle(l, b)
	}
}

// newcomer returns a new link for a peer that asks for a connection. It returns nil where the peer
// is known already. Over TCP the link is as old as the stream.
func (e *Endpoint) newcomer(p machine.Peer, l *link) *link {
	known := l != nil
	if e.options.Stream && known {
		known = l.stream.asked
		l.stream.asked = true
	}
	switch {
	case known:
		if e.options.Version.RejectsPending && slices.Contains(e.lobby.pending, p) {
			_ = e.internal(l, wire.Message{Type: wire.Reject, Reason: e.rejectReason(rejectPending), HasReason: true}, nil)
		}
		return nil
	case e.options.Stream:
		return l
	case e.lobby.barred[p]:
		return nil
	}
	return e.newLink(p)
}

// handle processes a message for the library.
func (e *Endpoint) handle(l *link, b []byte) {
	if e.server {
		e.handleServer(l, &e.m)
	} else {
		e.handleClient(l, &e.m, e.bodyOf(b))
	}
}

func (e *Endpoint) arriveReliable(l *link, b []byte) {
	m := &e.m
	gap := int64(int16(m.Sequence - uint16(l.in.newest)))
	event := machine.Event{
		Kind: machine.EventReceived, Channel: riptide.ChannelInternal, Sequence: uint32(m.Sequence),
		Sequence64: l.in.newest + gap, RTT: -1,
	}
	if m.Type.User() {
		event.Channel = riptide.ChannelReliable
	}
	fresh := l.in.receiver.Take(m.Sequence)
	ends := l.in.receiver.Overran && l.state == linkConnected
	if ends && !e.server {
		e.close(l, riptide.PoorConnection) // this closes the socket, so no Ack leaves
	} else if !e.build.OneSequence || m.Type == wire.Welcome {
		e.sendAck(l, m.Sequence, fresh)
	}
	if ends && e.server {
		e.close(l, riptide.PoorConnection)
	}
	if fresh {
		l.in.newest = max(l.in.newest, event.Sequence64)
	} else {
		event.Kind = machine.EventDuplicate
	}
	e.emit(l, event)
	switch {
	case !fresh:
	case m.Type == wire.Reliable:
		e.deliver(l, riptide.ChannelReliable, m.Sequence, b)
	default:
		e.handle(l, b)
	}
}

func (e *Endpoint) arriveNotify(l *link, b []byte) {
	m := &e.m
	if e.bareNotify() {
		e.deliver(l, riptide.ChannelNotify, 0, b)
		return
	}
	e.notified(l, m)
	gap := int64(int16(m.Sequence - uint16(l.notify.newest)))
	event := machine.Event{
		Kind: machine.EventReceived, Channel: riptide.ChannelNotify, Sequence: uint32(m.Sequence),
		Sequence64: l.notify.newest + gap, RTT: -1,
	}
	fresh := l.notify.in.Take(m.Sequence)
	if fresh {
		l.notify.newest = max(l.notify.newest, event.Sequence64)
	} else {
		event.Kind = machine.EventDuplicate
	}
	e.emit(l, event)
	if fresh {
		e.deliver(l, riptide.ChannelNotify, m.Sequence, b)
	}
}

// deliver delivers a user message to the application, or relays it to the other clients.
func (e *Endpoint) deliver(l *link, channel uint8, sequence uint16, b []byte) {
	m := e.m
	body := e.bodyOf(b)
	if e.server && channel != riptide.ChannelNotify && slices.Contains(e.options.Relay, m.MessageID) {
		_ = e.broadcast(l.peer, channel, m, body, m.BodyBits)
		return
	}
	e.out.Hand(machine.Delivery{
		From: l.peer, Channel: channel, Type: uint32(m.MessageID), ID: uint64(sequence),
		Payload: body,
	})
}

// bodyOf returns the body of the message in e.m, shifted to begin at a byte. It is valid until the
// next call.
func (e *Endpoint) bodyOf(b []byte) []byte {
	m := &e.m
	if m.BodyBits <= 0 {
		return nil
	}
	from, shift := m.BodyBit/8, uint(m.BodyBit%8)
	if shift == 0 {
		return b[from:]
	}
	e.buffers.body = e.buffers.body[:0]
	n := (m.BodyBits + 7) / 8
	for i := range n {
		v := uint16(b[from+i])
		if from+i+1 < len(b) {
			v |= uint16(b[from+i+1]) << 8
		}
		e.buffers.body = append(e.buffers.body, byte(v>>shift))
	}
	return e.buffers.body
}

// open records that a stream is open.
func (e *Endpoint) open(p machine.Peer) {
	if !e.options.Stream {
		return
	}
	if e.server {
		if e.links[p] == nil || e.links[p].state == linkClosed {
			e.newLink(p).stream.open = true
		}
		return
	}
	if l := e.links[0]; p == 0 && l != nil && l.state == linkConnecting && !l.stream.open {
		l.stream.open = true
		e.begin()
		e.beat()
	}
}

// closed records that a stream has ended. The library does not notice. What it sends is lost, and
// nothing arrives. A client whose stream never opened counts its attempts nevertheless.
func (e *Endpoint) closed(p machine.Peer) {
	l := e.links[p]
	if l == nil {
		return
	}
	l.stream.open = false
	if !e.server && !e.running && l.state == linkConnecting {
		e.begin()
		e.beat()
	}
}

// read processes bytes of a stream, and the messages that they complete.
func (e *Endpoint) read(p machine.Peer, b []byte) {
	l := e.links[p]
	if l == nil || !l.stream.open {
		return
	}
	l.stream.unread = append(l.stream.unread, b...)
	size, at := e.codec.Dialect.Prefixes[0], 0
	for len(l.stream.unread)-at >= size && l.stream.open {
		n := e.length(l.stream.unread[at:], size)
		if n > e.codec.Dialect.MaxMessage {
			e.close(l, riptide.TransportError)
			return
		}
		if n < 0 {
			n = 0 // ignored, like an empty message
		}
		if len(l.stream.unread)-at-size < n {
			break
		}
		message := l.stream.unread[at+size : at+size+n]
		at += size + n
		if n > 0 {
			e.arrive(p, message)
		}
		if e.links[p] != l {
			return
		}
	}
	l.stream.unread = append(l.stream.unread[:0], l.stream.unread[at:]...)
}

func (e *Endpoint) length(b []byte, size int) int {
	var order binary.ByteOrder = binary.LittleEndian
	if e.codec.BigEndian {
		order = binary.BigEndian
	}
	if size == 2 {
		return int(order.Uint16(b))
	}
	return int(int32(order.Uint32(b)))
}

// close ends a connection without a message to the other end.
func (e *Endpoint) close(l *link, reason uint8) {
	if e.server {
		e.closeServer(l, reason)
	} else {
		e.closeClient(l, reason, nil)
	}
}
