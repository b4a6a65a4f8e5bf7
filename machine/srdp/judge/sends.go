package judge

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// judgedLane is what a side sends under one pair of addresses. In the direct form it is all that
// the side sends.
type judgedLane struct {
	pair  srdp.Pair
	met   bool
	plain bool   // top is set
	first uint16 // the oldest id of which all since are known: older ones may be from before the capture
	top   uint16 // the newest id sent without SRDP_ORDER
	high  uint16 // the newest id sent
	sent  outbox
	// ordered is the last packet that was sent with SRDP_ORDER, once waits is set.
	ordered uint16
	waits   bool
	// The side began with the id begin, as far as the capture shows. step is the
	// furthest that it has gone on at once.
	begin, step uint16
	round       uint32          // how often the side began anew
	back        machine.Instant // when the first copy of an id that is not the newest last passed
	steps       uint16          // how often the newest id went on since begin
	suspect     *suspicion      // nil while nothing is suspected
	left        *session        // before the side seemed to begin anew; nil if it did, or did not
	// anew is the oldest id that is known to be newer than the capture, once fresh
	// is set.
	anew  uint16
	fresh bool
}

const (
	// reuseAfter is how long after its last copy a packet's id can belong to
	// another packet. By then the counter may have come round, or the sender may
	// have begun anew.
	// Source: measured, TestMarginsSRDP
	reuseAfter = 30 * time.Second
	// timerSlack is how late a side that goes on sending may look at its timer.
	// Source: measured, TestMarginsSRDP
	timerSlack = 100 * time.Millisecond
	// copySlack is how much closer together two copies can pass the tap than they
	// were sent.
	// Source: measured, TestMarginsSRDP
	copySlack = 20 * time.Millisecond
	// restarted is the id below which a sender that begins anew must start. Its
	// old ids must lie more than four times that many ids ahead.
	// Source: measured, TestMarginsSRDP
	restarted uint16 = 64
)

// sends judges a data packet that s sent.
func (s *judged) sends(j *Judge, d *machine.Datagram) *machine.Divergence {
	pk := &j.pk
	l := s.lane(s.pairOf(pk))
	if l == nil {
		s.opinion.Undecided++
		return nil
	}
	own := s.owns(pk.Source)
	strict := own && !s.stream
	var overdue *machine.Divergence
	if strict {
		overdue = s.overdue(d)
	}
	// The packet is recorded even if its sender is overdue: its peer may acknowledge it.
	if v := s.counts(j, l, d, own); overdue == nil {
		return v
	}
	return overdue
}

// owns reports whether data with a source is the side's own, which the tap shows
// as the side sent it.
func (s *judged) owns(source wire.Address) bool {
	if s.stream {
		if !s.named {
			s.named, s.own = true, source // the first packet of a client names it
		}
		return source == s.own
	}
	return s.near && (!s.proxied || source == s.own)
}

// ifClient keeps what the client of a TCP proxy would not have written. The side
// may still prove to be the proxy.
func (s *judged) ifClient(j *Judge, d *machine.Datagram, v *machine.Divergence) *machine.Divergence {
	s.opinion.Undecided++
	if s.asClient == nil {
		s.draw(j, d, v)
		s.asClient = v
	}
	return nil
}

