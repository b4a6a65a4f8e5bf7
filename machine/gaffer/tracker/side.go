package tracker

import (
	"math"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// side is what is known about one endpoint. The embedded State is the endpoint's own.
// For a near side it is exact. For a far side it holds what is proved. The fields that
// nearly every packet touches come first, to share cache lines.
type side struct {
	gaffer.State
	side        machine.Side
	Near        bool // the tap is at it
	Met         bool // a packet of it passed the tap
	application application
	sent        sentPackets
	headers     headers
	acks        acks
	reads       reads
	standing    standing
	estimate    estimate
	queue       queue          // near only: datagrams that it may not have read yet
	losses      losses         // of its packets
	burst       burst          // of its packets: the newest one, until it is known what became of them
	trips       *machine.Trips // of its packets; nil before the first one that was named
	earlier     Earlier        // its packets of the session before
}

// sentPackets are the packets of a side that passed the tap, by their numbers. The
// newest is top; top64 is the same number unwrapped, so its low bits are top. Once the
// first packet is entered, first64 ≤ top64. Always distinct ≤ extent.
type sentPackets struct {
	top       uint32
	starts    bool // the packet being processed is the first one
	top64     int64
	topAt     machine.Instant // when top64 passed the tap
	heardFrom uint64          // packets of the peer that had passed by then
	distinct  uint64          // sequences that passed the tap
	disorder  uint64          // packets that came after a newer one, or again
	bytes     uint64
	first64   int64  // oldest sequence, unwrapped
	began64   int64  // the sequence that passed first, unwrapped
	leapt     uint64 // numbers that it left out by itself: it jumped ahead
	overtaken int    // how far behind the newest a packet came, at most
	floor64   int64  // newest number of the session before that the side goes on from; below all numbers if there is none
	below     uint64 // of distinct: those up to floor64, which came late
	parts     bool   // a packet of fragments passed
	stepsOne  bool   // the number right behind a packet of fragments passed
	behind    uint64 // numbers missing right behind a packet of fragments, before stepsOne
}

// mayStepOver reports whether the side may have left out the numbers behind its newest packet. That
// packet is one of fragments, and the number right behind such a packet has never passed. For
// example, the side counts each fragment of packet 7 as a packet, and 8 and 9 are never sent.
func (s *side) mayStepOver() bool {
	if !s.sent.parts || s.sent.stepsOne {
		return false
	}
	e := s.Sent(s.sent.top)
	return e != nil && e.Flags&gaffer.SentFragmented != 0
}

// late records a packet that came so far ahead of the newest, which is zero or negative.
func (p *sentPackets) late(ahead int) { p.overtaken = max(p.overtaken, -ahead) }

// extent returns how many numbers there are from the oldest to the newest, inclusive.
func (p *sentPackets) extent() int64 { return p.top64 - p.first64 + 1 }

// missing returns how many of these numbers did not pass the tap.
func (p *sentPackets) missing() uint64 {
	extent := uint64(p.extent())
	return extent - min(extent, p.distinct)
}

// missingAbove returns how many numbers did not pass the tap, without those of the session before.
// For example, the session before went to 111, and 112 to 197 pass in this one. Packet 61 comes
// late. Then 62 to 111 are no packets of this session.
func (p *sentPackets) missingAbove() uint64 {
	missing, before := p.missing(), uint64(0)
	if p.floor64 >= p.first64 {
		before = uint64(min(p.floor64, p.top64) - p.first64 + 1)
	}
	return missing - min(missing, before-min(before, p.below))
}

// complete reports whether all of these numbers passed the tap.
func (p *sentPackets) complete() bool { return p.distinct == uint64(p.extent()) }

// headers is what the headers of a side said about the peer's packets. What the side
// had before number joined is unknown, not empty. The claims in claimed are of numbers
// above the newest that the peer sent, until they are checked.
type headers struct {
	last      gaffer.Claims // of its newest header
	number    int64         // of the packet that carried that
	claimed   []earlyClaim
	unseen    []unseenClaim // until the next header of the side
	ahead     []aheadHeader
	closest   edge // when a packet was first named
	edge      edge // the same of its first header after numbers of it were missing, until it is known why
	opened    bool // a header of it passed the tap: State's receive window is set
	fresh     bool // known from its first packet on, so its buffers are complete
	suspect   bool // it named packets that either never arrived or are missing in the capture
	lacking   bool // the capture lacks headers that it sent since last; near only
	joined    int64
	openedAt  machine.Instant
	at        machine.Instant // when last passed the tap; near only
	count     uint64          // headers that passed the tap; near only
	lies      uint64          // packets that it named and that never arrived
	uncovered uint64          // numbers that its headers jumped over
	bare      bool            // one did not name the packet that its ack names, though it is no packet of fragments
	named     int             // how far behind the newest a packet was that a header left out and a later one named
}

// edge is how near a packet came to the edge of the ack window: no header can name a packet beyond it.
type edge struct {
	left int32       // fewest packets left in the window, plus one; 0 for unknown
	ref  machine.Ref // the header that left so few
}

// into enters e in the fewest so far.
func (e edge) into(fewest *edge) {
	if e.left > 0 && (fewest.left == 0 || e.left < fewest.left) {
		*fewest = e
	}
}

// nearEdge records the bit at which a header first named a packet. Before it, so many numbers of the
// side are missing. If they are a burst, the capture may lack a header that named the packet.
func (s *side) nearEdge(p *sighting, c gaffer.Claims, n int, missing int64) {
	e, h := edge{int32(c.Width - n), p.ref}, &s.headers
	switch {
	case missing < burstLeast:
		e.into(&h.closest)
	case !s.Near:
		e.into(&h.edge)
	}
}

// acks is what became of a side's packets. A packet counts as lost when the headers
// show that it can no longer be acked. If it is acked after all, it is no longer lost.
// So count + lost ≤ distinct.
type acks struct {
	count     uint64 // packets whose ack the side read
	lost      uint64
	wireRTT   int64 // sum of wireCount samples, ns: from a packet to the header that names it, at the tap
	wireCount uint64
	parts     bool // the peer has accepted a packet of fragments
}

// read records that the side has read the ack of e.
func (a *acks) read(e *gaffer.Sent) {
	a.count++
	if e.Flags&gaffer.SentLost != 0 {
		e.Flags &^= gaffer.SentLost
		a.lost--
	}
}

// arrived records that the side's packet e was received. at is when the proof passed the tap.
// The flag named says that the proof is a header that names e.
func (s *side) arrived(e *gaffer.Sent, at machine.Instant, named bool) {
	if e.Flags&gaffer.SentArrived != 0 {
		return
	}
	if e.Flags&gaffer.SentUnnamed != 0 {
		e.Flags &^= gaffer.SentUnnamed
		s.losses.unnamed--
	}
	s.MarkArrived(e)
	s.acks.parts = s.acks.parts || e.Flags&gaffer.SentFragmented != 0
	s.acks.wireRTT += int64(at - e.At)
	s.acks.wireCount++
	if !named {
		return
	}
	if s.trips == nil {
		s.trips = new(machine.Trips)
	}
	s.trips.Add(at.Sub(e.At))
}

// lose records that e can no longer be acked.
func (a *acks) lose(e *gaffer.Sent) {
	e.Flags |= gaffer.SentLost
	a.lost++
}

// reads is what a side did with the peer's packets. For a far side only count is known.
// whole ≤ begun.
type reads struct {
	count      uint64 // packets received
	duplicates uint64
	stale      uint64
	refused    uint64
	restored   uint64      // packets that looked refused and were named later
	begun      uint64      // packets of the peer of which a fragment was read
	whole      uint64      // packets of the peer of which all fragments were read
	cutAt      machine.Ref // the last packet begun
}

// application is what a side's application does with the packets that it gets, as its
// headers show. taken ≤ takenEnough. Once refuses is set it stays set.
type application struct {
	taken   uint16 // packets that its headers show as accepted
	refuses bool   // it is known to refuse packets
}

// takenEnough is how many packets in a row a side must accept before ackscope concludes
// that its application accepts every packet. Only packets that the side read and that
// its headers cover count. An application that refuses one packet in twenty would
// accept so many twice in a million times.
// Source: measured, TestMarginsGaffer
const takenEnough uint16 = 256

// takes counts a packet that a header shows as accepted by the application.
func (a *application) takes() {
	if a.taken < takenEnough {
		a.taken++
	}
}

// takesAll reports whether the application has been shown to accept every packet.
func (a *application) takesAll() bool { return a.taken == takenEnough && !a.refuses }

// losses is where a side's packets were lost. Gaps in the numbers of a far side show
// the loss before the tap. The headers of a far peer show the loss beyond it.
type losses struct {
	before machine.PathLoss // of its packets, on the way to the tap
	beyond machine.PathLoss // of those that passed the tap, on the way to the peer
	unseen uint64           // packets that the peer named, and that did not pass the tap
	// unnamed counts packets that the headers of a far peer covered, and that none named.
	unnamed uint64
}

// unseenHere records that a packet reached the peer without passing the tap: the capture
// lost it, and not the path.
func (l *losses) unseenHere() {
	l.unseen++
	l.before.Forget()
}

// meet enters the first packet of a side. It sets the newest number to the one before.
func (t *Tracker) meet(s *side, p *sighting) {
	s.Met = true
	s.earlier = NewEarlier(t.rules, t.facts.Earlier[s.side], p.at)
	s.sent = sentPackets{
		starts: true, top: (p.sequence - 1) & s.Rules.Mask(),
		top64: int64(p.sequence) - 1, topAt: p.at, first64: int64(p.sequence),
		began64: int64(p.sequence), floor64: math.MinInt64,
	}
	if n := s.earlier.newest[0]; n.Known && p.sequence >= StartWithin {
		if ahead := t.rules.Distance(p.sequence, n.Value); ahead > -strayNear && ahead <= strayNear {
			s.sent.floor64 = int64(p.sequence) - int64(ahead) // the peer restarted, and this side did not
		}
	}
	// The capture begins behind a restart of the side, and the peer still acks the session before.
	peer := &t.Sides[s.side.Other()]
	if c := &peer.headers.last; c.Width > 0 && !c.Nothing(t.rules) && p.sequence < RestartMost &&
		peer.sent.top >= StartWithin && t.rules.Distance(c.Newest, p.sequence) > t.overtakes(s) {
		// Its first packet may be number 0: the peer moved to another address, where the side took it
		// for another client. What the side sent to the old address may still be under way.
		s.earlier.Found(c.Newest, max(1, p.sequence))
	}
}

// unwrap returns the unwrapped number of a sequence that the side sent.
func (s *side) unwrap(sequence uint32) int64 {
	return s.sent.top64 + int64(s.Rules.Distance(sequence, s.sent.top))
}

// spans reports whether a number lies between the oldest and the newest of the side's packets that
// passed the tap.
func (s *side) spans(sequence uint32) bool {
	number := s.unwrap(sequence)
	return s.Met && number >= s.sent.first64 && number <= s.sent.top64
}
