package compare

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// draws is how often the bootstrap draws the units again. More draws change standard errors
// by less than 5 %.
const draws = 400

// weights returns how often each draw takes each unit. A unit is a flow, or a slice of
// time. Draws take blocks of so many units that follow each other in time, since times near
// each other are alike.
func weights(r *rand.Rand, units, block int) [][]float64 {
	list := make([][]float64, draws)
	for i := range list {
		w := make([]float64, units)
		for taken := 0; taken < units; {
			from := r.IntN(units)
			for j := 0; j < block && taken < units; j++ {
				w[(from+j)%units]++
				taken++
			}
		}
		list[i] = w
	}
	return list
}

// spread returns the standard deviation of the finite values, and how many there are.
func spread(values []float64) (deviation float64, n int) {
	sum, squares := 0.0, 0.0
	for _, v := range values {
		if v-v == 0 {
			sum += v
			n++
		}
	}
	if n < 2 {
		return 0, n
	}
	mean := sum / float64(n)
	for _, v := range values {
		if v-v == 0 {
			squares += (v - mean) * (v - mean)
		}
	}
	return math.Sqrt(squares / float64(n-1)), n
}

// tail returns the chance that Student's t lies beyond ±t, with so many degrees of freedom.
func tail(t, freedom float64) float64 {
	if t <= 0 {
		return 1
	}
	return incompleteBeta(freedom/2, 0.5, freedom/(freedom+t*t))
}

// incompleteBeta returns the regularised incomplete beta function, by its continued
// fraction. Source: Abramowitz and Stegun, 26.5.8.
func incompleteBeta(a, b, x float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2):
		return 1 - incompleteBeta(b, a, 1-x)
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab-la-lb+a*math.Log(x)+b*math.Log(1-x)) / a
	const tiny = 1e-300
	f, c, d := 1.0, 1.0, 0.0
	for i := range 400 {
		m := float64(i / 2)
		var n float64
		switch {
		case i == 0:
			n = 1
		case i%2 == 0:
			n = m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		default:
			n = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		}
		if d = 1 + n*d; math.Abs(d) < tiny {
			d = tiny
		}
		d = 1 / d
		if c = 1 + n/c; math.Abs(c) < tiny {
			c = tiny
		}
		f *= c * d
		if math.Abs(1-c*d) < 1e-12 {
			break
		}
	}
	return front * (f - 1)
}

// quantileOfT returns the t beyond which, on both sides together, lies the given chance.
func quantileOfT(chance, freedom float64) float64 {
	low, high := 0.0, 1e3
	for range 60 {
		if middle := (low + high) / 2; tail(middle, freedom) > chance {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// fisher compares two rows of a table: x of n, and y of m. It returns the chance of a table at
// least as uneven, if both rows have the same share. Source: Fisher's exact test, two-sided.
func fisher(x, n, y, m int) float64 {
	choose := func(n, k int) float64 {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(k + 1))
		c, _ := math.Lgamma(float64(n - k + 1))
		return a - b - c
	}
	all := choose(n+m, x+y)
	chance := func(i int) float64 { return choose(n, i) + choose(m, x+y-i) - all }
	seen, sum := chance(x), 0.0
	for i := max(0, x+y-m); i <= min(n, x+y); i++ {
		if p := chance(i); p <= seen+1e-9 {
			sum += math.Exp(p)
		}
	}
	return min(1, sum)
}

// holm decides which of several hypotheses to reject, so that the chance of a wrong
// rejection among all is at most alpha. Weights share alpha among them. Source: Holm 1979,
// with weights.
func holm(chances, weights []float64, alpha float64) []bool {
	order, left := make([]int, len(chances)), 0.0
	for i := range order {
		order[i] = i
		left += weights[i]
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Compare(chances[i]/weights[i], chances[j]/weights[j])
	})
	rejected := make([]bool, len(chances))
	for _, i := range order {
		if chances[i] > alpha*weights[i]/left {
			break
		}
		rejected[i] = true
		left -= weights[i]
	}
	return rejected
}
