package capture

import (
	"bytes"
	"errors"
)

// Own copies what the decoder owns of p, so that p stays valid when the decoder goes on. What p
// shares with its frame stays shared.
func (p *Packet) Own() {
	if p.Problem != nil {
		var e *DecodeError
		if errors.As(p.Problem, &e) {
			c := *e
			p.Problem = &c
		}
	}
	if p.Quote != nil {
		q := *p.Quote
		p.Quote = &q
		if p.Fragments > 1 {
			q.Payload = bytes.Clone(q.Payload)
		}
	}
	if p.Fragments > 1 {
		p.Payload, p.Joined = bytes.Clone(p.Payload), bytes.Clone(p.Joined)
	}
}
