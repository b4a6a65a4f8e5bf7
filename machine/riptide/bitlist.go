package riptide

import (
	"math/bits"
	"slices"
)

// bitList is the list of bits behind a newest id: bit 1 is the id before it. Ids beyond the list
// count as set. It copies the library's list with its fault, so it keeps the library's 32-bit words
// and its count.
//
// The library moves every word at every shift. Its list grows while ids are missing, as lost notify
// messages are. Here the bits lie in a ring, so a usual shift only moves the start.
type bitList struct {
	ring  []uint32 // its length is a power of two; bit i of the list is bit start+i-1 of the ring, wrapped
	start uint32
	words int // number of words that the library's list has
	count int
	fixed bool // one word that never grows, as for acks
	most  int  // how many words the list grows to
	Fault bool
	spare []uint32 // a second buffer for lay
}

const (
	// wordBits is the size of a word of a bitList, in bits.
	// Source: library, Riptide 2.1.0: a segment of its Bitfield
	wordBits = 32
	// mostWords holds 65536 bits: no id can be further away.
	mostWords = 1 << 16 / wordBits
)

func newBitList(fixed bool, b *Behaviour) bitList {
	room := 4
	if fixed {
		room = 1
	}
	most := mostWords
	if b.WindowMost > 0 {
		most = b.WindowMost / wordBits
	}
	return bitList{ring: make([]uint32, room), words: 1, fixed: fixed, most: most, Fault: b.ShiftFault}
}

func (l *bitList) clone() bitList {
	c := *l
	c.ring, c.spare = slices.Clone(l.ring), nil
	return c
}

// word returns word i, from 0: bits 32i+1 to 32i+32.
func (l *bitList) word(i int) uint32 {
	at, last := l.start+uint32(i)*wordBits, uint32(len(l.ring)-1)
	w, shift := at/wordBits, at%wordBits
	return l.ring[w&last]>>shift | l.ring[(w+1)&last]<<(wordBits-shift)
}

func (l *bitList) setWord(i int, v uint32) {
	at, last := l.start+uint32(i)*wordBits, uint32(len(l.ring)-1)
	w, shift := at/wordBits, at%wordBits
	low, high := &l.ring[w&last], &l.ring[(w+1)&last]
	*low = *low&^(^uint32(0)<<shift) | v<<shift
	*high = *high&^(^uint32(0)>>(wordBits-shift)) | v>>(wordBits-shift)
}

// bit returns the word of the ring that holds a bit of the list, and the bit's mask.
func (l *bitList) bit(bit int) (word *uint32, mask uint32) {
	at := l.start + uint32(bit-1)
	return &l.ring[at/wordBits&uint32(len(l.ring)-1)], 1 << (at % wordBits)
}

// reset replaces the list by one of the given number of words. first is the first word; the others
// are empty.
func (l *bitList) reset(words int, first uint32) {
	l.room(words)
	clear(l.ring)
	l.words = words
	l.setWord(0, first)
}

// room makes the ring large enough for the given number of words. The list keeps its bits.
func (l *bitList) room(words int) {
	if words > len(l.ring) {
		l.lay(1 << bits.Len(uint(words-1)))
	}
}

// lay copies the list into a ring of the given number of words, in which it begins at 0.
func (l *bitList) lay(room int) {
	next := l.spare
	if len(next) != room {
		next = make([]uint32, room)
	}
	clear(next)
	for i := range l.words {
		next[i] = l.word(i)
	}
	l.ring, l.spare, l.start = next, nil, 0
}

// overflow returns how many bits a shift would push out, by the library's count. It is negative
// where there is room. With the fault, the library counts bits that it does not have.
func (l *bitList) overflow(by int) int {
	over := l.count + by - l.words*wordBits
	if l.Fault {
		return over
	}
	return min(over, l.count) // since commit 528d1d0
}

// shift moves all bits away from the newest id. It reports whether it dropped the place of an id
// that never came, because the list cannot grow any more.
func (l *bitList) shift(by int) (dropped bool) {
	switch {
	case l.fixed:
		l.count = min(l.count+by, wordBits)
	case l.overflow(by) >= 0:
		for l.count > 0 && l.set(l.count) {
			l.count--
		}
		l.count += by
		if l.count > l.words*wordBits {
			l.grow(min(by/wordBits+1, l.most-l.words))
			dropped = l.count > l.words*wordBits
			l.count = min(l.count, l.words*wordBits)
		}
	default:
		l.count += by
	}
	switch {
	case by < wordBits:
		l.start -= uint32(by)
		l.setWord(0, l.word(0)>>by<<by)
	case l.Fault:
		l.shiftFaulty(by)
	case by >= l.words*wordBits:
		clear(l.ring)
	default:
		l.start -= uint32(by)
		for i := range by / wordBits {
			l.setWord(i, 0)
		}
		rest := by % wordBits
		l.setWord(by/wordBits, l.word(by/wordBits)>>rest<<rest)
	}
	return dropped
}

// grow adds empty words.
func (l *bitList) grow(n int) {
	l.room(l.words + n)
	for range n {
		l.setWord(l.words, 0) // bits that an earlier shift pushed out may be there
		l.words++
	}
}

// shiftFaulty is the library's shift by 32 bits and more, with its fault. Each word moves only by
// the remainder of the shift modulo 32. Only the bits that leave it land where a shift by whole
// words would put them.
func (l *bitList) shiftFaulty(by int) {
	whole, rest := by/wordBits, by%wordBits
	old := l.ring
	l.lay(len(l.ring))
	l.spare = old
	words := l.ring[:l.words]
	s := len(words) - 1
	words[s] <<= rest
	for s -= 1 + whole; s >= 0; s-- {
		moved := uint64(words[s]) << rest
		words[s] = uint32(moved)
		words[s+1+whole] |= uint32(moved >> wordBits)
	}
}

// set reports whether a bit, from 1, is set.
func (l *bitList) set(bit int) bool {
	if bit > l.count || (bit-1)/wordBits >= l.words {
		return true
	}
	word, mask := l.bit(bit)
	return *word&mask != 0
}

// first16 returns the first 16 bits as set reports them.
func (l *bitList) first16() uint16 {
	if l.count < 16 {
		return uint16(l.word(0)) | ^uint16(0)<<max(l.count, 0)
	}
	return uint16(l.word(0))
}

// merge sets those of the first 32 bits that are set in a word.
func (l *bitList) merge(first uint32) { l.setWord(0, l.word(0)|first) }

func (l *bitList) mark(bit int) {
	if (bit-1)/wordBits < l.words {
		word, mask := l.bit(bit)
		*word |= mask
	}
}

// trimLast removes the last bit of the list. It returns its place and whether it was set. The
// library goes on below the first bit when a jump is larger than the list. Then the place is not
// positive, and a shift by a negative number picks the bit.
func (l *bitList) trimLast() (at int, set bool) {
	at = l.count
	l.count--
	return at, l.word(l.words-1)>>(uint(at-1)&(wordBits-1))&1 == 1
}
