package baseline

import (
	"cmp"
	"math"
	"slices"

	"github.com/ackscope/ackscope/unit"
)

const (
	// alpha is the chance that sets without a difference report one.
	// Source: definition, one of twenty
	alpha = 0.05
	// width is the half width of an interval of 95 % in standard errors.
	// Source: definition, the quantile of the normal distribution
	width = 1.959963984540054
)

// share is flows that have something, of all flows, over captures.
type share struct {
	have, of                    float64
	captures                    float64
	haveSquared, product, ofSqr float64 // sums over captures
}

// rate returns the share itself.
func (s *share) rate() float64 {
	if s.of == 0 {
		return math.NaN()
	}
	return s.have / s.of
}

// effect returns the design effect: by how much flows of one capture are alike. It returns NaN if
// that cannot be estimated.
func (s *share) effect() float64 {
	rate := s.rate()
	if s.captures < 2 || !(rate > 0 && rate < 1) {
		return math.NaN()
	}
	residual := s.haveSquared - 2*rate*s.product + rate*rate*s.ofSqr
	variance := s.captures / (s.captures - 1) * max(0, residual) / (s.of * s.of)
	return max(1, variance/(rate*(1-rate)/s.of))
}

// effectOf returns the design effect of two shares: the larger one. Where neither can be estimated,
// each capture counts as one flow.
func effectOf(x, y *share) float64 {
	a, b := x.effect(), y.effect()
	switch {
	case !math.IsNaN(a) && !math.IsNaN(b):
		return max(a, b)
	case !math.IsNaN(a):
		return a
	case !math.IsNaN(b):
		return b
	}
	return max(1, (x.of+y.of)/max(1, x.captures+y.captures))
}

// wilson returns the interval of a share of n independent flows.
func wilson(rate, n float64) (least, most float64) {
	if n == 0 {
		return 0, 1
	}
	z2 := width * width
	middle := (rate + z2/(2*n)) / (1 + z2/n)
	half := width / (1 + z2/n) * math.Sqrt(rate*(1-rate)/n+z2/(4*n*n))
	return max(0, middle-half), min(1, middle+half)
}

// newcombe returns the interval of the change of two shares.
func newcombe(before, after, nBefore, nAfter float64) (least, most float64) {
	l1, u1 := wilson(before, nBefore)
	l2, u2 := wilson(after, nAfter)
	change := after - before
	return change - math.Hypot(after-l2, u1-before), change + math.Hypot(u2-after, before-l1)
}

// chanceOf returns the chance that equal shares differ as much.
func chanceOf(before, after, nBefore, nAfter float64) float64 {
	if nBefore == 0 || nAfter == 0 {
		return 1
	}
	pooled := (before*nBefore + after*nAfter) / (nBefore + nAfter)
	deviation := math.Sqrt(pooled * (1 - pooled) * (1/nBefore + 1/nAfter))
	apart := math.Abs(after-before) - (1/nBefore+1/nAfter)/2
	if deviation == 0 || apart <= 0 {
		return 1
	}
	return math.Erfc(apart / deviation / math.Sqrt2)
}

// distance returns the largest difference of the cumulative shares of two histograms.
func distance(x, y unit.Histogram) float64 {
	a, b := float64(x.Total()), float64(y.Total())
	if a == 0 || b == 0 {
		return math.NaN()
	}
	most, below, under := 0.0, 0.0, 0.0
	for i := range unit.Buckets {
		below, under = below+float64(x[i])/a, under+float64(y[i])/b
		most = max(most, math.Abs(below-under))
	}
	return min(most, 1)
}

// chanceOfDistance returns the chance that samples of n and m values of one distribution are as far
// apart.
func chanceOfDistance(d, n, m float64) float64 {
	if math.IsNaN(d) || n == 0 || m == 0 {
		return 1
	}
	return min(1, 2*math.Exp(-2*d*d*n*m/(n+m)))
}

// holm corrects chances for their number: each becomes the least alpha at which it would be
// reported.
func holm(chances []*float64) {
	list := slices.Clone(chances)
	slices.SortStableFunc(list, func(x, y *float64) int { return cmp.Compare(*x, *y) })
	least := 0.0
	for i, p := range list {
		least = max(least, min(1, *p*float64(len(list)-i)))
		*p = least
	}
}
