package gaffer

import "time"

// opensSession reports whether a datagram begins another connection on the same
// pair of addresses: its side counts from the start again.
func (t *Tracker) opensSession(s *side, p *sighting) bool {
	if !s.met || !p.header {
		return false
	}
	r := t.rules
	behind := r.Distance(s.top, p.sequence)
	if behind <= 0 || int64(p.sequence) >= s.top64 {
		return false
	}
	if r.Claims(p.ack, p.ackBits).Nothing(r) && s.opened && !s.heard.Nothing(r) && s.heard.Width > 0 && p.sequence < 1024 {
		// A packet from before its sender received anything. It is an old one
		// that comes late, or again, if it can be that: the network holds no
		// packet for seconds, and a side at the tap sends none twice.
		e := s.Sent(p.sequence)
		if s.near || e != nil && p.at.Sub(e.At) > longestTransit || e == nil && p.at.Sub(s.openedAt) > longestTransit {
			return true
		}
	}
	return false
}

// longestTransit is longer than any network holds a packet back.
const longestTransit = 3 * time.Second
