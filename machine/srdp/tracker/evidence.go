package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

const (
	// patience is the least time that a sender has after a packet's retry time.
	// Later it counts as having given the packet up.
	// Source: measured, TestMarginsSRDP
	patience = 250 * time.Millisecond
	// guessed is the assumed time between copies until copies have shown it.
	// Source: measured, TestMarginsSRDP
	guessed = 1500 * time.Millisecond
	// copyHorizon is how long after its newest copy a packet can come again. An id
	// that comes later belongs to another packet.
	// Source: measured, TestMarginsSRDP
	copyHorizon = 64 * time.Second
	// plausible is how many ids a lane may step at once without doubt, unless it
	// has shown larger steps.
	// Source: measured, TestMarginsSRDP
	plausible int64 = 1024
	// copyGap is how soon after a copy the next one counts as made by the network.
	// It applies where the tap is not at the sender.
	// Source: measured, TestMarginsSRDP
	copyGap = 8 * time.Millisecond
)

// data takes a copy of a data packet that s sent.
func (t *Tracker) data(s *party, p *sighting, payload []byte, out *machine.Effects) {
	pk := &t.pk
	l := s.lanes.of(srdp.Pair{Source: pk.Source, Destination: pk.Destination}, t.proxied(), true)
	if l == nil {
		s.counted(p)
		return
	}
	l.touched(p.at)
	sum := srdp.Sum(pk.Flags, payload)
	before := l.lives.find(pk.ID)
	if e := t.copyOf(l, before, sum, p); e != nil {
		t.copied(s, l, e, p, out)
		return
	}
	id64 := l.unwrap(pk.ID, p.place)
	if l.lives.full() {
		t.end(s, l, out)
	}
	t.goesOn(s, l, id64)
	if before != nil && !before.doubtful && p.at.Sub(before.lastAt) < copyHorizon {
		t.reused(s, l, before, id64, p, out)
	}
	doubtful := t.doubts(s, l, id64)
	back := wire.IDs.Distance(uint32(pk.ID), uint32(l.lastID))
	switch behind := l.met && back < 0 && back > -lateness; {
	case behind && pk.Flags&t.config.Profile.Order != 0:
		// It may have got its id when it was submitted, and waited for another
		// ordered packet since.
	case behind && !doubtful:
		s.reach.disordered++
		fallthrough
	default:
		l.lastID = pk.ID
	}
	e := l.lives.begin(pk.ID, id64)
	e.at, e.lastAt, e.tally.copies, e.frame, e.sum, e.size, e.flags = p.at, p.at, 1, p.ref, sum,
		int32(pk.PayloadLen), pk.Flags
	e.command, e.odd = pk.Command, t.config.Profile.Contradicts(pk)
	e.doubtful = doubtful
	e.reused = before != nil && !before.doubtful || l.restarting.from > 0 || t.sinceRestart(s.side, p.at)
	e.behind = l.met && id64 < l.top
	e.earlier = !t.config.Stream && !t.starts(s, l, id64, pk.Flags&t.config.Profile.Order != 0, p)
	e.recalled = p.place.Again || !p.place.Known && l.met && id64 < l.lives.forgot
	if !doubtful {
		t.believe(s, l, e, p, out)
	}
}

func (t *Tracker) proxied() bool { return t.config.Profile.Form != 0 }

// copyOf returns the life that a packet is a further copy of, of the newest one with its id and those before. It
// returns nil when there is none.
func (t *Tracker) copyOf(l *lane, newest *life, sum uint32, p *sighting) *life {
	for e := newest; e != nil; e = l.lives.older(e) {
		if e.sum == sum && e.size == int32(t.pk.PayloadLen) && p.at.Sub(e.lastAt) < copyHorizon &&
			(!p.place.Known || e.id64 == p.place.Number) {
			return e
		}
	}
	return nil
}

// doubts reports whether a packet may be foreign: of another protocol, but with
// a command byte at its start. Such a packet enters state once it is
// acknowledged.
func (t *Tracker) doubts(s *party, l *lane, id64 int64) bool {
	pk := &t.pk
	if t.config.Profile.Contradicts(pk) && !t.known.odd && !t.seen.odd {
		return true
	}
	if t.config.Profile.UnknownFlags(pk.Flags)&^(t.known.flags|t.seen.flags) != 0 {
		return true
	}
	if !l.met {
		return false
	}
	step := id64 - l.top
	return max(step, -step) > max(plausible, 2*max(s.data.jump, t.known.jump[s.side]))
}

// believe enters a packet into state. Its first copy passed at p, or earlier if
// the packet was doubtful until now.
func (t *Tracker) believe(s *party, l *lane, e *life, p *sighting, out *machine.Effects) {
	first := sighting{at: e.at, ref: e.frame, length: p.length}
	l.touched(e.at)
	e.doubtful = false
	s.data.ids++
	if e.earlier {
		s.data.earlier++
	}
	s.data.copies += uint64(e.tally.copies)
	s.data.resends += uint64(e.tally.copies - 1)
	if e.tally.copies > 1 {
		s.data.repeated++
	}
	for range e.tally.copies {
		s.counted(&first)
	}
	t.event(out, e, &first, fact{kind: machine.EventSent, of: s.side, sure: e.firsts()})
	if !l.met {
		l.met, l.firstID, l.top = true, e.id64, e.id64
	}
	l.top = max(l.top, e.id64)
	if q := l.queue.Enter(e.id, e.at, t.timeoutOf(s, e)); q != nil {
		q.ID64, q.Flags, q.First, q.Last = e.id64, e.flags, e.frame, e.newest()
	}
	if t.config.Stream {
		t.passedOn(s, l, e, &first, out)
	} else if e.flags&t.config.Profile.Order != 0 {
		t.follows(l, e)
	}
	t.conditions(s, e, &first, out)
}

