package capture

import (
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
//   - another TTL, another interface or another packet type of a cooked capture; or
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
	seed  maphash.Seed
	slots *[duplicateSlots]seen
	count uint64
}

func (t *duplicateTable) init() {
	t.seed = maphash.MakeSeed()
	t.slots = new([duplicateSlots]seen)
}

// mix joins two words into one that depends on all bits of both.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd6e8feb86659fd93)
	return hi ^ lo
}

// check looks for the datagram at the cursor among the recent ones, and notes
// it. header is what the transport header identifies it by; checksums are left
// out, since offloading fills them in between two points of a path.
func (t *duplicateTable) check(c *cursor, header uint64, payload []byte) {
	p := c.p
	key := maphash.Bytes(t.seed, payload) ^ mix(c.mix^uint64(p.Ref.File()), header)
	slot := &t.slots[key%duplicateSlots]
	route := uint64(p.TTL)<<56 | uint64(c.kind)<<48 ^ uint64(uint32(c.f.Interface))<<20 ^ uint64(c.device)
	if slot.key == key && key != 0 {
		apart := p.At.Sub(slot.at).Abs()
		if apart <= duplicateWindow && slot.route != route || apart <= mirrorWindow && p.IPID != 0 {
			p.Duplicate = true
			t.count++
			return
		}
	}
	*slot = seen{key: key, at: p.At, route: route}
}
