package judge

import (
	"fmt"
	"math/bits"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// relation says by which mistake of arithmetic a number of so many bits became another one.
// It is empty if none of the usual ones does.
//
//	byte order   21248 is 83 with its bytes swapped
//	width        83 is the low byte of 339
//	a carry      339 is 83 + 256
//	sign         32851 is 83 with its top bit flipped
func relation(right, wrong uint32, width int) string {
	if width < 16 || right == wrong {
		return ""
	}
	mask := ^uint32(0) >> uint(32-width)
	switch {
	case bits.ReverseBytes32(right)>>uint(32-width) == wrong:
		return fmt.Sprintf("%d is %d with its bytes swapped", wrong, right)
	case right&0xff == wrong:
		return fmt.Sprintf("%d is the low byte of %d", wrong, right)
	case (wrong-right)&mask == 256:
		return fmt.Sprintf("%d is %d + 256", wrong, right)
	case (right-wrong)&mask == 256:
		return fmt.Sprintf("%d is %d - 256", wrong, right)
	case right^1<<uint(width-1) == wrong:
		return fmt.Sprintf("%d is %d with its top bit flipped", wrong, right)
	}
	return ""
}

// explainAck adds to the divergence of a header which right ack became the wrong one. A right
// ack lies between the one of the header before and the newest packet that passed. With it,
// all that the bits name has passed.
func (s *Judged) explainAck(peer *Judged, c gaffer.Claims, v *machine.Divergence) {
	r := s.Rules
	if v.Field != "gaffer.ack" || !peer.Sent.met {
		return
	}
	newest, span := peer.Sent.top, min(peer.Sent.span-1, passedSpan/2)
	if s.said.Width > 0 && !s.said.Nothing(r) {
		span = min(span, r.Distance(newest, s.said.Newest))
	}
	for n := range span + 1 {
		right := (newest - uint32(n)) & r.Mask()
		says := relation(right, c.Newest, int(r.SequenceBits))
		if says == "" || !s.couldName(peer, gaffer.Claims{Newest: right, Named: c.Named, Width: c.Width}) {
			continue
		}
		v.Because += "; " + says
		return
	}
}

// couldName reports whether all packets that claims name passed the tap.
func (s *Judged) couldName(peer *Judged, c gaffer.Claims) bool {
	for left := c.Named; left != 0; left &= left - 1 {
		switch peer.passage(s.Rules, (c.Newest-uint32(bits.TrailingZeros64(left)))&s.Rules.Mask()) {
		case passedNone, passedAhead:
			return false
		}
	}
	return true
}

// explainNumber adds to the divergence of a sequence number what it is of the one that is due.
// newest is the side's packet before.
func (s *Judged) explainNumber(newest, due, got uint32, v *machine.Divergence) {
	if v.Rule != Sequence {
		return
	}
	fragments := uint32(s.frag.count)
	if s.Sent.passage(s.Rules, newest) == passedFragments && (got-due)&s.Rules.Mask() == fragments-1 {
		v.Because += fmt.Sprintf("; packet %d came in %d fragments, and the number steps by as many", newest, fragments)
	} else if says := relation(due, got, int(s.Rules.SequenceBits)); says != "" {
		v.Because += "; " + says
	}
}

// numberGaps counts where the numbers of a near side step by more than one.
type numberGaps struct {
	behindFragments, behindWhole int // behind a packet that came in fragments, behind any other
}

// gapsLeast is how many gaps, or refused packets, must be alike before that is told.
// Source: unmeasured, it decides an explanation and no verdict
const gapsLeast = 3

// count takes the next packet of the side, before it is recorded as sent.
func (g *numberGaps) count(r *gaffer.Rules, sent *passed, sequence uint32) {
	switch {
	case !sent.met || r.Distance(sequence, sent.top) < 2:
	case sent.passage(r, sent.top) == passedFragments:
		g.behindFragments++
	default:
		g.behindWhole++
	}
}

// explain adds to the divergence of a number where all gaps of the flow stand.
func (g *numberGaps) explain(v *machine.Divergence) {
	if v != nil && v.Rule == Sequence && g.behindWhole == 0 && g.behindFragments >= gapsLeast {
		v.Because += fmt.Sprintf("; all %d gaps come after packets that arrived in fragments", g.behindFragments)
	}
}

// refusals counts the packets that a near side read and did not take.
type refusals struct {
	total, late, fragments int
	lateRead               int // late packets that it read, taken or not
	malformed              int // packets with a fragment that a receiver drops
}

// add counts a refused packet.
func (x *refusals) add(p *pendingPacket) {
	x.total++
	if p.late {
		x.late++
	}
	if p.count > 0 {
		x.fragments++
	}
}

// reads counts a datagram that the side read.
func (x *refusals) reads(p *pendingPacket) {
	if p.late && p.count == 0 {
		x.lateRead++
	}
}

// why says what all refused packets have in common, and how many others were dropped.
func (x *refusals) why() (text string) {
	switch {
	case x.total < gapsLeast:
	case x.late == x.total && x.lateRead == x.total:
		text = fmt.Sprintf("; all %d had come late, behind a newer packet, and no late packet was taken", x.total)
	case x.late == x.total:
		text = fmt.Sprintf("; all %d had come late, behind a newer packet", x.total)
	case x.fragments == x.total:
		text = fmt.Sprintf("; all %d had come in fragments", x.total)
	}
	return text
}

// malformedRing keeps the newest packets with a fragment that a receiver drops, by sequence
// modulo its size, each plus one.
type malformedRing [64]uint64

func (m *malformedRing) enter(q uint32)    { m[q%64] = uint64(q) + 1 }
func (m *malformedRing) has(q uint32) bool { return m[q%64] == uint64(q)+1 }
