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

	// A copy is found up to so many frames after the datagram: in 5 ms, of 400,000 frames a second.
	// The distance is that of frame numbers. So it is the same for a decoder that gets only some of the
	// frames, and for every seed.
	duplicateFrames = 1 << 11
	// The newest entry of each of so many lists is known. Four lists for each entry keep them short.
	duplicateLists = 4 * duplicateFrames
)

// seen is a datagram that passed not long ago.
type seen struct {
	key   uint64
	route uint64 // TTL, direction, packet type, VLAN tag and interface: how it passed the tap
	at    machine.Instant
	frame uint32 // the low bits of its number
	back  uint16 // how far before it the next older entry of its list is; 0 for none
}

// duplicateTable remembers recent datagrams of each file. A number of a file is small: the numbers count
// up from 0.
type duplicateTable struct {
	seed  uint64
	files []*recentTable // nil for files without a datagram so far
	count uint64
}

func (t *duplicateTable) init() {
	// A random seed, so that an attacker cannot make datagrams with equal hashes.
	t.seed = maphash.Bytes(maphash.MakeSeed(), nil)
}

// recentTable remembers the datagrams of the last duplicateFrames frames of a file, and no others:
//
//	newest:  list 0 -> entry 7          entries:  5  6  7  8  9   (a ring)
//	         list 1 -> entry 9                    ^--------'  |   entry 9 is 3 after entry 6, of the
//	         ...                                     ^--------'   same list; entry 7 is 2 after entry 5
//
// The hash of a datagram selects its list.
type recentTable struct {
	entries [duplicateFrames]seen
	newest  [duplicateLists]uint32 // by list: how many entries there were with its newest one
	count   uint32                 // of entries so far, those that were overwritten too
}

// find returns the newest datagram with a key, or nil.
func (t *recentTable) find(key uint64, frame uint32) *seen {
	at := t.newest[key%duplicateLists]
	for t.count-at < duplicateFrames && at != 0 {
		x := &t.entries[at%duplicateFrames]
		if int32(frame-x.frame) > duplicateFrames {
			return nil
		}
		if x.key == key {
			return x
		}
		if x.back == 0 {
			return nil
		}
		at -= uint32(x.back)
	}
	return nil
}

// add makes a datagram the newest one.
func (t *recentTable) add(key, route uint64, at machine.Instant, frame uint32) {
	t.count++
	newest := &t.newest[key%duplicateLists]
	back := t.count - *newest
	if back >= duplicateFrames {
		back = 0
	}
	*newest = t.count
	t.entries[t.count%duplicateFrames] = seen{key, route, at, frame, uint16(back)}
}

// of returns the datagrams of a file.
func (t *duplicateTable) of(file int) *recentTable {
	if file < len(t.files) && t.files[file] != nil {
		return t.files[file]
	}
	return t.begin(file)
}

func (t *duplicateTable) begin(file int) *recentTable {
	t.files = append(t.files, make([]*recentTable, max(0, file+1-len(t.files)))...)
	t.files[file] = new(recentTable)
	return t.files[file]
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
	key, frame, r := t.digest(payload)^identity, uint32(p.Ref.Frame()), t.of(p.Ref.File())
	if x := r.find(key, frame); x != nil && key != 0 {
		apart := p.At.Sub(x.at).Abs()
		if apart <= duplicateWindow && x.route != route || apart <= mirrorWindow && p.IPID != 0 {
			p.Duplicate = true
			t.count++
			return
		}
	}
	r.add(key, route, p.At, frame)
}
