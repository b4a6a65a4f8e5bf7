package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// burst is a run of a far side's numbers that did not pass the tap. The next header of the peer tells
// where they got lost:
//
//	b  31 32 ···················· 184     33 to 183 are missing in a capture taken at a
//	a         ack 183 and the 31 before   they reached a: the capture lacks them
//	a         ack 184 and none before     they did not: the network lost them
type burst struct {
	open        bool
	first, last int64 // the missing numbers
	lost        int64 // of them, those that did not come late
	counted     bool  // they count as lost on the path: the side did not leave them out by itself
	gap         time.Duration
	at          machine.Instant // when the packet behind them passed
	ref         machine.Ref
	lacked      int64 // the last number of the newest run that the capture lacks; 0 for none
}

// large reports whether the run is long enough to be reported.
func (b *burst) large() bool { return b.last-b.first+1 >= burstLeast }

// burstWait is how many packets a side sends at most until a burst is reported. Where its peer is not
// captured, no header tells.
// Source: bound, more than any ack_bits cover
const burstWait = 64

// burstNamed is of how many missing numbers that a header covers one is named at least, if the capture
// lacks the run. The network may have lost the others.
// Source: definition, capture-loss: the peer received half of what is missing, or more
const burstNamed = 2

// miss begins a burst: so many numbers before p are missing. Fewer than burstLeast are none, but a
// header may show of them too that the capture lacks them.
func (t *Tracker) miss(s *side, p *sighting, lost int, gap time.Duration, out *machine.Effects) {
	if lost < burstLeast && s.burst.open && s.burst.large() {
		return // it is still open what that one was
	}
	t.reportBurst(s, out)
	first := s.sent.top64 + 1
	s.burst = burst{
		open: true, first: first, last: s.sent.top64 + int64(lost), lost: int64(lost), gap: gap, at: p.at, ref: p.ref,
		lacked: s.burst.lacked,
	}
}

// weighBurst looks at what a header says of the peer's missing numbers.
func (t *Tracker) weighBurst(peer *side, c gaffer.Claims, out *machine.Effects) {
	b := &peer.burst
	if !b.open || c.Nothing(t.rules) {
		return
	}
	newest := peer.unwrap(c.Newest)
	if newest < b.first {
		return // an older header
	}
	covered, named := 0, 0
	for n := max(0, newest-b.last); n < int64(c.Width) && newest-n >= b.first; n++ {
		if peer.Sent((c.Newest-uint32(n))&t.rules.Mask()) != nil {
			continue // it came late
		}
		covered++
		if c.Named>>uint(n)&1 == 1 {
			named++
		}
	}
	if named == 0 || burstNamed*named < covered || t.lied() {
		t.reportBurst(peer, out)
		return
	}
	b.open, b.lacked, peer.headers.edge = false, b.last, edge{}
	if !b.large() {
		return // each packet that is named is told by itself
	}
	if unnamed := b.lost - int64(named); b.counted && unnamed > 0 { // each packet that is named is forgotten by itself
		peer.losses.before.ForgetMany(uint64(unnamed))
	}
	out.At(b.at, b.ref).Report(gaffer.CaptureLoss, peer.side, machine.Likely, 0, float64(b.lost))
}

// reportBurst reports a burst that no header explains.
func (t *Tracker) reportBurst(s *side, out *machine.Effects) {
	if b := &s.burst; b.open {
		b.open = false
		s.headers.edge.into(&s.headers.closest)
		if !b.large() {
			return
		}
		out.At(b.at, b.ref).Report(gaffer.LossBurst, s.side, machine.Certain, 0, float64(b.last-b.first+1),
			machine.Milliseconds(b.gap))
	}
}
