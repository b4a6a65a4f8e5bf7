package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// conditions reports what is wrong with a data packet on its own.
func (t *Tracker) conditions(s *party, e *life, p *sighting, out *machine.Effects) {
	if int(e.size) > t.config.MaxPayload {
		out.At(p.at, p.ref).Report(srdp.Oversize, s.side, machine.Certain, 0, float64(e.size), float64(t.config.MaxPayload))
	}
	if e.odd {
		out.At(p.at, p.ref).Report(srdp.CommandByte, s.side, machine.Certain, 0, float64(e.command))
	}
	if bits := t.config.Profile.UnknownFlags(e.flags); bits != 0 && !s.data.reported {
		s.data.reported = true
		out.At(p.at, p.ref).Report(srdp.UnknownFlags, s.side, machine.Certain, 0, float64(bits))
	}
}

// reused checks a packet whose id another packet had not long ago. Either the
// ids have wrapped, or the sender used the same id for other bytes.
func (t *Tracker) reused(s *party, l *lane, before *life, id64 int64, p *sighting, out *machine.Effects) {
	if before.number < l.restarting.from {
		return // the side has begun anew since
	}
	apart := id64 - before.id64
	sure := machine.Certain
	switch began := &t.known.restarts[s.side]; {
	case began.last != 0:
		sure = machine.Possible
	case !t.second:
		sure = machine.Likely // the side may have begun anew
	}
	if apart == 0 {
		l.reusesID(id64, p.at)
	}
	since := machine.Milliseconds(p.at.Sub(before.lastAt))
	q := l.queue.Find(before.id)
	waits := q != nil && q.ID64 == before.id64
	switch {
	case apart == 0 && (p.place.Known && s.sure || waits):
		out.At(p.at, p.ref).Report(srdp.IDReuse, s.side, sure, before.frame, 1, float64(before.id), since)
	case apart == 0:
		// The capture may lack ids of a far sender: its ids may have wrapped
		// meanwhile.
		out.At(p.at, p.ref).Report(srdp.IDReuse, s.side, machine.Possible, before.frame, 1, float64(before.id), since)
	case waits:
		out.At(p.at, p.ref).Report(srdp.WrapInFlight, s.side, machine.Likely, before.frame, 1, float64(before.id), since)
		l.queue.Remove(q)
	}
}

// answersNothing takes an acknowledgement of s for a packet that the tracker
// does not know.
func (t *Tracker) answersNothing(s, peer *party, l *lane, p *sighting, out *machine.Effects) {
	id := t.pk.ID
	if l != nil {
		l.answersUnknown(id)
	}
	if l == nil || !l.met {
		// No packet of the peer has passed: the capture may have begun after
		// it.
		s.counted(p)
		if len(peer.lanes.list) > 0 {
			out.At(p.at, p.ref).Report(srdp.AckOfNothing, s.side, machine.Possible, 0, float64(id))
		}
		return
	}
	s.counted(p)
	ahead := wire.IDs.Distance(uint32(id), uint32(l.top&int64(wire.IDs.Mask())))
	id64 := l.top + int64(ahead)
	kept := l.lives.at(l.lives.kept()).id64
	switch {
	case id64 < l.firstID && (!l.begun || t.answersEarlier(s, p.at)), id64 < kept:
		return // the packet is from before the capture, or its life ended long ago
	case t.answersEarlier(s, p.at):
		out.At(p.at, p.ref).Report(srdp.AckOfNothing, s.side, machine.Possible, 0, float64(id))
	case peer.sure && int64(ahead) > lackedSteps*max(1, peer.data.jump, t.known.jump[peer.side]):
		out.At(p.at, p.ref).Report(srdp.AckOfNothing, s.side, machine.Certain, 0, float64(id))
	default:
		// The packet may have passed in a frame that the capture lacks.
		out.At(p.at, p.ref).Report(srdp.AckOfNothing, s.side, machine.Likely, 0, float64(id))
	}
}

// lackedSteps is how many packets in a row a capture may lack, of those that a
// sender sends to one peer.
// Source: unmeasured, TestPartial of internal/srdpcheck exercises it
const lackedSteps = 16

// answersEarlier reports whether what a side acknowledges at a time may have
// passed the tap before the capture began.
func (t *Tracker) answersEarlier(s *party, at machine.Instant) bool {
	return at.Sub(t.began) <= patience+4*t.slowest(s)
}

