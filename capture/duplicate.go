package capture

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// A tap that sees a path at two points (`-i any`, a bridge and its ports, a
// mirror port) captures one datagram twice. Such a second capture is told from
// a datagram that was really sent twice, as a duplicating path or an endpoint
// does it, by what only the first can share: same addresses, IP identification
// and bytes within a moment, and beyond that
//
//   - another TTL, interface, VLAN tag, direction or packet type of a cooked
//     capture; or
//   - an IP identification that is not zero, microseconds apart: a sender
//     numbers each datagram anew, but 0 stands on all of those that must not be
//     fragmented, and IPv6 has none.
const (
	duplicateWindow = 5 * time.Millisecond
	mirrorWindow    = 250 * time.Microsecond
	duplicateSlots  = 2048 // a power of two
)

// seen is a datagram in the table.
type seen struct {
	key   uint64
	at    machine.Instant
	route uint64 // TTL, packet type and interface: how it passed the tap
}

// duplicateTable remembers recent datagrams, each in the one slot that its hash
// chooses.
type duplicateTable struct {
	seed  uint64
	slots *[duplicateSlots]seen
	count uint64
}

func (t *duplicateTable) init() {
	// Seeded at random, so that nobody can make datagrams that hash alike.
	t.seed = maphash.Bytes(maphash.MakeSeed(), nil)
	t.slots = new([duplicateSlots]seen)
}

// mix joins two words into one that depends on all bits of both.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd6e8feb86659fd93)
	return hi ^ lo
}

// digest hashes a payload: all of it up to 32 bytes, of longer ones four
// stretches of eight bytes spread over the length. Two that agree in those, and
// in addresses, IP identification and length, and come together, are the same:
// a protocol that could send two such has no way to tell them apart by their
// heads either.
func (t *duplicateTable) digest(b []byte) uint64 {
	n := len(b)
	switch {
	case n >= 32:
		middle := n/2 - 8
		return mix(
			mix(t.seed^binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])),
			mix(t.seed^binary.LittleEndian.Uint64(b[middle:]), binary.LittleEndian.Uint64(b[middle+8:])))
	case n >= 16:
		return mix(
			mix(t.seed^binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])),
			mix(t.seed^binary.LittleEndian.Uint64(b[n-16:]), binary.LittleEndian.Uint64(b[n-8:])))
	case n >= 8:
		return mix(t.seed^binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:]))
	}
	var word uint64
	for _, c := range b {
		word = word<<8 | uint64(c)
	}
	return mix(t.seed^word, uint64(n))
}

// route is how the frame passed the tap: what two captures of one datagram
// differ in.
func (c *cursor) route() uint64 {
	return uint64(c.p.TTL)<<56 | uint64(c.p.Direction)<<54 ^ uint64(c.kind)<<46 ^ uint64(c.tag)<<28 ^
		uint64(uint32(c.f.Interface))<<12 ^ uint64(c.device)
}

// check looks for a datagram among the recent ones, and notes it. identity
// stands for its headers; checksums are left out of it, since offloading fills
// them in between two points of a path.
func (t *duplicateTable) check(p *Packet, route, identity uint64, payload []byte) {
	key := t.digest(payload) ^ identity ^ uint64(p.Ref.File())
	slot := &t.slots[key%duplicateSlots]
	if slot.key == key && key != 0 {
		apart := p.At.Sub(slot.at).Abs()
		if apart <= duplicateWindow && slot.route != route || apart <= mirrorWindow && p.IPID != 0 {
			p.Duplicate = true
			t.count++
			return
		}
	}
	slot.key, slot.at, slot.route = key, p.At, route
}
