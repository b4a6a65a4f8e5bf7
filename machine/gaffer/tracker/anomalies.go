package tracker

import (
	"math/bits"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Bounds of what is worth a word. They decide what is reported, never a fact.
const (
	// burstLeast is how many packets must be lost in a row to count as a burst.
	// Source: definition, loss-burst: a burst is eight packets lost in a row
	burstLeast = 8
	// stallLeast is the shortest gap between two packets of a side that counts as a stall.
	// The gap must also be longer than eight frames.
	// Source: definition, stall: a stall is 200 ms, and eight frames
	stallLeast = 200 * time.Millisecond
	// silenceLeast is the shortest gap that counts as a one-way silence. The other side
	// must have been heard during it.
	// Source: definition, one-way-silence: a silence is a second
	silenceLeast = time.Second
	// spikeLeast is how far above twice the smoothed RTT a sample must lie to count as a
	// spike.
	// Source: definition, rtt-spike: a spike is 50 ms above twice the smoothed RTT
	spikeLeast = 50 * time.Millisecond
)

// earlyClaim is a claim of a packet that has not passed the tap yet. It is checked when
// the peer's numbers reach it.
type earlyClaim struct {
	number int64 // unwrapped
	at     machine.Instant
	ref    machine.Ref
}

// claimedMost is how many such claims of a side are kept.
// Source: bound, the early claims that are kept
const claimedMost = 8

func (t *Tracker) ackWentBack(p *sighting, back int, out *machine.Effects) {
	out.At(p.at, p.ref).Report(gaffer.AckGoingBack, p.from, machine.Certain, 0, float64(back))
}

func (t *Tracker) bitWithdrawn(p *sighting, c gaffer.Claims, q uint32, out *machine.Effects) {
	if t.takenBack(p, q, out) {
		return
	}
	about := machine.Ref(0)
	if e := t.Sides[p.from.Other()].Sent(q); e != nil {
		about = e.Ref
	}
	sure, behind := machine.Certain, t.rules.Distance(c.Newest, q)
	switch {
	case t.rules.AckBelow && q == t.Sides[p.from].headers.last.Newest:
		sure = t.restOnBase(sure) // with the other meaning, no bit was taken back: ack was never named by one
	case t.canonical && c.Named&wire.RelyZeroedBits == 0 && wire.RelyZeroedBits>>uint(behind)&1 != 0:
		sure = t.restOnBase(sure) // rely writes these bits as 0 unless all are set
	}
	out.At(p.at, p.ref).Report(gaffer.AckBitWithdrawn, p.from, sure, about, float64(behind))
}

// claimUnseen handles a claim (bit n of c) that the packets seen at the tap do not
// explain. It enters the packet all the same: the header says that it is in the buffer.
func (t *Tracker) claimUnseen(p *sighting, c gaffer.Claims, n int, out *machine.Effects) {
	s, peer := &t.Sides[p.from], &t.Sides[p.from.Other()]
	r := t.rules
	q := (c.Newest - uint32(n)) & r.Mask()
	if s.Classify(q) != gaffer.Stale {
		s.EnterReceived(q)
	}
	if !peer.Met {
		return
	}
	number := peer.unwrap(q)
	switch {
	case number < peer.sent.first64 || number < s.headers.joined || peer.sent.top64-number >= int64(r.Sent):
		// From before the capture, or named by a header that is far too late.
	case number > peer.sent.top64 && peer.earlier.Has(q):
		// A packet of the session before, which the side received before its peer restarted.
	case number > peer.sent.top64:
		if claimed := &s.headers.claimed; len(*claimed) < claimedMost &&
			!slices.ContainsFunc(*claimed, func(c earlyClaim) bool { return c.number == number && c.ref == p.ref }) {
			*claimed = append(*claimed, earlyClaim{number, p.at, p.ref})
		}
	case peer.Sent(q) != nil:
		t.restore(p, q, out)
	case !s.Near:
		t.claimsLost(s, peer, unseenClaim{sequence: q, at: p.at, ref: p.ref, certainty: t.restOnBase(machine.Certain)}, out)
	case !t.looksStale(s, peer, c, n, number):
		t.claimsLost(s, peer, unseenClaim{sequence: q, at: p.at, ref: p.ref, certainty: machine.Likely}, out)
	case !s.sent.complete():
		// The capture lacks packets of the side itself, so it may lack this one too. But if
		// the claim is a lie, the peer's claims of this kind prove nothing either.
		s.headers.suspect = true
		out.At(p.at, p.ref).Report(gaffer.CaptureLoss, p.from.Other(), machine.Likely, 0, 1)
	default:
		s.headers.lies++
		out.At(p.at, p.ref).Report(gaffer.StaleEntry, p.from, machine.Likely, 0,
			float64(r.Distance(c.Newest, s.headers.last.Newest)), float64(q))
	}
}

// looksStale reports whether a claim of an unseen packet looks like an old entry in a
// near side's buffer. Otherwise only the capture lacks the packet. An old entry has
// these marks:
//
//   - It is never the newest packet.
//   - It appears when the window jumps over it.
//   - Hardly any other packet in that jump is named without having passed the tap.
//   - The numbers have wrapped before.
func (t *Tracker) looksStale(s, peer *side, c gaffer.Claims, n int, number int64) bool {
	r := t.rules
	jump := r.Distance(c.Newest, s.headers.last.Newest)
	if n == 0 || s.headers.last.Width == 0 || jump <= n || jump < burstLeast {
		return false
	}
	if peer.sent.first64 == 0 && number <= int64(r.Mask()) {
		return false // numbered from 0 in this capture: the slot held nothing before
	}
	if number < s.headers.joined+int64(s.headers.last.Width)+64 {
		return false
	}
	unseen := 0
	for left := c.Named & (1<<uint(min(jump, 63)) - 1); left != 0; left &= left - 1 {
		if peer.Sent((c.Newest-uint32(bits.TrailingZeros64(left)))&r.Mask()) == nil {
			unseen++
		}
	}
	return unseen*4 <= min(jump, c.Width)
}

// restore withdraws the conclusion that a near side refused a packet: a later header
// names it. The packet was overtaken between the tap and the socket.
func (t *Tracker) restore(p *sighting, q uint32, out *machine.Effects) {
	s, peer := &t.Sides[p.from], &t.Sides[p.from.Other()]
	e := peer.Sent(q)
	if !s.Near || e.Flags&gaffer.SentArrived != 0 {
		return
	}
	s.reads.restored++
	s.reads.refused--
	c := candidate{at: e.At, ref: e.Ref, sequence: q, ack: e.Ack, ackBits: e.AckBits, own: s.SentNext}
	if e.Flags&gaffer.SentHeader != 0 {
		c.flags |= candidateHeader
	}
	if place := s.waiting(peer, q); place != 0 {
		s.queue.at(place).flags |= candidateRival // the side may have accepted that copy instead
	}
	t.readNear(s, peer, &c, &settling{at: p.at}, machine.Likely)
	t.accept(p.from, &c, p.at, true, machine.Likely, out)
}

// repeated handles another datagram of a known packet: a copy, or another fragment.
func (t *Tracker) repeated(p *sighting, e *gaffer.Sent, out *machine.Effects) {
	if p.count > 0 {
		return
	}
	if p.header && e.Flags&gaffer.SentHeader != 0 && (p.ack != e.Ack || p.ackBits != e.AckBits) {
		out.At(p.at, p.ref).Report(gaffer.SequenceReuse, p.from, machine.Certain, e.Ref, machine.Milliseconds(p.at.Sub(e.At)))
		return
	}
	t.Sides[p.from].sent.disorder++
	out.At(p.at, p.ref).Report(gaffer.DuplicatePacket, p.from, machine.Certain, e.Ref,
		machine.Milliseconds(p.at.Sub(e.At)))
}

// advance checks the time and the numbers before a packet. It is called in three cases:
//
//   - The packet is more than one ahead of its side's newest.
//   - It comes long after its side's newest.
//   - The peer has claimed packets before they were sent.
func (t *Tracker) advance(s, peer *side, p *sighting, by int, out *machine.Effects) {
	if len(peer.headers.claimed) > 0 {
		t.checkClaims(s, peer, p, by, out)
	}
	gap := p.at.Sub(s.sent.topAt)
	tick := time.Duration(s.estimate.clock.tick)
	lost := by - 1
	switch {
	case lost > 0 && s.Near:
		out.At(p.at, p.ref).Report(gaffer.CaptureLoss, p.from, machine.Likely, 0, float64(lost))
	case lost > 0:
		t.miss(s, p, lost, gap, out)
	}
	jumped := tick > 0 && s.estimate.clock.n >= 16 && int64(by) > 4*int64(gap/tick)+int64(t.rules.Received)
	switch {
	case lost <= 0 || s.sent.starts:
	case jumped:
		s.sent.leapt += uint64(lost)
	case !s.Near && s.mayStepOver():
		s.sent.behind += uint64(lost)
	case !s.Near:
		s.losses.before.SettleLost(uint64(lost))
		s.burst.counted = s.burst.counted || s.burst.ref == p.ref
	}
	if tick <= 0 || s.estimate.clock.n < 16 {
		return
	}
	if due := int64(gap / tick); jumped {
		out.At(p.at, p.ref).Report(gaffer.SequenceJump, p.from, machine.Likely, 0, float64(by), machine.Milliseconds(gap))
	} else if gap >= stallLeast && gap > 8*tick && int64(by) <= due/2 {
		out.At(p.at, p.ref).Report(gaffer.Stall, p.from, machine.Likely, 0, machine.Milliseconds(gap),
			machine.Milliseconds(tick))
	}
	if heard := peer.sent.distinct - s.sent.heardFrom; gap >= silenceLeast && heard > 0 && peer.wentOn(heard, gap) {
		out.At(p.at, p.ref).Report(gaffer.OneWaySilence, p.from, machine.Certain, 0, machine.Milliseconds(gap),
			float64(heard))
	}
}

// wentOnShare is the part of a side's usual packets, one in so many, that shows that it went on.
// Source: definition, one-way-silence: the peer went on if a quarter of its usual packets passed
const wentOnShare = 4

// wentOn reports whether a side went on while so many packets of it passed in a time. Otherwise the
// capture may lack that time.
func (s *side) wentOn(heard uint64, gap time.Duration) bool {
	tick := s.estimate.clock.tick
	if tick <= 0 || s.estimate.clock.n < 16 {
		return true
	}
	usual := float64(gap) / tick * float64(s.sent.distinct) / float64(s.sent.extent())
	return wentOnShare*float64(heard) >= usual
}

// checkClaims checks the peer's early claims of packets that pass now.
func (t *Tracker) checkClaims(s, peer *side, p *sighting, by int, out *machine.Effects) {
	kept := peer.headers.claimed[:0]
	now := s.sent.top64 + int64(by)
	for _, c := range peer.headers.claimed {
		switch {
		case c.number > now:
			kept = append(kept, c)
		case c.number == now && p.at.Sub(c.at) > gaffer.TapJitter && !t.mayBeCopy(s, now):
			peer.headers.dropAhead(c.ref)
			sure := machine.Certain
			if !s.Near {
				sure = machine.Likely // the packet may be a copy of one that only the capture lacks
			}
			out.At(c.at, c.ref).Report(gaffer.FalseAck, p.from.Other(), t.restOnBase(sure), p.ref,
				machine.Milliseconds(p.at.Sub(c.at)))
		case c.number < now && !peer.headers.keepsBack(c.ref):
			out.At(c.at, c.ref).Report(gaffer.CaptureLoss, p.from, machine.Likely, 0, 1)
		}
	}
	peer.headers.claimed = kept
}

// mayBeCopy reports whether a packet may have passed the tap before a capture that begins in the
// middle. It had overtaken others, and this is a copy of it.
func (t *Tracker) mayBeCopy(s *side, number int64) bool {
	return !s.headers.fresh && number <= s.sent.began64+int64(t.overtakes(s))
}

// overtakes returns how far a packet of a side may overtake others, in numbers.
func (t *Tracker) overtakes(s *side) int {
	depth := max(t.facts.Overtaken[s.side], s.sent.overtaken)
	if !s.Near {
		depth = max(depth, OvertakenLeast)
	}
	return depth
}

// reportTotals reports the rules that need the whole flow.
func (t *Tracker) reportTotals(x machine.Side, out *machine.Effects) {
	s, peer := &t.Sides[x], &t.Sides[x.Other()]
	if width, closest := s.headers.last.Width, int(s.headers.closest.left); closest > 0 && closest <= width/4 {
		out.At(s.sent.topAt, s.headers.closest.ref).Report(gaffer.AckWindowEdge, x, t.restOnBase(s.known()), 0,
			float64(width-closest+1), float64(width))
	}
	if cut := s.reads.begun - s.reads.whole; s.reads.begun >= 16 && cut >= 4 {
		total := peer.sent.extent()
		incomplete := float64(cut) / float64(s.reads.begun)
		missing := float64(peer.sent.missing()) / float64(total)
		if incomplete > 1.5*missing {
			out.At(peer.sent.topAt, s.reads.cutAt).Report(gaffer.FragmentLoss, peer.side, machine.Likely, 0, 100*incomplete,
				float64(s.reads.begun), 100*missing)
		}
	}
}
