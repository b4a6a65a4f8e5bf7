package capture

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// A tap that sees a path at two points captures one datagram twice. Examples
// are `-i any`, a bridge and its ports, and a mirror port. An endpoint or a
// duplicating path may also really send a datagram twice. Both cases show the
// same addresses, IP identification and bytes within a moment. A pair counts as
// captured twice if, in addition,
//
//   - the TTL, the interface, the VLAN tag, the direction or the packet type of
//     a cooked capture differs; or
//   - the IP identification is not zero, and the two are microseconds apart. A
//     sender gives each datagram a new number, so two with one number are one.
//     The number 0 proves nothing: all datagrams that must not be fragmented
//     carry it. IPv6 has no number.
const (
	duplicateWindow = 5 * time.Millisecond
	mirrorWindow    = 250 * time.Microsecond
	duplicateSlots  = 2048 // a power of two
)

// seen is a datagram in the table.
type seen struct {
	key   uint64
	at    machine.Instant
	route uint64 // TTL, direction, packet type, VLAN tag and interface: how it passed the tap
}

// duplicateTable remembers recent datagrams. The hash of a datagram selects its
// slot.
type duplicateTable struct {
	seed  uint64
	slots *[duplicateSlots]seen
	count uint64
}

func (t *duplicateTable) init() {
	// A random seed, so that an attacker cannot make datagrams with equal hashes.
	t.seed = maphash.Bytes(maphash.MakeSeed(), nil)
	t.slots = new([duplicateSlots]seen)
}

// mix hashes two words into one that depends on all bits of both.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd6e8feb86659fd93)
	return hi ^ lo
}

// digest hashes a payload: all of it up to 32 bytes, and four spans of eight
// bytes spread over a longer one. Two payloads that agree in those spans, come
// close together, and agree in addresses, IP identification and length count as
// the same datagram. A protocol that sent two different ones could not
// distinguish them by their headers either.
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

// route hashes how the frame passed the tap. Two captures of one datagram
// differ in it.
func (c *cursor) route() uint64 {
	return uint64(c.p.TTL)<<56 | uint64(c.p.Direction)<<54 ^ uint64(c.kind)<<46 ^ uint64(c.tag)<<28 ^
		uint64(uint32(c.f.Interface))<<12 ^ uint64(c.device)
}

// check looks for a datagram among the recent ones, and records it. identity is
// the hash of its headers. It leaves out the checksums, because offloading
// fills them in between two points of a path.
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
