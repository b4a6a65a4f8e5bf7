package machine

import (
	"encoding/binary"
	"math/bits"
)

// Digest returns a hash of b. Two different contents share a digest with a
// chance of 2 in 2^64. Contents with different seeds have different digests,
// with the same chance. Digest is not cryptographic: an attacker can construct
// two contents with the same digest.
func Digest(seed uint64, b []byte) uint64 {
	// p and q are the constants that Digest mixes into every step.
	// Source: library, wyhash final version 3: the first two of its secrets
	const p, q = 0xA0761D6478BD642F, 0xE7037ED1A0B428DB
	fold := func(x, y uint64) uint64 {
		high, low := bits.Mul64(x^p, y^q)
		return high ^ low
	}
	h := fold(seed, uint64(len(b)))
	n := len(b)
	switch {
	case n >= 16:
		last := b[n-16:]
		for ; len(b) > 16; b = b[16:] {
			h = fold(h^binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])+h)
		}
		return fold(h^binary.LittleEndian.Uint64(last), binary.LittleEndian.Uint64(last[8:])+h)
	case n >= 8:
		return fold(h^binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])+h)
	case n >= 4:
		return fold(h^uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))+h)
	case n > 0:
		return fold(h^uint64(b[0])<<16^uint64(b[n/2])<<8^uint64(b[n-1]), h)
	}
	return h
}
