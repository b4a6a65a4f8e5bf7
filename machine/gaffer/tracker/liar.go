package tracker

import (
	"slices"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// A single header can be wrong: damaged, or built from a buffer that is half updated. What it
// says of packets that did not pass the tap is believed when the next header does not contradict
// it. Else that one header is reported, and not the headers behind it.

// aheadHeader is a header whose ack is newer than all packets of the peer that had passed. The
// capture may lack them, or the header is wrong.
type aheadHeader struct {
	packet sighting
	claims gaffer.Claims
	number int64 // of the packet with the header
}

// aheadMost is how many headers in a row are kept back because their acks are ahead of the peer.
// Source: bound, the headers that are kept back
const aheadMost = 16

// unseenClaim is a packet that did not pass the tap and that a header names for the first time.
// The capture may lack it, or the header is wrong.
type unseenClaim struct {
	sequence  uint32
	at        machine.Instant
	ref       machine.Ref
	certainty machine.Certainty // of the finding that the capture lacks it
	refuted   bool              // a later header showed that its header was wrong
}

// unseenMost is how many packets that did not pass the tap wait for the next header.
// Source: bound, the packets of a header that did not pass
const unseenMost = 64

// takeHeader processes a header. It keeps one back whose ack is ahead of the peer. The peer, or the
// next header of the side, then shows whether it is right.
func (t *Tracker) takeHeader(s, peer *side, p *sighting, c gaffer.Claims, number int64, out *machine.Effects) {
	h := &s.headers
	if s.Near {
		missing := h.count > 0 && h.number < number-1 && (s.sent.top64 == number-1 || !s.mayStepOver())
		h.lacking, h.number = h.lacking || missing, max(h.number, number)
	}
	if len(h.ahead) > 0 && number > h.ahead[len(h.ahead)-1].number {
		t.settleAhead(s, peer, c, out)
	}
	if t.rules.Distance(c.Newest, peer.sent.top) > 0 && h.opened && peer.Met && t.isUnsent(peer, c) &&
		len(h.ahead) < aheadMost {
		h.ahead = append(h.ahead, aheadHeader{*p, c, number})
		t.claimEarly(s, peer, p, c)
		return
	}
	waiting := len(h.unseen)
	t.applyHeader(s, peer, p, c, number, out)
	if waiting > 0 {
		t.settleUnseen(s, peer, p.ref, out)
	}
}

// isUnsent reports whether the peer has not sent what a header acks yet, as far as the tap shows. The
// ack is ahead of all packets of the peer that passed.
func (t *Tracker) isUnsent(peer *side, c gaffer.Claims) bool {
	return !c.Nothing(t.rules) && !peer.earlier.Has(c.Newest)
}

// claimEarly keeps the packets of a header that were not sent yet, until they pass.
func (t *Tracker) claimEarly(s, peer *side, p *sighting, c gaffer.Claims) {
	c.Each(t.rules, func(q uint32) {
		if number := peer.unwrap(q); number > peer.sent.top64 && len(s.headers.claimed) < claimedMost {
			s.headers.claimed = append(s.headers.claimed, earlyClaim{number, p.at, p.ref})
		}
	})
}

func (t *Tracker) applyHeader(s, peer *side, p *sighting, c gaffer.Claims, number int64, out *machine.Effects) {
	if t.canonical && !s.headers.bare && !c.Names(t.rules, c.Newest) && !c.Nothing(t.rules) {
		e := peer.Sent(c.Newest)
		s.headers.bare = e != nil && e.Flags&gaffer.SentFragmented == 0
	}
	t.weighBurst(peer, c, out)
	if s.Near {
		t.takeNearHeader(s, peer, p, c, out)
	} else {
		t.takeFarHeader(s, peer, p, c, number, out)
	}
}

// settleAhead decides what the headers are that were kept back. Where the next header goes back,
// and the peer has still not sent that packet, the header before was wrong. Where the peer has
// sent it, the header is right.
func (t *Tracker) settleAhead(s, peer *side, next gaffer.Claims, out *machine.Effects) {
	kept := s.headers.ahead[:0]
	for i := range s.headers.ahead {
		h := s.headers.ahead[i]
		ahead := t.rules.Distance(h.claims.Newest, peer.sent.top)
		switch {
		case ahead <= 0 || len(s.headers.ahead) == aheadMost:
			t.applyHeader(s, peer, &h.packet, h.claims, h.number, out)
		case t.rules.Distance(h.claims.Newest, next.Newest) > 0:
			s.headers.claimed = slices.DeleteFunc(s.headers.claimed, func(c earlyClaim) bool { return c.ref == h.packet.ref })
			t.falseAck(s, h.packet.at, h.packet.ref, ahead, out)
		default:
			kept = append(kept, h)
		}
	}
	s.headers.ahead = kept
}

// keepsBack reports whether the header of a frame is kept back.
func (h *headers) keepsBack(ref machine.Ref) bool {
	return slices.ContainsFunc(h.ahead, func(a aheadHeader) bool { return a.packet.ref == ref })
}

// dropAhead forgets a header that was kept back and that is known to be wrong.
func (h *headers) dropAhead(ref machine.Ref) {
	h.ahead = slices.DeleteFunc(h.ahead, func(a aheadHeader) bool { return a.packet.ref == ref })
}

// falseAck reports a header that the next one contradicts, and whose ack was so many numbers ahead
// of the peer's newest packet.
func (t *Tracker) falseAck(s *side, at machine.Instant, ref machine.Ref, ahead int, out *machine.Effects) {
	out.At(at, ref).Report(gaffer.FalseAck, s.side, t.restOnBase(machine.Certain), 0, 0, float64(ahead))
}

// claimsLost takes a packet that a header names and that did not pass the tap.
func (t *Tracker) claimsLost(s, peer *side, u unseenClaim, out *machine.Effects) {
	if len(s.headers.unseen) < unseenMost {
		s.headers.unseen = append(s.headers.unseen, u)
		return
	}
	u.report(peer, out)
}

// report reports that the capture lacks the packet, unless its header was wrong.
func (u *unseenClaim) report(peer *side, out *machine.Effects) {
	if !u.refuted {
		peer.losses.unseenHere()
		out.At(u.at, u.ref).Report(gaffer.CaptureLoss, peer.side, u.certainty, 0, 1)
	}
}

// settleUnseen believes the claims of earlier headers that this one has not taken back.
func (t *Tracker) settleUnseen(s, peer *side, by machine.Ref, out *machine.Effects) {
	kept := s.headers.unseen[:0]
	for i := range s.headers.unseen {
		if u := s.headers.unseen[i]; u.ref == by {
			kept = append(kept, u)
		} else {
			u.report(peer, out)
		}
	}
	s.headers.unseen = kept
}

// settleHeaders believes what no further header can contradict.
func (t *Tracker) settleHeaders(s, peer *side, out *machine.Effects) {
	for i := range s.headers.ahead {
		h := &s.headers.ahead[i]
		t.applyHeader(s, peer, &h.packet, h.claims, h.number, out)
	}
	s.headers.ahead = s.headers.ahead[:0]
	t.settleUnseen(s, peer, 0, out)
}

// takenBack reports whether a header takes back a packet that did not pass the tap, and that only
// the header before named. Then that one was wrong.
func (t *Tracker) takenBack(p *sighting, q uint32, out *machine.Effects) bool {
	s := &t.Sides[p.from]
	i := slices.IndexFunc(s.headers.unseen, func(u unseenClaim) bool { return u.sequence == q })
	if i < 0 {
		return false
	}
	if u := s.headers.unseen[i]; !u.refuted {
		t.falseAck(s, u.at, u.ref, 0, out)
		for k := range s.headers.unseen {
			s.headers.unseen[k].refuted = s.headers.unseen[k].refuted || s.headers.unseen[k].ref == u.ref
		}
	}
	return true
}