// follows notes that an ordered packet was sent while another one was in
// flight. The end of the earlier packet shows what that means.
func (t *Tracker) follows(l *lane, e *life) {
	if n := l.ordered - 1; n >= l.lives.first && n < e.number {
		if before := l.lives.at(n); before.tally.acks == 0 && before.id64 < e.id64 {
			l.lives.overtake(before, e)
		}
	}
	if l.ordered == 0 || e.id64 > l.orderedID {
		l.orderedID = e.id64
	}
	l.ordered = e.number + 1
}

// timeoutOf returns the time between copies that a packet seems to have.
func (t *Tracker) timeoutOf(s *party, e *life) time.Duration {
	if e.interval > 0 {
		return e.interval
	}
	if d, _ := s.timing.timeout(); d > 0 {
		return d
	}
	if d := t.known.timeout[s.side]; d > 0 {
		return d
	}
	return guessed
}

// copied takes a further copy of a packet.
func (t *Tracker) copied(s *party, l *lane, e *life, p *sighting, out *machine.Effects) {
	gap := p.at.Sub(e.lastAt)
	l.lives.copied(e, p.ref)
	if e.doubtful {
		// A foreign datagram may come again and again.
		e.lastAt = p.at
		s.seen.foreign++
		out.At(p.at, p.ref).Report(srdp.ForeignDatagram, s.side, machine.Likely, 0, float64(p.length))
		return
	}
	s.counted(p)
	s.data.copies++
	if t.config.Stream {
		// A stream has no repeats: the proxy passed on what came twice.
		e.lastAt = p.at
		s.data.resends++
		t.event(out, e, p, fact{kind: machine.EventResent, of: s.side, sure: machine.Likely, about: e.frame})
		t.passedOn(s, l, e, p, out)
		return
	}
	if gap < copyGap && (!s.sure || t.tooSoon(s, gap)) {
		e.tally.doubled++
		s.reach.disordered++
		return
	}
	if e.tally.attempts() == 2 {
		s.data.repeated++
		t.repeated(s, l, e, gap)
	}
	e.interval, e.lastAt = gap, p.at
	s.timings().interval(gap)
	s.data.resends++
	grade := machine.Certain
	if !s.sure {
		grade = machine.Likely // the network may have made this copy
	}
	t.event(out, e, p, fact{kind: machine.EventResent, of: s.side, sure: grade, about: e.frame})
	if e.tally.acks > 0 {
		t.needless(s, e, p, out)
	}
	if e.gaveUp {
		e.gaveUp = false
		t.event(out, e, p, fact{kind: machine.EventRegraded, of: s.side, sure: machine.Certain, about: e.frame})
	}
	if q := l.queue.Find(e.id); q != nil && q.ID64 == e.id64 {
		q.Last, q.Timeout = p.ref, gap
		l.queue.Resend(q, p.at)
	} else if (e.tally.acks == 0 || !s.sure) && l.lives.open(e) {
		// Its acknowledgement has not come, or not reached its sender.
		if q := l.queue.Enter(e.id, p.at, gap); q != nil {
			q.ID64, q.Flags, q.First, q.Last, q.FirstAt, q.Copies = e.id64, e.flags, e.frame, p.ref, e.at,
				uint32(e.tally.attempts())
		}
	}
}

// tooSoon reports whether a copy follows the one before it so soon that no
// acknowledgement can have come between. Where the tap seems to be at both
// sides, the network may have made it: there may still be a network between.
func (t *Tracker) tooSoon(s *party, gap time.Duration) bool {
	answers := &t.parties[s.side.Other()].reach.answers
	return t.facts.Vantage == machine.VantageBoth && answers.Count() > 0 && gap < answers.Least()
}

// needless takes a copy that was sent although the packet had arrived and had
// been acknowledged. Either the two crossed on the way, or the acknowledgement
// was lost between the tap and the sender.
func (t *Tracker) needless(s *party, e *life, p *sighting, out *machine.Effects) {
	since := p.at.Sub(e.ack.last)
	if since > unread {
		s.reach.lateCopies++
	}
	if since > max(tick, 2*s.reach.slowest) {
		s.reach.amiss++
	}
	// A copy that passes within the time from the tap to the sender and back
	// left before the acknowledgement reached the sender.
	way := e.interval / 2
	switch {
	case s.sure:
		way = unread
	case s.reach.answers.Count() > 0:
		// The shortest time includes the sender's shortest wait; most waits are
		// longer.
		way = s.reach.answers.Least() + s.reach.answers.Least()/4 + tick
		e.unsure = e.unsure || since > s.reach.answers.Least() && since <= way
	default:
		e.unsure = true
	}
	if since <= way {
		e.tally.crossed++
		return
	}
	if s.sure {
		e.ignored = true
	} else {
		e.tally.ackLost++
	}
	t.event(out, e, p, fact{kind: machine.EventRegraded, of: s.side, sure: machine.Possible, about: e.ack.ref})
}

// passedOn takes data that a proxy sends to its client on a stream. No
// acknowledgement follows there. But stream data arrives as long as the stream
// is open. The client is the side that opened the connection.
func (t *Tracker) passedOn(s *party, l *lane, e *life, p *sighting, out *machine.Effects) {
	client := &t.parties[s.side.Other()]
	if client.side != machine.A {
		return
	}
	e.tally.arrived++
	client.arrivals.handed++
	t.event(out, e, p, fact{kind: machine.EventReceived, of: client.side, sure: machine.Likely, about: p.ref})
	if q := l.queue.Find(e.id); q != nil && q.ID64 == e.id64 {
		l.queue.Remove(q)
	}
}
