package srdppeer

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Errors of Send.
var (
	ErrNotImplemented = errors.New("SRDP_NOTIMP: a flag that is not implemented")
	ErrTooLarge       = errors.New("payload too large")
	ErrIDsInUse       = errors.New("all 32768 packet ids wait for an acknowledgement")
	ErrAddress        = errors.New("address cannot be written")
)

// Service is what the caller asks for one packet.
type Service struct {
	Repeats uint8         // copies to send; 0 sends until one is acknowledged
	Timeout time.Duration // between copies; 0 lets the endpoint decide
	Flags   byte
}

// Hooks receive what an endpoint does. Nil hooks are not called. No hook may
// keep the bytes.
type Hooks struct {
	Transmit func(to netip.AddrPort, datagram []byte)
	Deliver  func(from netip.AddrPort, payload []byte)
	Foreign  func(from netip.AddrPort, datagram []byte)
	Log      func(Entry)
}

// Endpoint is one SRDP endpoint, with any number of peers. Time must not go
// backwards between calls.
type Endpoint struct {
	settings Settings
	own      netip.AddrPort
	hooks    Hooks
	counter  uint16
	inUse    map[uint16]*outgoing // numbered packets without an acknowledgement
	sent     sentQueue            // those of them that were sent, by retry time
	ordered  map[netip.AddrPort]*lane
	slowest  map[netip.Addr]time.Duration // the longest time until an acknowledgement
	recent   map[netip.AddrPort]*recentIDs
	buffer   []byte
}

// outgoing is a packet in the sent queue, or in a lane.
type outgoing struct {
	to        netip.AddrPort
	id        uint16
	numbered  bool
	want      Service
	payload   []byte
	copies    int
	firstSent time.Duration
	wait      time.Duration // between copies: the document's Delta_Time
	retry     time.Duration
	place     int // in the sent queue
}

// lane holds the ordered packets to one receiver. One of them is in flight.
type lane struct {
	flight  *outgoing
	waiting []*outgoing
}

// New returns an endpoint. own is its address, which the headers of the proxied
// form name.
func New(s Settings, own netip.AddrPort, hooks Hooks) *Endpoint {
	return &Endpoint{
		settings: s.withDefaults(), own: own, hooks: hooks, counter: s.Counter & idMask,
		inUse: map[uint16]*outgoing{}, ordered: map[netip.AddrPort]*lane{},
		slowest: map[netip.Addr]time.Duration{}, recent: map[netip.AddrPort]*recentIDs{},
	}
}

// Send sends a packet, or queues it behind an ordered one to the same receiver.
// It copies the payload.
func (e *Endpoint) Send(now time.Duration, to netip.AddrPort, payload []byte, want Service) error {
	s := &e.settings
	if unknown := want.Flags &^ (s.DontDuplicate | s.Order); unknown != 0 {
		return fmt.Errorf("%w: %#02x", ErrNotImplemented, unknown)
	}
	if len(payload) > s.Limit() {
		return fmt.Errorf("%w: expected at most %d bytes, found %d", ErrTooLarge, s.Limit(), len(payload))
	}
	if s.Form == Proxied && !(to.Addr().Is4() && e.own.Addr().Is4()) {
		return fmt.Errorf("%w: the proxied form holds IPv4 only, found %s to %s", ErrAddress, e.own, to)
	}
	o := &outgoing{to: to, want: want, payload: append([]byte(nil), payload...)}
	isOrdered := want.Flags&s.Order != 0
	busy := isOrdered && e.ordered[to] != nil
	if !busy || !s.NumberLate {
		if err := e.number(o); err != nil {
			return err
		}
	}
	switch {
	case busy:
		l := e.ordered[to]
		l.waiting = append(l.waiting, o)
		return nil
	case isOrdered:
		e.ordered[to] = &lane{flight: o}
	}
	e.launch(now, o)
	return nil
}

// number gives a packet the next increment of the counter. It passes over ids
// that still wait for an acknowledgement.
func (e *Endpoint) number(o *outgoing) error {
	if len(e.inUse) > idMask {
		return ErrIDsInUse
	}
	for {
		e.counter = (e.counter + 1) & idMask
		if e.inUse[e.counter] == nil {
			break
		}
	}
	o.id, o.numbered = e.counter, true
	e.inUse[o.id] = o
	return nil
}

// launch sends the first copy of a numbered packet.
func (e *Endpoint) launch(now time.Duration, o *outgoing) {
	o.firstSent, o.wait = now, e.wait(o)
	e.transmit(now, o)
	e.sent.add(o)
}

// transmit sends a copy of a packet, and sets the time of the next one.
func (e *Endpoint) transmit(now time.Duration, o *outgoing) {
	o.copies++
	o.retry = now + o.wait
	kind := Sent
	if o.copies > 1 {
		kind = Resent
	}
	e.log(Entry{
		At: now, Kind: kind, Peer: o.to, ID: o.id, Copy: o.copies, Flags: o.want.Flags, Bytes: len(o.payload), Wait: o.wait,
	})
	e.put(o.to, &packet{id: o.id, flags: o.want.Flags, from: e.own, to: o.to, payload: o.payload})
}

