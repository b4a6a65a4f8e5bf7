// Package leaks makes captures in which every secret byte is marked, and
// searches anonymised captures for the marks.
//
//	marks.go   what is marked, and the search
//	link.go    link headers around packets, and frames of other protocols
//	ip.go      IP packets with options, extension headers, fragments, tunnels
//	upper.go   UDP and TCP, and their contents
//	file.go    pcap and pcapng files with all their blocks
//
// For example, a frame's route option consists of marks, and its addresses are
// in 198.51.100.0/24: the anonymised capture must contain neither. A sequence
// number is not marked, since it may stay.
package leaks

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
)

// window is how many marked bytes in a row count as a find.
const window = 4

// Marks are the marked bytes of a capture.
type Marks struct {
	chance *rand.Rand
	places map[[window]byte]string // the place of each four bytes in a row in the capture
	whole  map[string]string       // the place of bytes that are searched for as a whole
}

func newMarks(seed uint64) *Marks {
	return &Marks{
		chance: rand.New(rand.NewPCG(seed, 0x6c65616b)), places: map[[window]byte]string{},
		whole: map[string]string{},
	}
}

// Alphabets of marks: capital letters, and bytes from 0xc1 to 0xfe. What
// ackscope writes does not contain four of either in a row, except in times.
// The times of the captures are in microseconds, and are written in
// nanoseconds. So their lowest byte is a multiple of 8, and no byte of a mark
// is one.
var letters, high = alphabet('A', 'Z'), alphabet(0xc1, 0xfe)

func alphabet(from, to byte) (list []byte) {
	for x := from; x <= to; x++ {
		if x%8 != 0 {
			list = append(list, x)
		}
	}
	return list
}

// bytes returns n marked bytes of one of the alphabets.
func (m *Marks) bytes(place string, n int) []byte {
	if m.chance.IntN(2) == 0 {
		return m.text(place, n)
	}
	return m.draw(place, n, high)
}

// text returns n marked letters.
func (m *Marks) text(place string, n int) []byte { return m.draw(place, n, letters) }

func (m *Marks) draw(place string, n int, from []byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = from[m.chance.IntN(len(from))]
	}
	m.note(place, b)
	return b
}

// note marks b.
func (m *Marks) note(place string, b []byte) {
	for i := 0; i+window <= len(b); i++ {
		m.places[[window]byte(b[i:])] = place
	}
}

// ip4 returns a marked IPv4 address from the ranges for documentation (RFC
// 5737).
func (m *Marks) ip4(place string) []byte {
	b := []byte{198, 51, 100, byte(1 + m.chance.IntN(8))}
	if m.chance.IntN(2) == 0 {
		b = []byte{203, 0, 113, byte(1 + m.chance.IntN(8))}
	}
	m.address(place, b)
	return b
}

// ip6 returns a marked IPv6 address.
func (m *Marks) ip6(place string) []byte {
	b := []byte{0x20, 0x01, 0x0d, 0xb8, 0xde, 0xad, 15: byte(1 + m.chance.IntN(8))}
	m.address(place, b)
	return b
}

// address marks an IP address: its bytes, its digits, and its text.
func (m *Marks) address(place string, b []byte) {
	a, _ := netip.AddrFromSlice(b)
	m.whole[string(b[:min(len(b), 6)])] = place
	m.whole[a.String()] = place + ", as text"
}

// mac returns a marked hardware address.
func (m *Marks) mac(place string) []byte {
	b := []byte{0xaa, 0xbb, 0xcc, 0xdd, 0xee, byte(m.chance.IntN(8))}
	m.whole[string(b[:5])] = place
	m.whole[fmt.Sprintf("%x:%x:%x", b[0], b[1], b[2])] = place + ", as text"
	return b
}

// Planted counts the marks in the capture b, by place. A search for a mark that
// the capture does not contain would prove nothing. A place that the snap
// length cut off has 0.
func (m *Marks) Planted(b []byte) map[string]int {
	places := map[string]int{}
	for _, place := range m.places {
		places[place] = 0
	}
	seen := map[[window]byte]bool{}
	for i := 0; i+window <= len(b); i++ {
		w := [window]byte(b[i:])
		if place, ok := m.places[w]; ok && !seen[w] {
			seen[w] = true
			places[place]++
		}
	}
	for w, place := range m.whole {
		places[place] += bytes.Count(b, []byte(w))
	}
	return places
}

// Find returns the places of the marks that are left in an output. x and y are
// outputs of one capture under two keys. A byte that was kept is the same in
// both outputs. A byte that looks like a mark by chance differs.
func (m *Marks) Find(x, y []byte) (found []string) {
	for i := 0; i+window <= min(len(x), len(y)); i++ {
		w := [window]byte(x[i:])
		if place, ok := m.places[w]; ok && [window]byte(y[i:]) == w {
			found = append(found, fmt.Sprintf("%s: % x at byte %d", place, w, i))
		}
	}
	for b, place := range m.whole {
		for i := 0; ; i++ {
			next := bytes.Index(x[i:], []byte(b))
			if next < 0 {
				break
			}
			if i += next; i+len(b) <= len(y) && string(y[i:i+len(b)]) == b {
				found = append(found, fmt.Sprintf("%s: % x at byte %d", place, b, i))
			}
		}
	}
	slices.Sort(found)
	return found
}

// one returns the result of one of several functions, chosen at random.
func (m *Marks) one(makers ...func() []byte) []byte { return makers[m.chance.IntN(len(makers))]() }

func be16(v int) []byte    { return binary.BigEndian.AppendUint16(nil, uint16(v)) }
func be32(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }

// join concatenates parts.
func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
