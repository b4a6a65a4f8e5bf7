package endpoint

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// arrive takes a datagram. SRDP shares its port with other protocols: arrive
// ignores a datagram that is no packet.
func (e *Endpoint) arrive(now machine.Instant, in machine.Arrive, out *machine.Effects) {
	pk := &e.packet
	if !e.options.Profile.Fits(in.Bytes, len(in.Bytes), pk) {
		e.counts.Foreign++
		return
	}
	from, ok := e.sender(in.From, pk)
	if !ok {
		e.counts.Astray++
		return
	}
	if pk.Ack {
		e.acknowledged(now, from, pk.ID, out)
		return
	}
	e.receive(now, from, in.Bytes[pk.PayloadOffset:], out)
}

// sender returns the peer that sent a packet, which came by the driver's peer
// via. It returns false when the packet is not for this endpoint, or when there
// are too many peers.
func (e *Endpoint) sender(via machine.Peer, pk *wire.Packet) (machine.Peer, bool) {
	if e.options.Profile.Form != wire.Proxied {
		_, ok := e.meet(via)
		return via, ok
	}
	if !e.isFor(pk) {
		return 0, false
	}
	p, known := e.names[pk.Source]
	if known {
		if x := &e.peers[p]; !x.fixed && !e.options.ByProxy {
			x.route = via
		}
		return p, true
	}
	if pk.Ack {
		return 0, false // the endpoint never sent to this address
	}
	// A peer gets the number of the driver's peer that brought its first
	// packet, if that number is free. Without proxies the two numberings are
	// thus the same.
	route := via
	x, ok := e.meet(via)
	if ok && (x.named || e.options.ByProxy && via == e.options.Proxy) {
		via = e.unused()
		if x, ok = e.meet(via); ok && !e.options.ByProxy {
			x.route = route
		}
	}
	if !ok {
		return 0, false
	}
	e.name(via, x, pk.Source)
	return via, true
}

// unused returns a number for a peer: one that is free again, or a new one.
func (e *Endpoint) unused() machine.Peer {
	for n := len(e.free) - 1; n >= 0; n-- {
		p := e.free[n]
		e.free = e.free[:n]
		if !e.peers[p].named {
			return p
		}
	}
	return e.Next()
}

func (e *Endpoint) isFor(pk *wire.Packet) bool {
	if e.accepts != nil {
		return e.accepts(pk)
	}
	return pk.Destination == e.options.Self
}

// receive takes a copy of a data packet. It acknowledges every copy. It hands
// the copy over, unless the flags ask for one delivery or for order.
func (e *Endpoint) receive(now machine.Instant, from machine.Peer, payload []byte, out *machine.Effects) {
	p, x, pk := e.options.Profile, &e.peers[from], &e.packet
	fault := e.options.Fault
	asks := srdp.Promise{Once: pk.Flags&p.DontDuplicate != 0, Ordered: pk.Flags&p.Order != 0}
	if fault.forgets {
		asks = srdp.Promise{}
	}
	fate := x.received.Arrive(&e.options.Rules, pk.ID, asks, srdp.Sum(pk.Flags, payload), now)
	times := 1
	e.answer = p.AckOf(pk)
	if fault.ack != nil {
		times = fault.ack(&e.answer, e.copies, fate)
	}
	e.bytes = p.Append(e.bytes[:0], &e.answer, nil)
	if fault.answer != nil {
		fault.answer(p, e.copies, e.bytes)
	}
	for range times {
		out.Send(x.route, machine.SendDatagram, e.bytes)
	}
	e.copies++

	id64 := int64(pk.ID)
	if x.met {
		id64 = wire.IDs.Unwrap(uint32(pk.ID), x.newest64)
		x.newest64 = max(x.newest64, id64)
	} else {
		x.met, x.newest64 = true, id64
	}
	event := machine.Event{
		Kind: machine.EventReceived, Sequence: uint32(pk.ID), Sequence64: id64, Peer: from,
		Channel: pk.Flags,
	}
	if fate != srdp.Delivered {
		e.counts.Duplicates++
		event.Kind = machine.EventDuplicate
		e.report(now, event, out)
		return
	}
	e.counts.Received++
	e.report(now, event, out)
	out.Hand(machine.Delivery{From: from, Channel: pk.Flags, ID: uint64(pk.ID), Payload: payload})
	e.taken = append(e.taken, pk.Destination)
}
