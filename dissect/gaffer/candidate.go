package gaffer

import (
	"errors"
	mathbits "math/bits"

	"github.com/ackscope/ackscope/machine"
	common "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// How evidence is weighed, in bits against chance. A counter is common in game traffic,
// so counting alone is worth a limited amount. Acks that follow the other side's
// counter do not occur by chance.
const (
	numberBits  = 16 // most that a sequence number is worth, whatever its width
	mostStep    = 20 // most evidence from both sides' counting
	mostAck     = 300
	mostForm    = 12 // most evidence from the header's form alone
	worst       = -8 // evidence of one contradiction
	malformed   = -4 // a datagram that the dialect cannot read: someone may have injected it
	hopeless    = -60
	settleBits  = 40
	settleLead  = 16
	claimBits   = 24 // bits needed when no more datagrams will come
	mostPackets = 512
)

// candidate is one dialect that is tried on a flow.
type candidate struct {
	profile *wire.Profile
	sides   [2]candidateSide
	step    int16 // evidence of sequence numbers
	ack     int16 // of acks
	form    int16 // of the header's form
	sum     int16 // of checksums that agree on a protocol id
	id      uint32
	crc     uint32 // of the last datagram that voted
	votes   uint8  // for id; 0: no id was solved
	matches uint8  // checksums that confirmed id
	read    uint8  // datagrams that the dialect can read
	bad     uint8  // datagrams that it cannot read
	cut     bool   // the snap length cut off the header of a datagram
	dead    bool
}

// candidateSide is what a candidate remembers about one side.
type candidateSide struct {
	seen     uint64 // bit n: the packet newest-n passed the tap
	ackBits  uint64 // of its newest header
	newest   uint32
	ackNow   uint32 // of its newest header
	lag      int32  // how far ackNow was behind the peer's newest packet
	packets  uint8
	steps    uint8 // of these packets, those whose sequence stepped by one
	acks     uint8 // headers that acknowledged something
	named    uint8 // of these headers, those that named a packet that passed the tap
	lastPart uint8 // of a fragmented packet: id of its last fragment
	acked    bool  // ackNow and ackBits are set
	base     baseSide
}

// total returns the evidence for c, in bits.
func (c *candidate) total() int {
	if c.dead {
		return hopeless
	}
	return int(c.step) + int(c.ack) + int(c.form) + int(c.sum)
}

func (c *candidate) feed(d *machine.Datagram) {
	if c.dead {
		return
	}
	var pk wire.Packet
	if !c.profile.Fits(d.Bytes, d.Length) {
		c.fail()
		return
	}
	if err := c.profile.Try(d.Bytes, d.Length, &pk); err != nil {
		if errors.Is(err, common.ErrSnapped) {
			c.cut = true
		} else {
			c.fail()
		}
		return
	}
	if pk.Kind == wire.KindFragment && pk.PayloadLen == 0 {
		c.fail() // a fragment has at least a byte: this is another protocol, or a mistake
		return
	}
	if b, ok := c.profile.PacketBodies.(*bodies); ok && pk.Kind == wire.KindRegular && !b.fill(&pk, d.Bytes) {
		c.fail()
		return
	}
	if c.profile.PayloadLengthBits > 0 {
		c.add(&c.form, 6, mostForm) // the length in the packet is the real one
	}
	me, peer := &c.sides[d.From], &c.sides[d.From.Other()]
	if c.profile.SequenceBits() != 0 {
		if newest := c.number(me, &pk); newest && pk.HasHeader {
			c.weighBase(me, peer, pk.Header)
			c.acks(me, peer, pk.Header)
		}
	}
	me.packets = min(me.packets, 254) + 1
	c.read = min(c.read, 254) + 1
	if c.profile.HasCRC() && len(d.Bytes) == d.Length {
		c.solve(d.Bytes, pk.CRC)
	}
	if c.profile.Form == wire.FormReliable {
		if c.profile.Canonical(d.Bytes, &pk) {
			c.add(&c.form, 2, mostForm)
		} else {
			c.add(&c.form, worst, mostForm)
		}
	}
	if c.total() <= hopeless {
		c.dead = true
	}
}

// solve counts a datagram's checksum as a vote for a protocol id.
func (c *candidate) solve(b []byte, crc uint32) {
	if c.votes > 0 && crc == c.crc {
		return // a copy confirms nothing
	}
	c.crc = crc
	id, ok := c.profile.SolveID(b)
	switch {
	case !ok:
	case c.votes == 0:
		c.id, c.votes = id, 1
	case id == c.id:
		c.votes = min(c.votes, 254) + 1
		c.matches = min(c.matches, 254) + 1
		c.add(&c.sum, 32, mostAck)
	default:
		c.votes--
		c.add(&c.sum, 2*worst, mostAck)
	}
}

func (c *candidate) fail() {
	c.bad = min(c.bad, 254) + 1
	c.add(&c.form, malformed, mostForm)
	if c.total() <= hopeless {
		c.dead = true
	}
}

// add moves a score by bits, up to most. The limit keeps early evidence from
// outweighing what comes later.
func (c *candidate) add(score *int16, bits, most int) {
	*score = int16(max(min(int(*score)+bits, most), 2*hopeless))
}

// number weighs a sequence number: a step by one is worth 15 bits, a step by 256 costs
// one. It reports whether the packet is the side's newest: an overtaken header says
// nothing new.
func (c *candidate) number(me *candidateSide, pk *wire.Packet) (newest bool) {
	if me.packets == 0 {
		me.newest, me.seen, me.base.first = pk.Sequence, 1, pk.Sequence
		me.lastPart = uint8(pk.FragmentID)
		return true
	}
	d := c.profile.Space().Distance(pk.Sequence, me.newest)
	switch {
	case d > 0:
		if d == 1 {
			me.steps = min(me.steps, 254) + 1
		}
		c.add(&c.step, max(numberBits-1-2*(mathbits.Len(uint(d))-1), worst), mostStep)
		me.seen = me.seen<<uint(min(d, 64)) | 1
		me.newest, me.lastPart = pk.Sequence, uint8(pk.FragmentID)
		return true
	case d == 0:
		if pk.Kind == wire.KindFragment && uint8(pk.FragmentID) != me.lastPart {
			// The next fragment of the same packet. Only in real fragments do the counts agree.
			c.add(&c.step, 4, mostStep)
			me.lastPart = uint8(pk.FragmentID)
			return false
		}
		c.add(&c.step, -3, mostStep) // a copy, or a constant
		return false
	default:
		c.add(&c.step, max(numberBits-5-2*(mathbits.Len(uint(-d))-1), worst), mostStep)
		if -d < 64 {
			me.seen |= 1 << uint(-d)
		}
		return false
	}
}

// acks weighs the ack fields of a side's newest header.
func (c *candidate) acks(me, peer *candidateSide, h wire.Header) {
	p := c.profile
	if p.NothingReceived(h) {
		if !me.acked {
			c.add(&c.ack, 2, mostAck)
			me.acked, me.ackNow, me.ackBits = true, h.Ack, 0
		} else if me.ackBits != 0 {
			c.add(&c.ack, worst, mostAck) // acks are never withdrawn
		}
		return
	}
	if !me.acked && h.Ack == 0 && h.AckBits == 0 && p.AckBase == wire.AckMinusN {
		return // an endpoint that has received nothing and begins its ack at 0: no bit names a packet
	}
	me.acks = min(me.acks, 254) + 1
	space := p.Space()
	moved := !me.acked || h.Ack != me.ackNow
	score := 0
	if p.AckBase == wire.AckMinusN && h.AckBits&1 == 0 {
		// Bit 0 is ack itself. Only reliable leaves it clear: its fragments move ack before
		// their packet is whole.
		if score = -6; p.Form == wire.FormReliable {
			score = -2
		}
	}
	if peer.packets > 0 {
		lag := space.Distance(peer.newest, h.Ack)
		if lag >= 0 && lag < 64 && peer.seen>>uint(lag)&1 == 1 {
			me.named = min(me.named, 254) + 1
		}
		score += c.position(me, peer, h, lag, moved)
	} else if moved && me.acked {
		// The other side was not captured. Its acks must then move on like a counter. That
		// proves counting and no more; ack_bits must prove the rest.
		if d := space.Distance(h.Ack, me.ackNow); d > 0 {
			c.add(&c.step, min(numberBits-4-2*(mathbits.Len(uint(d))-1), 4), mostStep)
		} else {
			score += worst
		}
	}
	if me.acked && moved {
		score += c.shift(me, h)
	}
	if !moved && h.AckBits != me.ackBits && me.ackBits&^h.AckBits != 0 {
		score += worst // acks are never withdrawn
	}
	c.add(&c.ack, max(score, 2*worst), mostAck)
	me.acked, me.ackNow, me.ackBits = true, h.Ack, h.AckBits
}

// unnamed reports whether the acks are few and hardly any names a packet that passed
// the tap, although both sides were captured. Then their bits may be chance.
func (c *candidate) unnamed() bool {
	a, b := &c.sides[0], &c.sides[1]
	acks, named := int(a.acks)+int(b.acks), int(a.named)+int(b.named)
	return a.packets > 0 && b.packets > 0 && acks > 1 && acks < 8 && 3*named < acks
}

// position weighs where an ack points among the peer's packets that passed the tap.
func (c *candidate) position(me, peer *candidateSide, h wire.Header, lag int, moved bool) int {
	if !moved {
		// This side received nothing new, or the field never changes.
		if lag > 64 && peer.packets > 16 {
			return -1
		}
		return 0
	}
	if lag < 0 {
		return max(numberBits-8-2*(mathbits.Len(uint(-lag))-1), worst) // the capture missed packets, or chance
	}
	score := max(numberBits-4-mathbits.Len(uint(lag)), worst)
	if me.acked && me.acks > 1 {
		// Acks keep pace with what they acknowledge: their lag stays about the same.
		drift := lag - int(me.lag)
		score = max(min(score, numberBits-4-2*mathbits.Len(uint(max(drift, -drift)))), worst)
	}
	me.lag = int32(lag)
	if lag >= 64 {
		return score
	}
	// Compare what the ack newly covers with what passed the tap. Packets that passed and
	// are not named may have been lost beyond the tap. Named packets that did not pass
	// were missed by the capture, which is rare.
	fresh := 32
	if me.acked {
		if d := c.profile.Space().Distance(h.Ack, me.ackNow); d > 0 && d < 32 {
			fresh = d
		}
	}
	fresh = min(fresh, c.profile.AckBitsWidth(), 64-lag, int(peer.packets))
	if c.profile.AckBase != wire.AckMinusN || fresh <= 0 {
		return score
	}
	mask := ^uint64(0) >> uint(64-fresh)
	passed, named := peer.seen>>uint(lag)&mask, h.AckBits&mask
	score += min(mathbits.OnesCount64(passed&named), 4)
	if covered := int(peer.packets) > fresh; covered {
		score -= min(3*mathbits.OnesCount64(named&^passed), 12)
		score += min(mathbits.OnesCount64(mask&^(named|passed)), 4)
	}
	return score
}

// shift compares ack_bits with those of the side's previous header. A packet that was
// named stays named, at its new position.
func (c *candidate) shift(me *candidateSide, h wire.Header) int {
	d := c.profile.Space().Distance(h.Ack, me.ackNow)
	width := c.profile.AckBitsWidth()
	if d <= 0 || d >= width {
		return 0
	}
	mask := ^uint64(0) >> uint(64-width)
	expected := me.ackBits << uint(d) & mask
	if c.profile.AckBase == wire.AckMinusNMinusOne {
		expected |= 1 << uint(d-1)
	}
	if taken := mathbits.OnesCount64(expected &^ h.AckBits); taken > 0 {
		return -4 * taken
	}
	old := mask >> uint(d) << uint(d) // positions that both headers cover
	ones, zeros := mathbits.OnesCount64(expected), mathbits.OnesCount64(old&^(expected|h.AckBits))
	if zeros == 0 || ones == 0 {
		return 1
	}
	return min(ones, zeros, 8) + 2
}
