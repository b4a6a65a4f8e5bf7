package compare

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Values of Student's t from tables.
func TestTail(t *testing.T) {
	for _, c := range []struct{ t, freedom, want float64 }{
		{2.228, 10, 0.05},
		{3.169, 10, 0.01},
		{2.042, 30, 0.05},
		{12.706, 1, 0.05},
		{1.96, 1e6, 0.05},
		{0, 5, 1},
	} {
		if got := tail(c.t, c.freedom); math.Abs(got-c.want) > 0.0005 {
			t.Errorf("tail(%v, %v) = %v, expected %v", c.t, c.freedom, got, c.want)
		}
		if c.t > 0 {
			if got := quantileOfT(c.want, c.freedom); math.Abs(got-c.t) > 0.01*c.t {
				t.Errorf("quantileOfT(%v, %v) = %v, expected %v", c.want, c.freedom, got, c.t)
			}
		}
	}
}

// The lady tasting tea: 3 of 4 right is a chance of 0.4857.
func TestFisher(t *testing.T) {
	if got := fisher(3, 4, 1, 4); math.Abs(got-0.4857) > 1e-4 {
		t.Errorf("fisher = %v", got)
	}
	if got := fisher(0, 20, 20, 20); got > 1e-10 {
		t.Errorf("fisher = %v for all against none", got)
	}
}

func TestHolm(t *testing.T) {
	one := []float64{1, 1, 1}
	for _, c := range []struct {
		chances []float64
		want    [3]bool
	}{
		{[]float64{0.01, 0.02, 0.04}, [3]bool{true, true, true}},
		{[]float64{0.04, 0.03, 0.02}, [3]bool{}},
		{[]float64{0.01, 0.03, 0.03}, [3]bool{true, false, false}},
	} {
		if got := holm(c.chances, one, 0.05); [3]bool(got) != c.want {
			t.Errorf("%v: %v, expected %v", c.chances, got, c.want)
		}
	}
}

// The bootstrap over blocks finds the standard error of the mean of values that follow each
// other slowly, which single values would underestimate.
func TestBlocksKeepWhatIsAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	error := func(block int) float64 {
		sum := 0.0
		const runs, n = 40, 200
		for range runs {
			x, values := 0.0, make([]float64, n)
			for i := range values {
				x = 0.6*x + r.NormFloat64()
				values[i] = x
			}
			var means []float64
			for _, w := range weights(r, n, block) {
				mean := 0.0
				for i := range w {
					mean += w[i] * values[i] / n
				}
				means = append(means, mean)
			}
			d, _ := spread(means)
			sum += d / runs
		}
		return sum
	}
	want := 1 / (1 - 0.6) / math.Sqrt(200) // of an AR(1) process
	if got := error(12); math.Abs(got-want) > 0.2*want {
		t.Errorf("blocks of 12: %v, expected about %v", got, want)
	}
	if got := error(1); got > 0.7*want {
		t.Errorf("single values: %v, expected much less than %v", got, want)
	}
}
