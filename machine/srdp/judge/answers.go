package judge

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// arrives records a data packet that passed the tap towards s.
func (s *judged) arrives(a arrival) {
	s.places++
	a.place = s.places
	if !s.strict(a.pair.Destination) {
		return
	}
	if len(s.asked) >= keptMost {
		s.asked = append(s.asked[:0], s.asked[keptMost/2:]...)
		s.before = true
	}
	s.asked = append(s.asked, a)
}

// acknowledges judges an acknowledgement that s sent.
func (s *judged) acknowledges(j *Judge, peer *judged, d *machine.Datagram, pk *wire.Packet) *machine.Divergence {
	id, of := pk.ID, srdp.Pair{}
	if s.proxied {
		of = srdp.Pair{Source: pk.Destination, Destination: pk.Source}
	}
	if !s.strict(pk.Source) {
		s.opinion.Undecided++
		// A peer that numbers its own packets wrongly does not prove what was sent.
		if l := peer.known(of); l != nil && !s.stream && peer.opinion.Divergence == nil && l.never(id) {
			v := machine.Diverge(d, AckUnsent, machine.RestsOnBoth,
				machine.Differ("srdp.packet_id", fmt.Sprintf("an id that was sent, at most %d", l.high), id),
				fmt.Sprintf("no packet of id %d was captured on its way to this side", id), s.last)
			switch {
			case !peer.near && ahead(id, l.first) > shortSession:
				v.Assumed = true // a packet from before the capture would have overtaken as many
				return v
			case !peer.near:
				return s.joins(j, peer, d, v)
			case s.odd == nil:
				// The peer is at the tap, and may itself have sent a wrong id, once.
				if v = s.joins(j, peer, d, v); v != nil {
					s.odd, s.oddID = v, id
				}
			case s.oddID != id:
				return s.odd
			}
		}
		return nil
	}
	k := slices.IndexFunc(s.asked, func(a arrival) bool { return a.id == id && a.pair == of })
	if k < 0 {
		if s.before || s.last == 0 || d.At.Sub(j.began) < timerSlack {
			s.opinion.Undecided++
			return nil // of a packet from before the capture
		}
		return machine.Diverge(d, AckUnasked, machine.RestsOnBoth, machine.Differ("srdp.packet_id", "no acknowledgement", id),
			fmt.Sprintf("every copy of packet %d that was captured on its way to this side was acknowledged before", id), s.last)
	}
	for _, a := range s.asked[:k] {
		if !a.may {
			if v := s.spoilt(a, d); v != nil {
				return v
			}
			v := s.owes(j, a, d, machine.Diverge(d, AckMissing, machine.RestsOnBoth, machine.Differ("srdp.packet_id", a.id, id),
				fmt.Sprintf("packet %d came before packet %d, and each copy is acknowledged", a.id, id), a.ref, s.asked[k].ref))
			if v != nil {
				return v
			}
			break
		}
	}
	s.readTo = s.asked[k].place
	// It may answer a later copy instead. The copy without an acknowledgement is
	// then this one.
	first := s.asked[k]
	for i := k + 1; i < len(s.asked); i++ {
		if a := &s.asked[i]; a.id == id && a.pair == of {
			a.may = a.may || first.may
			a.since, a.spoke = min(a.since, first.since), min(a.spoke, first.spoke)
		}
	}
	s.asked = append(s.asked[:0], s.asked[k+1:]...)
	return nil
}

// misspelt judges bytes that are no packet. They may be the acknowledgement that is due, but
// without the mark in its id, or with its id in the other byte order.
func (s *judged) misspelt(p *wire.Profile, d *machine.Datagram) *machine.Divergence {
	if len(s.asked) == 0 || len(d.Bytes) < 3 || d.Bytes[0] != p.AckCommand || p.AckCommand == p.DataCommand {
		return nil
	}
	a := s.asked[0]
	due := p.Append(nil, &wire.Packet{
		Command: p.AckCommand, Ack: true, ID: a.id, Source: a.pair.Destination,
		Destination: a.pair.Source,
	}, nil)
	if len(due) != len(d.Bytes) || !bytes.Equal(due[3:], d.Bytes[3:]) {
		return nil
	}
	high, low := due[1], due[2]
	var because string
	switch {
	case d.Bytes[1] == low && d.Bytes[2] == high:
		because = "the acknowledgement that is due has its id in the other byte order"
	case d.Bytes[srdp.TopByte(p)] == due[srdp.TopByte(p)]&^0x80 && d.Bytes[3-srdp.TopByte(p)] == due[3-srdp.TopByte(p)]:
		because = "the acknowledgement that is due lacks its mark, the top bit of the id"
	default:
		return nil
	}
	return machine.Diverge(d, AckMark, machine.RestsOnPeer,
		machine.Differ("srdp.packet_id", fmt.Sprintf("%#02x %#02x", high, low),
			fmt.Sprintf("%#02x %#02x", d.Bytes[1], d.Bytes[2])), because, a.ref)
}

