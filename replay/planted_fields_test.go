package replay_test

import (
	"math/rand/v2"
	"testing"
)

// teller returns the lies that can be told in a datagram of the flow; nil where none
// can be written.
func (s *subject) teller(t *testing.T) func(rng *rand.Rand, at int) []change {
	t.Helper()
	for _, of := range []func(*subject) func(*rand.Rand, int) []change{
		(*subject).gafferTeller, (*subject).samplesTeller,
		(*subject).riptideTeller, (*subject).srdpTeller,
	} {
		if tell := of(s); tell != nil {
			return tell
		}
	}
	return nil
}

// drawn returns another value of a field of so many bits: a bit of it flipped, a
// little more or less, or any.
func drawn(rng *rand.Rand, was uint64, width int) uint64 {
	mask := uint64(1)<<width - 1
	for {
		v := was
		switch rng.IntN(6) {
		case 0, 1:
			v ^= 1 << rng.IntN(width)
		case 2:
			v += 1 + uint64(rng.IntN(3))
		case 3:
			v -= 1 + uint64(rng.IntN(3))
		case 4:
			v += uint64(rng.IntN(600)) - 300
		default:
			v = rng.Uint64()
		}
		if v &= mask; v != was&mask {
			return v
		}
	}
}