func (e *Endpoint) put(to netip.AddrPort, p *packet) {
	e.buffer = e.settings.write(e.buffer[:0], p)
	if e.settings.Form == Proxied && e.settings.Proxy.IsValid() {
		to = e.settings.Proxy
	}
	if e.hooks.Transmit != nil {
		e.hooks.Transmit(to, e.buffer)
	}
}

// wait returns the time between the copies of a packet. The document has the
// library decide by the longest delay of an acknowledgement from the host. A
// quarter is added, so that an acknowledgement as slow as that still counts.
func (e *Endpoint) wait(o *outgoing) time.Duration {
	if o.want.Timeout > 0 {
		return o.want.Timeout
	}
	if slowest := e.slowest[o.to.Addr()]; slowest > 0 {
		return max(slowest+slowest/4, e.settings.LeastTimeout)
	}
	return e.settings.StartTimeout
}

// Deadline returns when Expire is due. It is false if nothing waits.
func (e *Endpoint) Deadline() (time.Duration, bool) {
	if len(e.sent) == 0 {
		return 0, false
	}
	return e.sent[0].retry, true
}

// Expire resends every packet whose retry time has come, or gives it up after
// its last copy.
func (e *Endpoint) Expire(now time.Duration) {
	for len(e.sent) > 0 && e.sent[0].retry <= now {
		o := e.sent[0]
		if o.want.Repeats > 0 && o.copies >= int(o.want.Repeats) {
			e.log(Entry{
				At: now, Kind: GaveUp, Peer: o.to, ID: o.id, Copy: o.copies, Flags: o.want.Flags, Bytes: len(o.payload),
			})
			e.finish(now, o)
			continue
		}
		e.transmit(now, o)
		e.sent.moved(o)
	}
}

// finish removes a packet from the sent queue, and sends the ordered packet
// behind it.
func (e *Endpoint) finish(now time.Duration, o *outgoing) {
	e.sent.remove(o)
	delete(e.inUse, o.id)
	l := e.ordered[o.to]
	if l == nil || l.flight != o {
		return
	}
	if len(l.waiting) == 0 {
		delete(e.ordered, o.to)
		return
	}
	l.flight, l.waiting = l.waiting[0], l.waiting[1:]
	if !l.flight.numbered {
		_ = e.number(l.flight) // it cannot fail: the id of the packet just removed is free
	}
	e.launch(now, l.flight)
}

// Receive takes a datagram that arrived.
func (e *Endpoint) Receive(now time.Duration, from netip.AddrPort, datagram []byte) {
	p, ours, err := e.settings.read(datagram)
	switch {
	case !ours:
		e.log(Entry{At: now, Kind: Foreign, Peer: from, Bytes: len(datagram)})
		if e.hooks.Foreign != nil {
			e.hooks.Foreign(from, datagram)
		}
		return
	case err != nil:
		e.log(Entry{At: now, Kind: Malformed, Peer: from, Bytes: len(datagram)})
		return
	}
	if e.settings.Form == Proxied {
		from = p.from
	}
	if p.ack {
		e.receiveAck(now, from, p.id)
		return
	}
	e.receiveData(now, from, &p)
}

func (e *Endpoint) receiveAck(now time.Duration, from netip.AddrPort, id uint16) {
	o := e.inUse[id]
	if o == nil || o.copies == 0 || o.to != from {
		e.log(Entry{At: now, Kind: AckUnknown, Peer: from, ID: id})
		return
	}
	e.log(Entry{
		At: now, Kind: Acked, Peer: from, ID: id, Copy: o.copies, Flags: o.want.Flags, Bytes: len(o.payload),
		Wait: now - o.firstSent,
	})
	// With several copies, the acknowledgement may be of any of them, and the
	// time since the first is not the delay of the host.
	if o.copies == 1 {
		e.slowest[from.Addr()] = max(e.slowest[from.Addr()], now-o.firstSent)
	}
	e.finish(now, o)
}

func (e *Endpoint) receiveData(now time.Duration, from netip.AddrPort, p *packet) {
	entry := Entry{At: now, Kind: Received, Peer: from, ID: p.id, Flags: p.flags, Bytes: len(p.payload)}
	e.log(entry)
	entry.Kind = Answered
	e.log(entry)
	e.put(from, &packet{id: p.id, ack: true, from: e.own, to: from})
	if p.flags&e.settings.DontDuplicate != 0 {
		r := e.recent[from]
		if r == nil {
			r = newRecentIDs(e.settings.Remembered)
			e.recent[from] = r
		}
		if !r.add(p.id) {
			entry.Kind = Duplicate
			e.log(entry)
			return
		}
	}
	entry.Kind = Delivered
	e.log(entry)
	if e.hooks.Deliver != nil {
		e.hooks.Deliver(from, p.payload)
	}
}

func (e *Endpoint) log(entry Entry) {
	if e.hooks.Log != nil {
		e.hooks.Log(entry)
	}
}
