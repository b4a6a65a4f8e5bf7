package scale

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// numbers are those at which 64 bits overflow, and some between.
var numbers = []int64{
	math.MinInt64, math.MinInt64 + 1, math.MinInt64 / 2, -1 << 32, -7, -1, 0, 1, 2, 80, 4096,
	1 << 32, int64(15 * 365 * 24 * time.Hour), math.MaxInt64 / 2, math.MaxInt64 - 1, math.MaxInt64,
}

// fits returns the nearest number that fits into 64 bits.
func fits(n *big.Int) int64 {
	switch {
	case n.IsInt64():
		return n.Int64()
	case n.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

// TestArithmeticEqualsBigNumbers compares with math/big, over all pairs and
// triples of the numbers above.
func TestArithmeticEqualsBigNumbers(t *testing.T) {
	for _, a := range numbers {
		for _, b := range numbers {
			x, y := big.NewInt(a), big.NewInt(b)
			if got, want := Add(a, b), fits(new(big.Int).Add(x, y)); got != want {
				t.Errorf("Add(%d, %d) is %d, expected %d", a, b, got, want)
			}
			if got, want := Sub(a, b), fits(new(big.Int).Sub(x, y)); got != want {
				t.Errorf("Sub(%d, %d) is %d, expected %d", a, b, got, want)
			}
			product := new(big.Int).Mul(x, y)
			if got, want := Mul(a, b), fits(product); got != want {
				t.Errorf("Mul(%d, %d) is %d, expected %d", a, b, got, want)
			}
			for _, c := range numbers {
				if c == 0 {
					continue
				}
				if got, want := MulDiv(a, b, c), fits(new(big.Int).Quo(product, big.NewInt(c))); got != want {
					t.Errorf("MulDiv(%d, %d, %d) is %d, expected %d", a, b, c, got, want)
				}
			}
		}
	}
	if MulDiv(5, 5, 0) != math.MaxInt64 || MulDiv(-5, 5, 0) != math.MinInt64 || MulDiv(0, 5, 0) != 0 {
		t.Error("a division by 0 does not saturate")
	}
}

func TestPositionEqualsBigNumbers(t *testing.T) {
	for _, lo := range numbers {
		for _, hi := range numbers {
			for _, value := range numbers {
				for _, cells := range []int{0, 1, 24, 4096, math.MaxInt32} {
					got := Position(value, lo, hi, cells)
					want := int64(0)
					if cells > 0 && hi >= lo {
						span := new(big.Int).Sub(big.NewInt(hi), big.NewInt(lo))
						at := new(big.Int).Sub(big.NewInt(min(max(value, lo), hi)), big.NewInt(lo))
						at.Mul(at, big.NewInt(int64(cells)))
						want = at.Quo(at, span.Add(span, big.NewInt(1))).Int64()
					}
					// The spans 2^64-1 and 2^64 may differ by one cell.
					if d := int64(got) - want; d != 0 && (d*d != 1 || lo != math.MinInt64 || hi != math.MaxInt64) {
						t.Fatalf("Position(%d, %d, %d, %d) is %d, expected %d", value, lo, hi, cells, got, want)
					}
					if got < 0 || cells > 0 && got >= cells {
						t.Fatalf("Position(%d, %d, %d, %d) is %d: outside", value, lo, hi, cells, got)
					}
				}
			}
		}
	}
}

func TestLevelsAndParts(t *testing.T) {
	for _, c := range []struct {
		got, want int
	}{
		{Level[int64](0, 9, 8), 0},
		{Level[int64](1, math.MaxInt64, 8), 1},
		{Level[int64](math.MaxInt64, math.MaxInt64, 8), 8},
		{Level[int64](5, 0, 8), 8},
		{Part[int64](3, 0, 8), 0},
		{Part[int64](math.MaxInt64, 1, 100), 100},
		{Part[int64](1, 2, 100), 50},
	} {
		if c.got != c.want {
			t.Errorf("got %d, expected %d", c.got, c.want)
		}
	}
	for v, want := range map[float64]int64{
		math.Inf(1): math.MaxInt64, math.Inf(-1): math.MinInt64, 1e300: math.MaxInt64,
		0x1p63: math.MaxInt64, -2.7: -2,
	} {
		if got := Float(v); got != want {
			t.Errorf("Float(%v) is %d, expected %d", v, got, want)
		}
	}
	if Float(math.NaN()) != 0 {
		t.Error("not-a-number is not 0")
	}
}

// TestLineEqualsTheWholeLine: the dots of a line equal those of the whole line,
// stepped dot by dot, that are inside the drawing.
func TestLineEqualsTheWholeLine(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	type dot struct {
		x, y int
		step int64
	}
	drawn := 0
	for range 20_000 {
		w, h := rng.IntN(30), rng.IntN(30)
		random := func() int64 { return rng.Int64N(150) - 60 }
		x0, y0, x1, y1 := random(), random(), random(), random()
		if rng.IntN(8) == 0 {
			x1, y1 = x0, y0
		}
		var got, want []dot
		Line(x0, y0, x1, y1, w, h, func(x, y int, step int64) { got = append(got, dot{x, y, step}) })
		n := max(x1-x0, x0-x1, y1-y0, y0-y1, 1)
		for i := int64(0); i <= n; i++ {
			x, y := x0+(x1-x0)*i/n, y0+(y1-y0)*i/n
			if i > 0 && x0 == x1 && y0 == y1 {
				break
			}
			if x >= 0 && y >= 0 && x < int64(w) && y < int64(h) {
				want = append(want, dot{int(x), int(y), i})
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("line %d,%d to %d,%d in %d by %d: %v, expected %v", x0, y0, x1, y1, w, h, got, want)
		}
		drawn += len(got)
	}
	if drawn < 20_000 {
		t.Errorf("only %d dots were drawn", drawn)
	}
}

// TestLineIsBoundedByTheDrawing: however long a line is, it takes no more steps
// than the drawing is wide or high.
func TestLineIsBoundedByTheDrawing(t *testing.T) {
	const w, h = 160, 92
	for _, y0 := range numbers {
		for _, y1 := range numbers {
			for _, x := range [][2]int64{{0, w - 1}, {math.MinInt64, math.MaxInt64}, {math.MaxInt64, 0}} {
				dots := 0
				Line(x[0], y0, x[1], y1, w, h, func(int, int, int64) { dots++ })
				if dots > max(w, h) {
					t.Errorf("%d,%d to %d,%d: %d dots", x[0], y0, x[1], y1, dots)
				}
			}
		}
	}
	// A line that crosses the drawing is visible, wherever it begins and ends.
	dots := 0
	Line(0, math.MinInt64, w-1, math.MaxInt64, w, h, func(int, int, int64) { dots++ })
	if dots != h {
		t.Errorf("a line from far above to far below: %d dots, expected %d", dots, h)
	}
}
