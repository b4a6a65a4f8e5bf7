package riptide

import (
	"math/rand/v2"
	"testing"
)

// plainList is a direct copy of the library's list: it moves every word at every shift.
type plainList struct {
	words        []uint32
	count        int
	fixed, fault bool
	most         int // words
}

func (l *plainList) set(bit int) bool {
	return bit > l.count || (bit-1)/wordBits >= len(l.words) || l.words[(bit-1)/wordBits]>>((bit-1)%wordBits)&1 == 1
}

func (l *plainList) mark(bit int) {
	if (bit-1)/wordBits < len(l.words) {
		l.words[(bit-1)/wordBits] |= 1 << ((bit - 1) % wordBits)
	}
}

func (l *plainList) shift(by int) (dropped bool) {
	whole, bits := by/wordBits, by%wordBits
	switch overflow := l.count + by - len(l.words)*wordBits; {
	case l.fixed:
		l.count = min(l.count+by, wordBits)
	case overflow >= 0:
		for l.count > 0 && l.set(l.count) {
			l.count--
		}
		l.count += by
		if l.count > len(l.words)*wordBits {
			l.words = append(l.words, make([]uint32, min(whole+1, l.most-len(l.words)))...)
			dropped = l.count > len(l.words)*wordBits
			l.count = min(l.count, len(l.words)*wordBits)
		}
	default:
		l.count += by
	}
	if !l.fault && whole > 0 {
		moved := make([]uint32, len(l.words))
		copy(moved[min(whole, len(moved)):], l.words)
		l.words, whole = moved, 0
	}
	s := len(l.words) - 1
	l.words[s] <<= bits
	for s -= 1 + whole; s >= 0; s-- {
		moved := uint64(l.words[s]) << bits
		l.words[s] = uint32(moved)
		l.words[s+1+whole] |= uint32(moved >> wordBits)
	}
	return dropped
}

// TestBitList compares the list in a ring with the plain list.
func TestBitList(t *testing.T) {
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 1))
		fixed, fault := seed&1 == 1, seed&2 == 2
		b, most := &Behaviour{ShiftFault: fault}, mostWords
		if seed&4 == 4 {
			b.WindowMost, most = 1024, 32
		}
		ours := newBitList(fixed, b)
		plain := &plainList{words: make([]uint32, 1), fixed: fixed, fault: fault, most: most}
		longest := []int{1, 3, 40, 200, 32767}[seed/4%5]
		for step := range 600 {
			switch r.IntN(12) {
			case 0:
				first := r.Uint32()
				ours.merge(first)
				plain.words[0] |= first
			case 1:
				first := r.Uint32()
				ours.setWord(0, first)
				plain.words[0] = first
			case 2:
				if fixed || r.IntN(30) > 0 {
					continue
				}
				first, words := r.Uint32(), max(len(plain.words), 3)
				ours.reset(words, first)
				ours.count = (words - 1) * wordBits
				plain.words, plain.count = make([]uint32, words), (words-1)*wordBits
				plain.words[0] = first
			case 3:
				if n := min(ours.count, r.IntN(3)); n > 0 {
					was := plain.count
					at, set := ours.trimLast()
					if want := plain.words[len(plain.words)-1]>>(uint(was-1)&(wordBits-1))&1 == 1; at != was || set != want {
						t.Fatalf("seed %d step %d: trimmed %d %t, want %d %t", seed, step, at, set, was, want)
					}
					plain.count--
				}
			case 4, 5, 6:
				bit := 1 + r.IntN(2*longest)
				ours.mark(bit)
				plain.mark(bit)
			case 7:
				ours = ours.clone()
			default:
				by := 1 + r.IntN(longest)
				if got, want := ours.shift(by), plain.shift(by); got != want {
					t.Fatalf("seed %d step %d: a shift by %d drops what never came: %t, want %t", seed, step, by, got, want)
				}
			}
			if ours.count != plain.count || ours.words != len(plain.words) {
				t.Fatalf("seed %d step %d: %d bits in %d words, want %d in %d", seed, step, ours.count, ours.words, plain.count,
					len(plain.words))
			}
			for i, want := range plain.words {
				if got := ours.word(i); got != want {
					t.Fatalf("seed %d step %d: word %d of %d is %#x, want %#x", seed, step, i, len(plain.words), got, want)
				}
			}
			for range 8 {
				if bit := 1 + r.IntN(2*longest); ours.set(bit) != plain.set(bit) {
					t.Fatalf("seed %d step %d: bit %d is %t, want %t", seed, step, bit, ours.set(bit), plain.set(bit))
				}
			}
		}
	}
}
