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

	// The table has so many sets, a power of two, of so many datagrams each. A datagram that is
	// pushed out of its set before its copy comes would make the copy a second sending. Which ones
	// share a set depends on the seed, so that would also differ from run to run. With one place in
	// each of 2048 sets, 4 % of the runs over 60 frames differed.
	duplicateSets = 512
	duplicateWays = 4
)

// seen are the newest datagrams of a set.
type seen struct {
	keys   [duplicateWays]uint64 // 0 for an empty place
	at     [duplicateWays]machine.Instant
	routes [duplicateWays]uint64 // TTL, direction, packet type, VLAN tag and interface: how they passed the tap
	next   uint8                 // the place of the oldest one
}

// duplicateTable remembers recent datagrams. The hash of a datagram selects its
// set.
type duplicateTable struct {
	seed  uint64
	sets  *[duplicateSets]seen
	count uint64
}

func (t *duplicateTable) init() {
	// A random seed, so that an attacker cannot make datagrams with equal hashes.
	t.seed = maphash.Bytes(maphash.MakeSeed(), nil)
	t.sets = new([duplicateSets]seen)
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
	set := &t.sets[key%duplicateSets]
	place := -1
	for i := range set.keys {
		if set.keys[i] == key {
			place = i
			break
		}
	}
	if place < 0 {
		place = int(set.next % duplicateWays)
		set.next++
	} else if key != 0 {
		apart := p.At.Sub(set.at[place]).Abs()
		if apart <= duplicateWindow && set.routes[place] != route || apart <= mirrorWindow && p.IPID != 0 {
			p.Duplicate = true
			t.count++
			return
		}
	}
	set.keys[place], set.at[place], set.routes[place] = key, p.At, route
}