func (s *judged) counts(j *Judge, l *judgedLane, d *machine.Datagram, own bool) *machine.Divergence {
	pk := &j.pk
	hash := machine.Digest(0, d.Bytes)
	e := l.sent.find(pk.ID)
	if e != nil && d.At.Sub(e.lastAt) >= reuseAfter {
		e = nil
	}
	if e != nil && e.hash == hash {
		if e.round != l.round {
			s.opinion.Undecided++ // it was sent before the side began anew
			return nil
		}
		v := s.repeats(j, l, d, e, own)
		if own && v == nil {
			v = s.alive(e.at)
		}
		s.draw(j, d, v)
		if e.copies == 1 && own && !e.ordered && !e.behind && e.at.Sub(j.began) > d.At.Sub(e.at)+patience {
			l.isNew(pk.ID) // an earlier copy would have passed in the capture
		}
		e.lastAt, e.lastRef = d.At, d.Ref
		e.copies++
		return v
	}
	v := s.goesOn(l, pk.ID, d.At)
	if e != nil && e.round == l.round {
		reuse := machine.Diverge(d, IDReuse, machine.RestsOnOwn, machine.Differ("srdp.packet_id", "another id", pk.ID),
			fmt.Sprintf("packet %d was sent before with other content", pk.ID), e.ref)
		if s.stream {
			return reuse
		}
		s.suspects(j, l, d, reuse)
	}
	if !own && (s.near || s.stream) {
		s.opinion.Undecided++
		s.others = true
	}
	// An ordered packet has its number when it is submitted, and may leave later. A packet that
	// is older than the capture was first sent before it.
	ordered := pk.Flags&j.config.Profile.Order != 0
	behind := l.plain && !newer(pk.ID, l.top)
	if behind && l.suspect == nil && pk.ID < restarted && (l.top-pk.ID)&0x7fff > 4*restarted {
		l.met, l.plain, behind = false, false, false // it has begun anew
		s.releases(d.At)
	}
	if behind && own && !ordered && e == nil && newer(pk.ID, l.first) {
		back := machine.Diverge(d, Sequence, machine.RestsOnAbsence,
			machine.Differ("srdp.packet_id", fmt.Sprintf("newer than %d", l.top), pk.ID),
			"a sender numbers its packets upwards", s.last)
		switch {
		case s.stream:
			v = s.ifClient(j, d, back)
		case l.fresh && newer(pk.ID, l.anew):
			s.suspects(j, l, d, back)
		default:
			s.opinion.Undecided++ // it may be from before the capture
		}
	}
	if !ordered && !behind && d.At.Sub(j.began) > max(joinSlack, s.longest+s.longest/4) {
		l.isNew(pk.ID)
	}
	if !l.met {
		l.met, l.first, l.high, l.begin = true, pk.ID, pk.ID, pk.ID
	}
	if newer(pk.ID, l.high) {
		l.high = pk.ID
		l.steps = min(l.steps+1, 1<<14)
	}
	if ordered {
		l.ordered, l.waits = pk.ID, true
	} else if !behind {
		l.plain, l.top = true, pk.ID
	}
	e = l.keep(pk.ID)
	e.hash, e.ref, e.lastRef, e.at, e.lastAt, e.copies = hash, d.Ref, d.Ref, d.At, d.At, 1
	e.ordered, e.behind, e.round = ordered, behind, l.round
	return v
}

// keep records a packet under its id, in place of an older one. It forgets the oldest of many. The caller fills it.
func (l *judgedLane) keep(id uint16) *outgoing {
	l.sent.drop(id)
	for l.sent.places.Len() >= keptMost {
		if oldest := l.sent.dropOldest(); newer(oldest, l.first) {
			l.first = oldest
		}
	}
	return l.sent.add(id)
}

// repeats judges another copy of a packet.
func (s *judged) repeats(j *Judge, l *judgedLane, d *machine.Datagram, e *outgoing, own bool) *machine.Divergence {
	id := j.pk.ID
	switch {
	case own && s.stream:
		return s.ifClient(j, d, machine.Diverge(d, RepeatOnStream, machine.RestsOnOwn,
			machine.Differ("srdp.packet_id", "no copy", id), "over TCP nothing is sent again: the proxy does", e.ref))
	case !own:
		s.opinion.Undecided++
		return nil
	case e.acks > 0 && (s.readTo > e.ackPlace || d.At.Sub(e.ackedAt) > readSlack):
		return machine.Diverge(d, RepeatAfterAck, machine.RestsOnPeer, machine.Differ("srdp.packet_id", "no copy", id),
			fmt.Sprintf("the acknowledgement of packet %d came %.0f ms before the packet was sent again, and what came "+
				"after it "+
				"was read", id, machine.Milliseconds(d.At.Sub(e.ackedAt))), e.lastRef, e.ackRef)
	case e.ordered && l.waits && l.ordered != id:
		frames := []machine.Ref{e.lastRef}
		if next := l.sent.find(l.ordered); next != nil {
			frames = append(frames, next.ref)
		}
		return machine.Diverge(d, OutOfOrder, machine.RestsOnOwn,
			machine.Differ("srdp.packet_id", fmt.Sprintf("%d, or a newer one", l.ordered), id),
			fmt.Sprintf("ordered packet %d was sent since, so packet %d had been acknowledged or given up by then", l.ordered,
				id), frames...)
	}
	return s.interval(d, id, e)
}

