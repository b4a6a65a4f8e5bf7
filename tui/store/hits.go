package store

import (
	"math/bits"
	"sort"
)

// hits is a set of entries, as bits. Counts per block make two look-ups fast:
// the kth member, and the rank of a member.
type hits struct {
	words   []uint64
	before  []uint32 // hits before each block of blockWords words
	scanned int      // entries that were checked
	total   int
}

const blockWords = 64

// grow makes room for n entries.
func (h *hits) grow(n int) {
	for len(h.words)*64 < n {
		if len(h.words)%blockWords == 0 {
			h.before = append(h.before, uint32(h.total))
		}
		h.words = append(h.words, 0)
	}
}

// add adds an entry. Entries may be added late, but not twice.
func (h *hits) add(n int) {
	h.grow(n + 1)
	if h.words[n/64]>>(n%64)&1 != 0 {
		return
	}
	h.words[n/64] |= 1 << (n % 64)
	h.total++
	for b := n/64/blockWords + 1; b < len(h.before); b++ {
		h.before[b]++
	}
}

// has reports whether an entry is a member.
func (h *hits) has(n int) bool { return n/64 < len(h.words) && h.words[n/64]>>(n%64)&1 != 0 }

// nth returns the kth member, counted from 0. It returns false if there are
// fewer.
func (h *hits) nth(k int) (int, bool) {
	if k < 0 || k >= h.total {
		return 0, false
	}
	b := sort.Search(len(h.before), func(i int) bool { return int(h.before[i]) > k }) - 1
	k -= int(h.before[b])
	for i := b * blockWords; i < len(h.words); i++ {
		n := bits.OnesCount64(h.words[i])
		if k >= n {
			k -= n
			continue
		}
		w := h.words[i]
		for ; k > 0; k-- {
			w &= w - 1
		}
		return i*64 + bits.TrailingZeros64(w), true
	}
	return 0, false
}

// rank returns the number of members before entry n.
func (h *hits) rank(n int) int {
	if n/64 >= len(h.words) {
		return h.total
	}
	b := n / 64 / blockWords
	k := int(h.before[b])
	for i := b * blockWords; i < n/64; i++ {
		k += bits.OnesCount64(h.words[i])
	}
	return k + bits.OnesCount64(h.words[n/64]&(1<<(n%64)-1))
}