// endFindings reports what a packet shows once its life has ended.
func (t *Tracker) endFindings(s *party, e *life, out *machine.Effects) {
	if t.config.Stream {
		return // the proxy is responsible for repeats and order
	}
	r := &t.parties[s.side.Other()]
	attempts := e.tally.attempts()
	report := func(rule *machine.Rule, of machine.Side, sure machine.Certainty, figures ...float64) {
		out.At(e.lastAt, e.newest()).Report(rule, of, sure, e.frame, figures...)
	}
	both := machine.Likely
	if t.facts.Vantage == machine.VantageBoth {
		both = machine.Certain
	}
	if e.unsure {
		both = machine.Possible
	}
	needless := int32(0)
	if attempts > 1 && e.tally.acks > 0 {
		crossed := e.tally.crossed
		if e.tally.acks >= e.tally.copies {
			crossed = max(crossed, attempts-1-e.tally.ackLost)
			if e.ignored {
				crossed = e.tally.crossed
			}
		}
		if needless = crossed + e.tally.ackLost; crossed > 0 {
			report(srdp.SpuriousEarly, s.side, both, float64(crossed), float64(e.id), machine.Milliseconds(e.interval))
		}
		if e.tally.ackLost > 0 {
			report(srdp.SpuriousAckLost, s.side, both, float64(e.tally.ackLost), float64(e.id))
		}
		if e.ignored {
			needless = attempts
			report(srdp.AckIgnored, s.side, machine.Likely, float64(attempts), float64(e.id),
				machine.Milliseconds(e.lastAt.Sub(e.ack.at)))
		}
	}
	t.settlePath(s, e, needless)
	if lost := attempts - 1 - needless; lost > 0 && !e.gaveUp {
		report(srdp.ResentLoss, s.side, machine.Likely, float64(attempts), float64(e.id))
	}
	if e.tally.acks == 0 && e.gaveUp {
		grade := machine.Likely
		if !s.near {
			grade = machine.Possible
		}
		report(srdp.GaveUp, s.side, grade, float64(attempts), float64(e.id), machine.Milliseconds(e.lastAt.Sub(e.at)))
	}
	if missing := e.tally.copies - e.tally.acks; missing > 0 && r.near && r.seen.at.Sub(e.lastAt) > missingAfter {
		report(srdp.AckMissing, r.side, machine.Likely, float64(missing), float64(e.id))
	}
	if e.tally.arrived > 1 && e.flags&t.config.Profile.DontDuplicate == 0 {
		grade := machine.Likely
		if r.sure {
			grade = machine.Certain
		}
		report(srdp.DeliveredAgain, r.side, grade, float64(e.tally.arrived), float64(e.id))
	}
	if e.rare != nil && e.rare.overtaken.at != 0 {
		t.overtaken(s, e, out)
	}
}

// missingAfter is how long after a packet's last copy its acknowledgement
// counts as missing. The receiver must have gone on sending.
// Source: measured, TestMarginsSRDP
const missingAfter = time.Second

// overtaken checks an ordered packet that was in flight when a later one was
// sent. Its sender broke the order, or had given this packet up. The wire does
// not show when a sender gives up: repeats, timeout and application decide.
func (t *Tracker) overtaken(s *party, e *life, out *machine.Effects) {
	over := &e.rare.overtaken
	report := func(rule *machine.Rule, sure machine.Certainty) {
		out.At(over.at, over.ref).Report(rule, s.side, sure, e.frame, float64(e.id),
			machine.Milliseconds(over.at.Sub(e.at)))
	}
	if after := e.lastAt.Sub(over.at); after > 0 {
		// It was sent again behind the later packet. On the way to a distant tap
		// the network can put a copy there too.
		usual, _ := s.timing.timeout()
		switch {
		case s.sure:
			report(srdp.OrderBroken, machine.Certain)
		case 2*after >= usual && t.ordersKept(s, after):
			report(srdp.OrderBroken, machine.Likely)
		default:
			report(srdp.OrderPassed, machine.Possible)
		}
		return
	}
	waited := over.at.Sub(e.lastAt)
	if s.sure && e.tally.attempts() == 1 && waited < shortestTimeout {
		report(srdp.OrderBroken, machine.Likely) // too soon to have been given up
		return
	}
	least := time.Duration(0)
	if s.timing != nil {
		least = s.timing.least
	}
	if least -= least / 10; !s.sure {
		least /= 2 // the network changes the distance of copies before they reach the tap
	}
	if answer := t.parties[s.side.Other()].reach.answers.Least(); waited < max(least, answer) {
		report(srdp.OrderPassed, machine.Possible)
	}
}

// ordersKept reports whether two packets of a distant side that passed the tap
// that far apart were sent in this order. The flow shows it in two ways: its
// network disordered nothing, or the round trips to the side differ by less.
func (t *Tracker) ordersKept(s *party, apart time.Duration) bool {
	if s.reach.disordered == 0 {
		return true
	}
	toSide := &t.parties[s.side.Other()].delays
	return toSide.count >= enoughTrips && apart > toSide.longest-s.reach.answers.Least()
}

// enoughTrips is from how many round trips on their spread is known.
// Source: unmeasured, the spread of that many round trips
const enoughTrips = 16

// shortestTimeout is the shortest time between the copies of a packet. A sender
// that gives a packet up has waited at least that long for its acknowledgement.
//
// Source: law, srdp_send has its timeout in seconds, and this reference in milliseconds
const shortestTimeout = time.Millisecond
