package yojimbo

import "github.com/ackscope/ackscope/wire/bits"

// blockGuess is what block fragments show about a channel.
type blockGuess struct {
	known           bool
	fragments, size int // widths in bits
	full            int // size in bytes of all fragments but the last of a block
	most            int // most fragments of a block
	longest         int // bytes of the longest fragment
}

// guessBlocks finds the widths with which the fragments of a channel end where their
// packets do.
func (k *skeleton) guessBlocks(c int) (best blockGuess) {
	most := 0
	for size := 1; size <= 16; size++ {
		for fragments := 0; fragments <= 16; fragments++ {
			g := blockGuess{known: true, fragments: fragments, size: size}
			if ends := k.fragmentsEnd(c, &g); ends > most {
				most, best = ends, g
			}
		}
	}
	return best
}

// fragmentsEnd counts the fragments that end with their packets, without the first ones
// of blocks. It returns -1 if a fragment contradicts the widths.
func (k *skeleton) fragmentsEnd(c int, g *blockGuess) (ends int) {
	var r bits.Reader
	for _, h := range k.heads[c] {
		if !h.block || !h.alone {
			continue
		}
		payload := k.packets[h.packet].payload
		r.Reset(payload, h.pos+16)
		n, ok := r.Bits(g.fragments)
		index, ok2 := r.Bits(bits.Required(0, n))
		size, ok3 := r.Bits(g.size)
		if !ok || !ok2 || !ok3 || index > n || !r.Align() {
			return -1
		}
		if _, ok := r.Bytes(int(size) + 1); !ok {
			return -1
		}
		g.most = max(g.most, int(n)+1)
		g.longest = max(g.longest, int(size)+1)
		if index < n {
			if g.full != 0 && g.full != int(size)+1 {
				return -1
			}
			g.full = int(size) + 1
		}
		if index > 0 {
			if r.Left() > 0 {
				return -1
			}
			ends++
		}
	}
	return ends
}
