package tracker

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// side is what is known of one endpoint. The embedded State is the endpoint's
// own: of a near side as it must be, of a far one as far as it is proved. What
// nearly every packet touches stands first, so that it shares cache lines.
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
	estimate    estimate
	queue       queue  // near only: what it may not have read yet
	losses      losses // of its packets
}

// sentPackets are the packets of a side that passed the tap, by their numbers.
// top is the newest sequence, and top64 the same unwrapped: its low bits are top.
// first64 ≤ top64, but before the first packet is entered; distinct ≤ extent.
type sentPackets struct {
	top       uint32
	starts    bool // the packet being taken is the first one
	top64     int64
	topAt     machine.Instant // when top64 passed the tap
	heardFrom uint64          // packets of the peer that had passed by then
	distinct  uint64          // sequences that passed the tap
	bytes     uint64
	first64   int64 // oldest sequence, unwrapped
}

// extent returns how many numbers there are from the oldest to the newest.
func (p *sentPackets) extent() int64 { return p.top64 - p.first64 + 1 }

// missing returns how many of those did not pass the tap.
func (p *sentPackets) missing() uint64 {
	extent := uint64(p.extent())
	return extent - min(extent, p.distinct)
}

// complete reports whether all of them did.
func (p *sentPackets) complete() bool { return p.distinct == uint64(p.extent()) }

// headers are what the headers of a side said of the peer's packets. What it had
// before number joined is unknown, not empty; claimed are numbers above the
// newest that the peer sent, until that is judged.
type headers struct {
	last      gaffer.Claims // of its newest header
	number    int64         // of the packet that carried that
	claimed   []earlyClaim
	closest   int32 // fewest packets left in the ack window when one was first named, plus one; 0 unknown
	opened    bool  // a header of it passed the tap: State's receive window is set
	fresh     bool  // known from its first packet on: what is not in a buffer is not there
	suspect   bool  // it named packets that either never came or that the capture lacks
	joined    int64
	openedAt  machine.Instant
	closestAt machine.Ref // the header that left closest
	count     uint64      // headers that passed the tap; near only
	lies      uint64      // packets that it named and that never came
}

// nearEdge notes at which bit a packet was first named: the last one is the edge
// of the ack window, beyond which it could not have been named at all.
func (h *headers) nearEdge(p *sighting, c gaffer.Claims, n int) {
	if left := int32(c.Width - n); h.closest == 0 || left < h.closest {
		h.closest, h.closestAt = left, p.ref
	}
}

// acks are what became of a side's packets. A packet that counts as lost can no
// longer be acked, as far as the headers tell; where one is acked all the same, it
// is lost no more. So count + lost ≤ distinct.
type acks struct {
	count     uint64 // packets whose ack the side read
	lost      uint64
	wireRTT   int64 // sum of wireCount samples, ns: from a packet to the header that names it, at the tap
	wireCount uint64
}

// read takes it that the side has read the ack of e.
func (a *acks) read(e *gaffer.Sent) {
	a.count++
	if e.Flags&gaffer.SentLost != 0 {
		e.Flags &^= gaffer.SentLost
		a.lost--
	}
}

// arrived takes it that e was received, as shows at a time.
func (a *acks) arrived(e *gaffer.Sent, at machine.Instant) {
	if e.Flags&gaffer.SentArrived == 0 {
		e.Flags |= gaffer.SentArrived
		a.wireRTT += int64(at - e.At)
		a.wireCount++
	}
}

// lose takes it that e can no longer be acked.
func (a *acks) lose(e *gaffer.Sent) {
	e.Flags |= gaffer.SentLost
	a.lost++
}

// reads are what a side did with the peer's packets. All but count are known of a
// near side only. whole ≤ begun.
type reads struct {
	count      uint64 // packets received
	duplicates uint64
	stale      uint64
	refused    uint64
	restored   uint64      // packets named after all, though taken for refused
	begun      uint64      // packets of the peer of which the first fragment was read
	whole      uint64      // and of which all were
	cutAt      machine.Ref // the last packet begun
}

// application is what a side's application does with the packets that it is
// handed, as its headers show. taken ≤ takenEnough; once refuses is set it stays.
type application struct {
	taken   uint16 // packets that its headers show it to have accepted
	refuses bool   // it is known to refuse packets
}

// takenEnough packets that a side read, that its headers speak of, and of which
// it refused none, show an application that takes whatever comes: one that
// refused one in twenty would look like that twice in a million times. Of fewer
// nothing is concluded.
const takenEnough = 256

// takes counts a packet that the application is shown to have taken.
func (a *application) takes() {
	if a.taken < takenEnough {
		a.taken++
	}
}

// takesAll reports whether the application is shown to take whatever comes.
func (a *application) takesAll() bool { return a.taken == takenEnough && !a.refuses }

// losses are where a side's packets were lost: before the tap, which only the
// gaps of a far side tell, or beyond it, which only the headers of a far peer do.
type losses struct {
	before machine.PathLoss // of its packets, on the way to the tap
	beyond machine.PathLoss // of those that passed the tap, on the way to the peer
	unseen uint64           // packets that the peer named, and that did not pass the tap
}

// unseenHere takes it that a packet came to the peer unseen: the capture lost it,
// and not the path.
func (l *losses) unseenHere() {
	l.unseen++
	l.before.Forget()
}

// meet takes the first packet of a side: one less is what came before it.
func (s *side) meet(p *sighting) {
	s.Met = true
	s.sent = sentPackets{
		starts: true, top: (p.sequence - 1) & s.Rules.Mask(),
		top64: int64(p.sequence) - 1, topAt: p.at, first64: int64(p.sequence),
	}
}

// unwrap returns the unwrapped number of a sequence that the side sent.
func (s *side) unwrap(sequence uint32) int64 {
	return s.sent.top64 + int64(s.Rules.Distance(sequence, s.sent.top))
}
