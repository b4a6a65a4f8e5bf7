package judge

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Unreadable is a datagram of a side at the tap that is no packet of the profile.
// Another protocol may share the socket, so that alone is no fault; but one that
// took a number was meant as a packet.
type Unreadable struct {
	Ref machine.Ref
	At  machine.Instant
	Cut bool // the snap length cut it: it may have been whole
	B   []byte
}

// UnreadSome are kept since the last packet.
// Source: bound, the messages that are kept unread
const UnreadSome = 4

// PassesOver notes what a reference passes over.
func (s *Judged) PassesOver(d *machine.Datagram) {
	if s.Near == nil || s.Opinion.Divergence != nil || len(s.Unread) >= UnreadSome {
		return
	}
	s.Unread = append(s.Unread,
		Unreadable{d.Ref, d.At, d.Length > len(d.Bytes), append([]byte(nil), d.Bytes[:min(len(d.Bytes), 12)]...)})
}

// skips returns how many packets are missing before one.
func (s *Judged) skips(p *wire.Packet, due uint32) int {
	if !s.Sent.met || len(s.Unread) == 0 {
		return 0
	}
	if f := &s.frag; f.next > 0 {
		switch {
		case p.Kind == wire.KindFragment && p.Sequence == s.Sent.top:
			return p.FragmentID - f.next
		case p.Sequence == due && (p.Kind != wire.KindFragment || p.FragmentID == 0):
			return f.count - f.next
		}
		return 0
	}
	if p.Kind == wire.KindFragment && p.Sequence == due && s.Sent.met {
		return p.FragmentID
	}
	return s.Rules.Distance(p.Sequence, due)
}

// leftOut finds that what could not be read took the place of a packet: as many
// are missing as were unreadable.
func (s *Judged) leftOut(d *machine.Datagram, p *wire.Packet, due uint32) *machine.Divergence {
	if n := s.skips(p, due); n <= 0 || n != len(s.Unread) {
		return nil
	}
	for _, u := range s.Unread {
		if u.Cut {
			return nil
		}
	}
	u, what := s.Unread[0], fmt.Sprintf("packet %d", due)
	if s.frag.next > 0 {
		what = fmt.Sprintf("fragment %d of packet %d", s.frag.next, s.Sent.top)
	}
	return &machine.Divergence{
		Ref: u.Ref, At: u.At, Rule: "unreadable", Field: "gaffer.sequence", Expected: what,
		Got:       fmt.Sprintf("no packet: % x", u.B),
		Because:   fmt.Sprintf("it is no packet of this profile, and what comes next leaves out just %s", what),
		Frames:    gaffer.Refs(s.frag.ref, d.Ref),
		Reference: what + " is next", Captured: fmt.Sprintf("no packet: % x", u.B),
	}
}

// cutOut reports whether what is missing before a packet may be what the snap
// length cut.
func (s *Judged) cutOut(p *wire.Packet, due uint32) bool {
	cut := 0
	for _, u := range s.Unread {
		if u.Cut {
			cut++
		}
	}
	n := s.skips(p, due)
	return n > 0 && n <= cut
}

// sight is what is known of a packet of the side, with what could not be read.
func (s *Judged) sight(r *gaffer.Rules, sequence uint32) sightOf {
	is := s.Sent.sight(r, sequence)
	if ahead := r.Distance(sequence, s.Sent.top); is == sightAhead && s.Sent.met && ahead <= len(s.Unread) {
		return sightBefore
	}
	return is
}

// misnumbers reports whether it is open what the side sent under which number: at
// the tap it was shown to go wrong in that.
func (s *Judged) misnumbers() bool {
	v := s.Opinion.Divergence
	if v == nil || s.Near == nil {
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
