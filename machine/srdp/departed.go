package srdp

import "github.com/ackscope/ackscope/machine"

// Departed remembers packets that left the queue after several copies, or
// without an acknowledgement, when the endpoint had chosen their timeout. A
// further acknowledgement of such a packet shows that the timeout was too
// short. Departed is indexed by the low bits of the id: a newer packet replaces
// an older one there.
type Departed []Departure

// Departure is one packet that Departed remembers.
type Departure struct {
	peer machine.Peer
	id   uint16
	live bool
}

// Note records a packet that leaves the queue.
func (d *Departed) Note(s *Sent, acknowledged bool) {
	if !s.Adapts || acknowledged && s.Copies == 1 {
		return
	}
	if *d == nil {
		*d = make(Departed, departures)
	}
	(*d)[s.ID%departures] = Departure{s.Peer, s.ID, true}
}

// Take reports whether a packet is remembered, and forgets it.
func (d Departed) Take(peer machine.Peer, id uint16) bool {
	if d == nil {
		return false
	}
	e := &d[id%departures]
	if !e.live || e.peer != peer || e.id != id {
		return false
	}
	*e = Departure{}
	return true
}
