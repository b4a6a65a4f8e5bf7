package gaffer

import "time"

// longestTransit is longer than any network holds a packet back.
const longestTransit = 3 * time.Second

// opensSession reports whether a datagram, which lies step ahead of the newest
// of its side, begins another connection on the same pair of addresses: the side
// counts from the start again.
func (t *Tracker) opensSession(s *side, p *sighting, step int) bool {
	if p.ackBits != 0 || !p.header || p.sequence >= restartMost || !s.opened {
		return false
	}
	if r := t.rules; !r.Claims(p.ack, p.ackBits).Nothing(r) || s.heard.Nothing(r) || s.heard.Width == 0 {
		return false
	}
	// It is from before its sender received anything, though the sender has. A
	// packet of this connection can be that if it comes late, or again: but the
	// network holds none back for seconds, and past a side at the tap nothing
	// overtakes.
	if e := s.Sent(p.sequence); e != nil {
		return s.near || p.at.Sub(e.At) > longestTransit
	}
	return s.near || step > 0 || p.at.Sub(s.openedAt) > longestTransit
}

// restartMost bounds the sequence numbers with which a new connection is taken to begin.
const restartMost = 1024
