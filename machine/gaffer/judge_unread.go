package gaffer

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// unreadable is a datagram of a side at the tap that is no packet of the profile.
// Another protocol may share the socket, so that alone is no fault; but one that
// took a number was meant as a packet.
type unreadable struct {
	ref machine.Ref
	at  machine.Instant
	cut bool // the snap length cut it: it may have been whole
	b   []byte
}

// unreadSome are kept since the last packet.
const unreadSome = 4

// passesOver notes what a reference passes over.
func (s *judged) passesOver(d *machine.Datagram) {
	if s.near == nil || s.opinion.Divergence != nil || len(s.unread) >= unreadSome {
		return
	}
	s.unread = append(s.unread, unreadable{d.Ref, d.At, d.Length > len(d.Bytes), append([]byte(nil), d.Bytes[:min(len(d.Bytes), 12)]...)})
}

// skips gives how many packets are missing before one.
func (s *judged) skips(p *wire.Packet, due uint32) int {
	if !s.sent.met || len(s.unread) == 0 {
		return 0
	}
	if f := &s.frag; f.next > 0 {
		switch {
		case p.Kind == wire.KindFragment && p.Sequence == s.sent.top:
			return p.FragmentID - f.next
		case p.Sequence == due && (p.Kind != wire.KindFragment || p.FragmentID == 0):
			return f.count - f.next
		}
		return 0
	}
	if p.Kind == wire.KindFragment && p.Sequence == due && s.sent.met {
		return p.FragmentID
	}
	return s.rules.Distance(p.Sequence, due)
}

// leftOut finds that what could not be read took the place of a packet: as many
// are missing as were unreadable.
func (s *judged) leftOut(d *machine.Datagram, p *wire.Packet, due uint32) *machine.Divergence {
	if n := s.skips(p, due); n <= 0 || n != len(s.unread) {
		return nil
	}
	for _, u := range s.unread {
		if u.cut {
			return nil
		}
	}
	u, what := s.unread[0], fmt.Sprintf("packet %d", due)
	if s.frag.next > 0 {
		what = fmt.Sprintf("fragment %d of packet %d", s.frag.next, s.sent.top)
	}
	return &machine.Divergence{
		Ref: u.ref, At: u.at, Rule: "unreadable", Field: "gaffer.sequence", Expected: what, Got: fmt.Sprintf("no packet: % x", u.b),
		Because: fmt.Sprintf("it is no packet of this profile, and what comes next leaves out just %s", what), Frames: refs(s.frag.ref, d.Ref),
		Reference: what + " is next", Captured: fmt.Sprintf("no packet: % x", u.b),
	}
}

// cutOut reports whether what is missing before a packet may be what the snap
// length cut.
func (s *judged) cutOut(p *wire.Packet, due uint32) bool {
	cut := 0
	for _, u := range s.unread {
		if u.cut {
			cut++
		}
	}
	n := s.skips(p, due)
	return n > 0 && n <= cut
}

// sight is what is known of a packet of the side, with what could not be read.
func (s *judged) sight(r *Rules, sequence uint32) sightOf {
	is := s.sent.sight(r, sequence)
	if ahead := r.Distance(sequence, s.sent.top); is == sightAhead && s.sent.met && ahead <= len(s.unread) {
		return sightBefore
	}
	return is
}

// misnumbers reports whether it is open what the side sent under which number: at
// the tap it was shown to go wrong in that.
func (s *judged) misnumbers() bool {
	v := s.opinion.Divergence
	if v == nil || s.near == nil {
		return false
	}
	switch v.Rule {
	case "sequence", "sequence-reuse", "fragments", "unreadable":
		return true
	}
	return false
}

// restsOnNumbers reports whether a divergence follows from what the peer sent
// under which number.
func restsOnNumbers(v *machine.Divergence) bool {
	switch v.Rule {
	case "ack-never-arrived", "ack-unsent", "ack-order", "ack-without-bit", "ack-omitted":
		return true
	}
	return false
}
