package judge

import (
	"errors"
	"fmt"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	base "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// UnreadDatagram is a datagram of a side at the tap that is no packet of the profile. Another
// protocol may share the socket, so it is no fault by itself. It was meant as a packet if a
// number is missing in its place.
type UnreadDatagram struct {
	Ref    machine.Ref
	At     machine.Instant
	Length int   // in bytes
	Err    error // what cannot be read in it
	Cut    bool  // the snap length cut it, so it may have been a whole packet
	B      []byte
}

// UnreadSome is how many unread datagrams the judge keeps since a side's last packet.
// Source: bound, the unread datagrams of a side that are kept
const UnreadSome = 4

// PassesOver keeps a datagram that a reference ignores. err says what cannot be read in it.
func (s *Judged) PassesOver(d *machine.Datagram, err error) {
	cut := d.Length > len(d.Bytes)
	s.hides = s.hides || cut
	if s.Near == nil || s.Opinion.Divergence != nil {
		return
	}
	if cut {
		s.cut++
	}
	if len(s.Unread) >= UnreadSome {
		return
	}
	s.Unread = append(s.Unread,
		UnreadDatagram{
			d.Ref, d.At, d.Length, err, cut,
			append([]byte(nil), d.Bytes[:min(len(d.Bytes), 12)]...),
		})
}

// ForgetUnread begins to count unread datagrams anew: a packet of the side passed.
func (s *Judged) ForgetUnread() { s.Unread, s.cut = s.Unread[:0], 0 }

// unread returns how many datagrams since the side's last packet may have been packets.
func (s *Judged) unread() int { return max(len(s.Unread), s.cut) }

// skips returns how many packets, or fragments, are missing before a packet.
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

// leftOut returns the divergence of an unread datagram that took the place of a packet: as
// many are missing as could not be read.
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
	mismatch := machine.Differ("gaffer.sequence", what, fmt.Sprintf("no packet: % x", u.B))
	because := fmt.Sprintf("the datagram is no packet of this profile, and it took the place of %s, which is "+
		"missing", what)
	var parse *base.ParseError
	if errors.As(u.Err, &parse) && parse.Expected != "" {
		found := parse.Found
		if found == "" {
			found = fmt.Sprintf("%d bytes: % x", u.Length, u.B)
		}
		mismatch = machine.Differ("gaffer."+parse.Field, parse.Expected, found)
	}
	return &machine.Divergence{
		Ref: u.Ref, At: u.At, Rule: Unreadable, RestsOn: machine.RestsOnAbsence,
		Mismatch: mismatch, Because: because,
		Frames:    gaffer.Refs(s.frag.ref, d.Ref),
		Reference: what + " is next", Captured: fmt.Sprintf("no packet: % x", u.B),
	}
}

// cutOut reports whether what is missing before a packet may be datagrams that the snap
// length cut.
func (s *Judged) cutOut(p *wire.Packet, due uint32) bool {
	n := s.skips(p, due)
	return n > 0 && n <= s.cut
}

// passage says how a packet of the side passed the tap, or that it may be an unread datagram.
func (s *Judged) passage(r *gaffer.Rules, sequence uint32) passage {
	is := s.Sent.passage(r, sequence)
	if ahead := r.Distance(sequence, s.Sent.top); is == passedAhead && s.Sent.met && ahead <= s.unread() {
		return passedBefore
	}
	return is
}