// interval compares the time since the last copy of a packet with the times before: a packet has
// one interval. A copy is late if the side looked at its timer late. What the side sends in
// between shows that it did look.
func (s *judged) interval(d *machine.Datagram, id uint16, e *outgoing) *machine.Divergence {
	gap := d.At.Sub(e.lastAt)
	s.longest = max(s.longest, gap)
	least, most := s.spoke.Sub(e.lastAt)-timerSlack, gap+copySlack
	was := [2]time.Duration{e.least, e.most}
	e.least = max(e.least, least)
	if e.most == 0 || most < e.most {
		e.most = most
	}
	if e.least <= e.most {
		return nil
	}
	rule, expected := ResendEarly, fmt.Sprintf("at least %.0f ms after the last copy", machine.Milliseconds(was[0]))
	if least > was[1] {
		rule, expected = ResendLate, fmt.Sprintf("at most %.0f ms after the last "+
			"copy", machine.Milliseconds(was[1]+timerSlack))
	}
	return machine.Diverge(d, rule, machine.RestsOnAbsence,
		machine.Differ("srdp.packet_id", expected, fmt.Sprintf("after %.0f ms", machine.Milliseconds(gap))),
		fmt.Sprintf("the copies of packet %d do not follow each other at one interval, though this side was not held up", id),
		e.ref, e.lastRef)
}

// never reports whether no packet of an id was sent since the capture began.
func (l *judgedLane) never(id uint16) bool {
	return l.met && newer(id, l.first) && l.sent.find(id) == nil
}

// marked judges bytes that are no packet: data whose id has the mark of acknowledgements, since
// its sender counts on behind 15 bits. Others on this port can send anything. Only such a
// sender goes on with the next number.
func (s *judged) marked(j *Judge, d *machine.Datagram) *machine.Divergence {
	p, pk := &j.config.Profile, &j.pk
	at := p.HeaderLen() - 1
	if !pk.Ack || pk.Command != p.DataCommand || p.DataCommand == p.AckCommand || len(d.Bytes) <= at ||
		p.UnknownFlags(d.Bytes[at]) != 0 {
		return nil
	}
	l := s.known(s.pairOf(pk))
	if l == nil || l.high < wire.AckMark-markedNear || int(pk.ID)+wire.AckMark-int(l.high) > int(markedNear) {
		return nil
	}
	e := l.sent.find(l.high)
	if e == nil {
		return nil // it is too long ago
	}
	return machine.Diverge(d, IDRange, machine.RestsOnOwn,
		machine.Differ("srdp.packet_id", fmt.Sprintf("an id of 15 bits: after %d comes 0", wire.AckMark-1),
			uint32(pk.ID)|wire.AckMark), "the top bit of the id is the mark of acknowledgements, and this is data", e.ref)
}

// markedNear is how many ids the newest id may lie before the end of the 15-bit
// range. A marked number may follow the newest id by as many.
// Source: measured, TestMarginsSRDP
const markedNear uint16 = 64

// newer reports whether id a is newer than b, modulo 32768.
func newer(a, b uint16) bool { return (a-b)&0x7fff != 0 && (a-b)&0x7fff < 0x4000 }