// mangled is the last datagram of a side at the tap that is no packet and has the length of an
// acknowledgement.
type mangled struct {
	ref   machine.Ref
	at    machine.Instant
	bytes [3]byte
	id    uint16 // with its mark
	// answers is set where it has the command of acknowledgements.
	answers bool
}

// mangles keeps a datagram of that length.
func (s *judged) mangles(p *wire.Profile, d *machine.Datagram) {
	if s.near && len(d.Bytes) == p.AckLen() && d.Length == len(d.Bytes) && p.AckCommand != p.DataCommand {
		s.mangle = mangled{ref: d.Ref, at: d.At}
		copy(s.mangle.bytes[:], d.Bytes)
		s.mangle.answers = d.Bytes[0] == p.AckCommand
		if s.mangle.id = uint16(d.Bytes[1])<<8 | uint16(d.Bytes[2]); p.LittleEndian {
			s.mangle.id = s.mangle.id>>8 | s.mangle.id<<8
		}
	}
}

// spoilt returns the divergence of a datagram that was sent in the place of a missing
// acknowledgement. It is no packet, but has the command of acknowledgements, or the id.
// Nothing else acknowledges the arrival, and the capture may lack what does.
func (s *judged) spoilt(a arrival, d *machine.Datagram) *machine.Divergence {
	m := &s.mangle
	if m.ref <= a.ref || !m.answers && m.id != a.id|wire.AckMark {
		return nil
	}
	v := machine.Diverge(d, AckMark, machine.RestsOnBoth,
		machine.Differ("srdp.packet_id", machine.Hex(uint64(a.id|wire.AckMark), 4), machine.Hex(uint64(m.id), 4)),
		fmt.Sprintf(
			"it is no packet, and nothing else acknowledges packet %d, which came before others that are acknowledged", a.id),
		a.ref, d.Ref)
	if !m.answers {
		v.Mismatch = machine.Differ("srdp.command", "that of acknowledgements", machine.Hex(uint64(m.bytes[0]), 2))
	}
	v.Ref, v.At = m.ref, m.at
	v.Captured = fmt.Sprintf("no packet: % x", m.bytes)
	v.Reference = fmt.Sprintf("to acknowledge: %d", a.id)
	return v
}

// contradicts returns the divergence of a packet whose command and mark say different things.
func (s *judged) contradicts(p *wire.Profile, d *machine.Datagram, pk *wire.Packet) *machine.Divergence {
	want, what := p.DataCommand, "data"
	if pk.Ack {
		want, what = p.AckCommand, "an acknowledgement"
	}
	return machine.Diverge(d, WrongCommand, machine.RestsOnOwn,
		machine.Differ("srdp.command", machine.Hex(uint64(want), 2), machine.Hex(uint64(pk.Command), 2)),
		fmt.Sprintf("by the top bit of its id the packet is %s, by its command it is not", what), s.last)
}

// overdue looks for a copy that s should have acknowledged long ago.
func (s *judged) overdue(d *machine.Datagram) *machine.Divergence {
	if len(s.asked) == 0 {
		return nil
	}
	a := s.asked[0]
	if a.may || d.At.Sub(a.at) < answerSlack || s.spoke.Sub(a.at) < answerSlack/2 {
		return nil
	}
	return machine.Diverge(d, AckMissing, machine.RestsOnBoth,
		machine.Differ("srdp.ack", "acknowledgement of "+fmt.Sprint(a.id), "data"),
		fmt.Sprintf("packet %d came %.0f ms ago and was not acknowledged", a.id, machine.Milliseconds(d.At.Sub(a.at))), a.ref)
}

// acked records an acknowledgement that passed the tap towards s.
func (s *judged) acked(d *machine.Datagram, pk *wire.Packet) {
	s.places++
	of := srdp.Pair{}
	if s.proxied {
		of = srdp.Pair{Source: pk.Destination, Destination: pk.Source}
	}
	l := s.known(of)
	if l == nil {
		return
	}
	if e := l.sent.find(pk.ID); e != nil {
		if e.acks++; e.acks == 1 {
			if e.copies == 1 {
				s.answered = max(s.answered, d.At.Sub(e.lastAt))
			}
			e.ackedAt, e.ackRef, e.ackPlace = d.At, d.Ref, s.places
		}
	}
}
