package tracker

import (
	"time"
	"unsafe"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// Tracker rebuilds from a capture what both ends of a flow knew, and the lives
// of their packets.
//
//	data ───────> lane of its sender: life (copies, acknowledgements), sent queue
//	ack  ───────> the life that it answers: its receiver has it, for certain;
//	              its sender learns so, if the acknowledgement reaches it
//	the rest ───> foreign: counted
//
// An acknowledgement proves that a copy arrived, wherever the tap is. At the
// receiver, the number of copies that arrived is exact. Elsewhere the network
// may have made the second acknowledgement. The sender has certainly read an
// acknowledgement when the tap is at the sender and the sender sends on.
//
// A gap in a flow's ids is no loss, since the sender's counter numbers its
// packets to all peers. Counter shows what the whole endpoint sent.
type Tracker struct {
	config  srdp.Config
	facts   machine.Facts
	known   learned // learned by an earlier run
	seen    learned // learned by this run
	second  bool    // an earlier run has seen the whole flow
	given   bool    // New was given the vantage
	proven  bool    // the evidence for the vantage is better than a guess
	parties [2]party
	began   machine.Instant // when the first datagram passed
	last    machine.Instant
	lastRef machine.Ref
	pk      wire.Packet
	weighed int                // answers when the tap was last placed
	numbers [2]machine.Numbers // for Identity
}

// learned is Facts.Settings of this protocol: what a run learns of the whole
// flow.
type learned struct {
	proved   [2]machine.Instant // up to then each side is known to have read
	flags    uint8              // unknown flags on acknowledged packets
	odd      bool               // acknowledged packets had a command byte that contradicts the id
	proven   bool               // the evidence for the vantage is better than a guess
	jump     [2]int64           // largest step between ids of acknowledged packets
	timeout  [2]time.Duration
	least    [2]time.Duration // the shortest time between two copies
	most     [2]time.Duration // the longest
	slowest  [2]time.Duration // the longest time from data to the side's acknowledgement
	restarts [2]restarts
	anew     [2]newest // of each side's first lane
}

// sighting is one packet as it passed the tap.
type sighting struct {
	at     machine.Instant
	ref    machine.Ref
	length int
	place  *machine.Place // of the datagram; nil for what has no datagram of its own
}

// New returns the tracker of a flow. facts is what an earlier run over the same
// flow learned, or the zero value.
func New(c srdp.Config, facts machine.Facts) *Tracker {
	t := &Tracker{config: c, facts: facts}
	t.known, t.second = facts.Settings.(learned)
	for i := range t.parties {
		s := &t.parties[i]
		s.side, s.proved = machine.Side(i), t.known.proved[i]
	}
	if facts.Vantage != machine.VantageUnknown {
		t.given = true
		// An earlier run may have guessed the vantage. A vantage that the user
		// gives is proven.
		t.setVantage(facts.Vantage, facts.VantageReason, facts.Settings == nil || t.known.proven)
	}
	return t
}

func (t *Tracker) setVantage(v machine.Vantage, reason string, proven bool) {
	t.facts.Vantage, t.facts.VantageReason, t.proven = v, reason, proven
	for i := range t.parties {
		s := &t.parties[i]
		s.near = v.Near(machine.Side(i))
		s.sure = s.near && proven
	}
}

// tickSlack is how long before it sends something a side can have read for the
// last time. It allows for a generous frame of the application.
// Source: measured, TestMarginsSRDP
const tickSlack = 40 * time.Millisecond

// reads grades the claim that a side has read what passed the tap towards it.
func (s *party) reads(at machine.Instant) machine.Certainty {
	if s.sure && at <= s.proved {
		return machine.Certain
	}
	return machine.Likely
}

// Observe takes the next datagram of the flow.
func (t *Tracker) Observe(d *machine.Datagram, out *machine.Effects) {
	p := sighting{d.At, d.Ref, max(d.Length, len(d.Bytes)), &d.Place}
	if t.lastRef == 0 {
		t.began = d.At
	}
	t.last, t.lastRef = max(t.last, d.At), d.Ref
	s, peer := &t.parties[d.From], &t.parties[d.From.Other()]
	t.settle(s, out)
	t.settle(peer, out)
	pk := &t.pk
	if !t.config.Profile.Fits(d.Bytes, p.length, pk) {
		s.seen.foreign++
		out.At(p.at, p.ref).Report(srdp.ForeignDatagram, s.side, machine.Certain, 0, float64(p.length))
		return
	}
	if d.Place.Missing > 0 && s.near {
		s.seen.missing += uint64(d.Place.Missing)
		out.At(p.at, p.ref).Report(srdp.IDsMissing, s.side, machine.Likely, 0, float64(s.seen.missing))
	} else {
		s.seen.missing += uint64(d.Place.Missing)
	}
	if pk.Ack {
		t.ack(s, peer, &p, out)
	} else {
		t.numbers[d.From].Sent(uint64(pk.ID), idBits)
		t.data(s, &p, d.Bytes[min(pk.PayloadOffset, len(d.Bytes)):], out)
	}
	if !t.given && !t.config.Stream {
		t.updateVantage()
	}
}

// counted counts a packet that is SRDP's, or at least may be.
func (s *party) counted(p *sighting) {
	s.seen.packets++
	s.seen.bytes += uint64(p.length)
	if gap := p.at.Sub(s.seen.at); s.seen.at != 0 && gap > burst && (s.reach.tick == 0 || gap < s.reach.tick) {
		s.reach.tick = gap
	}
	s.seen.at, s.seen.ref = p.at, p.ref
	if !s.near {
		return
	}
	if proved := p.at.Add(-tickSlack); proved > s.proved {
		s.proved = proved
	}
}

// updateVantage places the tap each time the number of answers has doubled,
// until the result is sure.
func (t *Tracker) updateVantage() {
	n := t.parties[0].reach.answers.Count() + t.parties[1].reach.answers.Count()
	if n == t.weighed || n < 4 || n&(n-1) != 0 {
		return
	}
	t.weighed = n
	if place := placeTap(&t.parties); place.sure {
		t.setVantage(place.vantage, place.String(), place.proven)
	}
}

// Learned returns what another run over the flow can start with.
func (t *Tracker) Learned() machine.Facts {
	f := t.facts
	k := t.seen
	switch {
	case t.given:
		k.proven = t.proven
	case t.config.Stream:
		f.VantageReason = "unknown: a stream to a proxy, whose acknowledgements are those of who is behind it"
	default:
		place := placeTap(&t.parties)
		f.Vantage, f.VantageReason, k.proven = place.vantage, place.String(), place.proven
	}
	for i := range t.parties {
		s := &t.parties[i]
		if s.seen.at != 0 {
			k.proved[i] = s.seen.at.Add(-tickSlack)
		}
		k.timeout[i], _ = s.timing.timeout()
		if s.timing != nil {
			k.least[i], k.most[i] = s.timing.least, s.timing.most
		}
		k.slowest[i] = s.reach.slowest
		for _, l := range s.lanes.list {
			if l.restarting.pending {
				k.restarts[i].add(l.restarting.at) // nothing shows that it did not
			}
		}
		if len(s.lanes.list) > 0 {
			k.anew[i] = s.lanes.list[0].proved(k.proven && f.Vantage.Near(machine.Side(i)))
		}
		if !f.Marked {
			f.Supposed[i] = f.Vantage.Near(machine.Side(i)) && !k.proven
		}
		if r := &s.reach; !t.given {
			f.Prompt[i] = r.answers.Count() > 0 && r.answers.Least() <= machine.NearProof
			f.Scrambled[i] = r.scrambled(s)
		}
	}
	f.Settings = k
	return f
}

// Finish settles what is still open when the capture ends.
func (t *Tracker) Finish(out *machine.Effects) {
	for i := range t.parties {
		s := &t.parties[i]
		for _, l := range s.lanes.list {
			t.giveUps(s, l, out)
			for l.lives.oldest() != nil {
				t.end(s, l, out)
			}
		}
	}
}

// Size returns the approximate bytes of a clone.
func (t *Tracker) Size() int {
	return int(unsafe.Sizeof(*t)) + t.parties[0].size() + t.parties[1].size()
}

// Clone returns an independent copy.
func (t *Tracker) Clone() machine.Tracker {
	c := *t
	c.parties = [2]party{t.parties[0].clone(), t.parties[1].clone()}
	return &c
}

// fact is what an event says of a packet.
type fact struct {
	kind      machine.EventKind
	of        machine.Side
	sure      machine.Certainty
	about, by machine.Ref
	rtt       int64 // nanoseconds; 0 or less when unknown
}

// event appends the event of a fact about a packet that p shows.
func (t *Tracker) event(out *machine.Effects, e *life, p *sighting, f fact) {
	if out.NoEvents {
		return
	}
	if f.rtt == 0 {
		f.rtt = -1
	}
	out.Events = append(out.Events, machine.Event{
		Kind: f.kind, Side: f.of, Certainty: f.sure, Sequence: uint32(e.id), Sequence64: e.id64, At: p.at, Ref: p.ref,
		About: f.about, By: f.by, RTT: f.rtt,
	})
}
