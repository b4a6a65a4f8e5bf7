package cause

import (
	"math"
	"math/rand/v2"
)

// seed begins the source of chance. One seed makes two runs over a capture say the same.
const seed = 0x61636b73636f7065

// rounds is how often chance is measured.
// Source: definition, common cause: A. M. Abrams et al. 2010 find Gumbel's distribution exact
// enough from 99 rounds on
const rounds = 199

// Rounds for many events, which take longer and spread less.
// Source: bound, time of a verdict on many flows
const (
	fewEvents    = 20_000
	roundsOfMany = 49
)

// surprise is how rare the troubles must be under chance before a cause is named. With four
// kinds of troubles, one capture in 2,500 without a cause then seems to have one.
// Source: definition, common cause: a cause is named where chance explains it once in 10,000 captures
const surprise = 1e-4

// newChance returns the source of chance.
func newChance() *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

// rarity returns how often chance makes a figure at least as large as found. The maxima of the
// rounds have Gumbel's distribution, and the result is its upper tail. The spread of the maxima
// counts as least at the least, since whole numbers often do not differ at all.
func rarity(found float64, maxima []float64, least float64) float64 {
	mean, square, top := 0.0, 0.0, math.Inf(-1)
	for _, x := range maxima {
		mean += x
		top = max(top, x)
	}
	mean /= float64(len(maxima))
	for _, x := range maxima {
		square += (x - mean) * (x - mean)
	}
	if found <= top {
		above := 1
		for _, x := range maxima {
			if x >= found {
				above++
			}
		}
		return float64(above) / float64(len(maxima)+1)
	}
	const gamma = 0.5772156649015329 // Euler's
	scale := max(least, math.Sqrt(square/float64(len(maxima)))) * math.Sqrt(6) / math.Pi
	return -math.Expm1(-math.Exp(-(found-mean)/scale - gamma))
}
