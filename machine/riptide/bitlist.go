package riptide

import "slices"

// bitList is the list of bits behind a newest id: bit 1 is the id before it.
// It is the library's own, its fault included, so it keeps the library's words
// of 32 bits and its count. Ids beyond the list count as set.
type bitList struct {
	words []uint32
	count int
	fixed bool // one word only, as for acks
	fault bool
}

const (
	wordBits = 32
	// mostWords is more than any id can be away: 65536 bits.
	mostWords = 1 << 16 / wordBits
)

func newBitList(fixed, fault bool) bitList {
	return bitList{words: make([]uint32, 1, 4), fixed: fixed, fault: fault}
}

func (l *bitList) clone() bitList {
	c := *l
	c.words = slices.Clone(l.words)
	return c
}

// overflow gives how many bits would be pushed out by a shift, as the library
// counts it: negative where there is room.
func (l *bitList) overflow(by int) int { return l.count + by - len(l.words)*wordBits }

// shift moves all bits away from the newest id.
func (l *bitList) shift(by int) {
	whole, bits := by/wordBits, by%wordBits
	switch {
	case l.fixed:
		l.count = min(l.count+by, wordBits)
	case l.overflow(by) >= 0:
		for l.count > 0 && l.set(l.count) {
			l.count--
		}
		l.count += by
		if l.count > len(l.words)*wordBits {
			for range min(whole+1, mostWords-len(l.words)) {
				l.words = append(l.words, 0)
			}
			l.count = min(l.count, len(l.words)*wordBits)
		}
	default:
		l.count += by
	}
	if !l.fault && whole > 0 {
		l.shiftWords(whole)
		whole = 0
	}
	s := len(l.words) - 1
	l.words[s] <<= bits
	// The fault: a word moves by the bits, but only what leaves it lands where a
	// shift by whole words would put it.
	for s -= 1 + whole; s >= 0; s-- {
		moved := uint64(l.words[s]) << bits
		l.words[s] = uint32(moved)
		l.words[s+1+whole] |= uint32(moved >> wordBits)
	}
}

func (l *bitList) shiftWords(n int) {
	if n >= len(l.words) {
		clear(l.words)
		return
	}
	copy(l.words[n:], l.words)
	clear(l.words[:n])
}

// set reports whether a bit, from 1, is set.
func (l *bitList) set(bit int) bool {
	if bit > l.count {
		return true
	}
	bit--
	if bit/wordBits >= len(l.words) {
		return true
	}
	return l.words[bit/wordBits]>>(bit%wordBits)&1 == 1
}

// first16 gives the first 16 bits, as set has them.
func (l *bitList) first16() uint16 {
	if l.count < 16 {
		return uint16(l.words[0]) | ^uint16(0)<<max(l.count, 0)
	}
	return uint16(l.words[0])
}

func (l *bitList) mark(bit int) {
	bit--
	if bit/wordBits < len(l.words) {
		l.words[bit/wordBits] |= 1 << (bit % wordBits)
	}
}

// trimLast takes the last bit off the list, and gives where it stood and
// whether it was set. The library goes on below the first bit when a jump is
// larger than the list; the place is then not positive, and the bit one that a
// shift by a negative number picks.
func (l *bitList) trimLast() (at int, set bool) {
	at = l.count
	l.count--
	return at, l.words[len(l.words)-1]>>(uint(at-1)&(wordBits-1))&1 == 1
}
