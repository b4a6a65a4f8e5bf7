package lab

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

// meet returns the peer at a place, and creates it if it is new.
func (h *Host) meet(at place) *peer {
	p := h.known[at]
	if p == nil {
		p = &peer{place: at, heard: h.options.Clock.Now()}
		h.known[at] = p
	}
	return p
}

// add creates endpoint n of the host's role.
func (h *Host) add(n int) (*running, error) {
	o := &h.options
	end, err := o.Kit.End(o.Role, n, h.Addr())
	if err != nil {
		return nil, err
	}
	e := &running{End: end, host: h, n: n, name: o.Kit.Name(o.Role, n)}
	e.driver = sim.Driver{
		Endpoint: end.Endpoint, App: end.App, Rand: sim.Rand(o.Seed, fmt.Sprintf("app %v %d", o.Role, n)),
		Refuse: end.Refuse, Chance: h.random, EventDriven: h.rhythm.EventDriven, Owner: e,
	}
	h.ends = append(h.ends, e)
	h.made++
	own := h.Addr()
	if o.Transport == TCP && o.Role == sim.Client {
		own = netip.AddrPort{} // it has no port until it has connected
	}
	for _, line := range e.Log.Opening(own, o.Connect) {
		h.tell(e, o.Clock.Now(), line)
	}
	return e, nil
}

// join connects an end with a peer.
func (h *Host) join(e *running, p *peer) {
	p.end, p.number = e, machine.Peer(len(e.peers))
	e.peers = append(e.peers, p)
	h.tell(e, h.options.Clock.Now(), e.Log.Met(p.number, p.place.addr))
}

// begin creates an endpoint for a peer alone.
func (h *Host) begin(n int, p *peer) error {
	e, err := h.add(n)
	if err == nil {
		h.join(e, p)
	}
	return err
}

// dropIdle drops endpoints whose only peer has been silent for too long. The
// address may be forged, and the host must not send to it forever. A peer that
// returns gets a new endpoint.
func (h *Host) dropIdle(now machine.Instant) {
	if h.rhythm.Shared || h.rhythm.Idle <= 0 || h.options.Role == sim.Client {
		return
	}
	h.ends = slices.DeleteFunc(h.ends, func(e *running) bool {
		p := e.peers[0]
		if now.Sub(p.heard) <= h.rhythm.Idle {
			return false
		}
		h.tell(e, now, e.Log.Final())
		if len(h.past) < maxCounts {
			h.past = append(h.past, e.tally())
		}
		delete(h.known, p.place)
		return true
	})
}

// take passes on what a socket received.
func (h *Host) take(a arrival) error {
	if a.kind == arrivedDeadline {
		for _, e := range h.ends {
			if at, ok := e.Endpoint.Deadline(); !ok || at > h.options.Clock.Now() {
				e.WakeAt(at, ok) // the timer was for an earlier deadline
			} else if err := h.step(e, machine.Wake{}); err != nil {
				return err
			}
		}
		return nil
	}
	from := place{a.from, a.kind != arrivedDatagram}
	p := h.known[from]
	if p == nil {
		if !h.admits(&a) {
			h.turned++
			if a.stream != nil {
				a.stream.close()
			}
			return nil
		}
		p = h.meet(from)
	}
	p.heard = h.options.Clock.Now()
	switch {
	case p.end != nil:
	case h.rhythm.Shared:
		h.join(h.ends[0], p)
	default:
		if err := h.begin(h.made, p); err != nil {
			return err
		}
	}
	switch a.kind {
	case arrivedOpen:
		p.stream = a.stream
		if h.options.Role == sim.Client {
			h.tell(p.end, p.heard, p.end.Log.Opened(a.stream.own()))
		}
		return h.step(p.end, machine.Open{Peer: p.number})
	case arrivedBytes:
		if p.stream == a.stream {
			return h.step(p.end, machine.Bytes{From: p.number, Bytes: a.bytes})
		}
	case arrivedClose:
		if p.stream == a.stream {
			p.stream = nil
			return h.step(p.end, machine.Close{Peer: p.number})
		}
	default:
		return h.step(p.end, p.end.driver.Arrived(machine.Arrive{From: p.number, Bytes: a.bytes}))
	}
	return nil
}

// admits reports whether the host accepts data from an unknown address.
func (h *Host) admits(a *arrival) bool {
	switch {
	case h.options.Role == sim.Client, !h.options.allows(a.from.Addr()):
		return false
	case len(h.known) >= maxPeers, !h.rhythm.Shared && len(h.ends) >= maxEnds:
		return false
	}
	return a.kind != arrivedDatagram || h.options.Kit.Greets(a.bytes)
}
