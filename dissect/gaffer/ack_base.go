package gaffer

import (
	"fmt"
	mathbits "math/bits"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Evidence about what bit 0 of ack_bits stands for, in bits. A profile says ack itself
// (ack-n) or the packet before it (ack-n-1). Datagrams read alike either way, and while
// every bit is one, they mean nearly the same. A lost packet shows which it is. For
// example, 11 is lost, and a header acks 12. With ack-n its low bits are 01, with
// ack-n-1 they are 10.
const (
	baseBroken = 8  // a header that no correct endpoint of that meaning writes
	baseUnseen = 3  // a packet that is named and did not pass the tap: the capture rarely lacks one
	baseMany   = 12 // most for such packets of one header
	baseStart  = 4  // the first packet that passed is not named, or the one before it is
	baseMost   = 64 // most that one side can say: the other side may contradict it
)

// baseSide is what the headers of one side say about its ack_bits.
type baseSide struct {
	first   uint32   // number of its first packet that passed the tap
	lastAck uint32   // of its newest header
	against [2]int16 // evidence against each wire.AckBase
	broken  [2]uint8 // headers that no correct endpoint of that wire.AckBase writes
	empty   bool     // it said that it had received nothing
	acked   bool     // lastAck is set
}

// weighBase weighs the newest header of a side that acks something, or says that the
// side has received nothing.
func (c *candidate) weighBase(me, peer *candidateSide, h wire.Header) {
	b, p := &me.base, c.profile
	switch {
	case p.NothingReceived(h):
		b.empty = true
		return
	case h.Ack == 0 && h.AckBits == 0 && !b.empty && !b.acked:
		return // ack-n-1: packet 0 was received; ack-n: nothing was, and ack begins at 0
	case b.acked && h.Ack == b.lastAck:
		return
	}
	space, width := p.Space(), p.AckBitsWidth()
	ahead := 0
	if b.acked {
		ahead = space.Distance(h.Ack, b.lastAck)
	}
	if h.AckBits&1 == 0 && p.Form == wire.FormFixed && h.Ack != space.Mask() {
		b.breaks(wire.AckMinusN) // ack itself is not named, and it is not that of a fresh buffer
	}
	if ahead > 0 && ahead <= width && b.lastAck != space.Mask() && h.AckBits>>uint(ahead-1)&1 == 0 {
		b.breaks(wire.AckMinusNMinusOne) // the ack before is no longer named
	}
	if peer.packets > 0 {
		c.weighNamed(b, peer, h, ahead)
	}
	b.lastAck, b.acked = h.Ack, true
}

// weighNamed compares what a header newly names with the packets that passed the tap. The
// argument ahead is how far its ack moved. It is 0 for the side's first ack.
func (c *candidate) weighNamed(b *baseSide, peer *candidateSide, h wire.Header, ahead int) {
	space := c.profile.Space()
	lag, depth := space.Distance(peer.newest, h.Ack), space.Distance(h.Ack, peer.base.first)
	if lag < 0 || lag >= 64 || depth < 0 {
		return
	}
	// Bit n of passed and of named is packet ack-n, as in gaffer.Claims.
	passed, named := peer.seen>>uint(lag), [2]uint64{h.AckBits, h.AckBits<<1 | 1}
	fresh := min(depth+1, c.profile.AckBitsWidth(), 64-lag)
	if ahead > 0 {
		fresh = min(fresh, ahead)
	}
	mask := ^uint64(0) >> uint(64-fresh)
	for base, bits := range named {
		b.against[base] += int16(min(baseUnseen*mathbits.OnesCount64(bits&mask&^passed), baseMany))
	}
	if ahead == 0 && depth < c.profile.AckBitsWidth()-1 && h.AckBits>>uint(depth+1) == 0 {
		if h.AckBits>>uint(depth)&1 == 0 {
			b.against[wire.AckMinusN] += baseStart
		} else if b.empty || peer.base.first == 0 {
			b.breaks(wire.AckMinusNMinusOne)
		} else {
			b.against[wire.AckMinusNMinusOne] += baseStart
		}
	}
	for base := range b.against {
		b.against[base] = min(b.against[base], 2*baseMost)
	}
}

func (b *baseSide) breaks(base wire.AckBase) {
	b.broken[base] = min(b.broken[base], 254) + 1
	b.against[base] = min(b.against[base]+baseBroken, 2*baseMost)
}

// leans returns the evidence that bits mean base and not the other meaning, in bits.
func (c *candidate) leans(base wire.AckBase) (bits int) {
	for side := range c.sides {
		a := &c.sides[side].base.against
		bits += max(min(int(a[1-base])-int(a[base]), baseMost), -baseMost)
	}
	return bits
}

// sayBase says what bit 0 stands for and what shows it, if two profiles differ in that.
func (f contender) sayBase() string {
	if !f.rivalled {
		return ""
	}
	base := f.c.profile.AckBase
	means := [2]string{wire.AckMinusN: "ack itself", wire.AckMinusNMinusOne: "the packet before ack"}
	n := int(f.c.sides[0].base.broken[1-base]) + int(f.c.sides[1].base.broken[1-base])
	switch {
	case f.c.leans(base) < settleLead:
		return fmt.Sprintf("too little shows whether bit 0 of ack_bits is ack itself or the packet before it: %s says %s",
			f.entry.name, means[base])
	case n == 1:
		return fmt.Sprintf("1 header shows that bit 0 of ack_bits is %s", means[base])
	case n > 1:
		return fmt.Sprintf("%d headers show that bit 0 of ack_bits is %s", n, means[base])
	}
	return "the packets that are named show that bit 0 of ack_bits is " + means[base]
}

// review looks at a flow after a whole run. Its first datagrams may not have shown what
// bit 0 of ack_bits is: with no loss, nothing shows it.
func (s *profileSet) review(c *dissect.Config, facts *machine.Facts) (better *dissect.Config, phrase string) {
	p, ok := c.Profile.(*wire.Profile)
	if ok && p.Form == wire.FormReliable {
		return reviewZeroed(c, p, facts)
	}
	if !ok || p.Form != wire.FormFixed || !p.HasAcks() {
		return nil, ""
	}
	own, other := int(p.AckBase), int(1-p.AckBase)
	e := &facts.Readings
	broken := func(base int) uint32 { return e.Broken[0][base] + e.Broken[1][base] }
	if !e.Shows(other) && !e.Shows(own) && !e.Doubts(own) && !e.Disputed() {
		facts.Doubtful = facts.Doubtful && e.Differ
		return nil, "" // nothing speaks for another profile, as in most flows
	}
	rival := s.rival(p)
	switch {
	case e.Shows(other) && rival == nil:
		facts.Doubtful = true
		return nil, fmt.Sprintf("%d headers do not fit ack_base %s and fit %s, which no profile with this header has",
			broken(own), p.AckBase, 1-p.AckBase)
	case !e.Shows(other):
		disputed := rival != nil && e.Disputed()
		if shown := e.Shows(own); shown && facts.Doubtful {
			facts.Doubtful = false
			phrase = fmt.Sprintf("%d headers of the whole capture do not fit ack_base %s", broken(other), 1-p.AckBase)
		} else if disputed {
			phrase = "the headers of one side do not fit ack_base ack-n, and those of the other do not fit ack-n-1"
		}
		facts.Doubtful = facts.Doubtful && e.Differ || e.Doubts(own) || disputed
		return nil, phrase
	}
	config := *rival.config
	config.Facts = machine.Facts{}
	if w := rival.wire; w.HasCRC() && w.ProtocolID == nil && p.ProtocolID != nil {
		config.Profile = w.WithProtocolID(*p.ProtocolID)
	}
	return &config, fmt.Sprintf("%d headers of the whole capture do not fit ack_base %s", broken(own), p.AckBase)
}

// rival returns the last profile that differs from p only in the meaning of ack_bits, or
// nil.
func (s *profileSet) rival(p *wire.Profile) (found *entry) {
	name := family(p)
	for _, list := range [2][]*entry{s.plain, s.framed} {
		for _, e := range list {
			if e.family == name && e.wire.AckBase != p.AckBase {
				found = e
			}
		}
	}
	return found
}
