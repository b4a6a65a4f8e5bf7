package machine

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestElapsed: for any two instants within their spans, the time between them lies within the
// bounds, and both bounds are reached.
func TestElapsed(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 1))
	for range 1000 {
		begin := Span{From: Instant(rng.Int64N(100)), Certainty: Certain}
		begin.To = begin.From + Instant(rng.Int64N(50))
		end := Span{From: begin.From + Instant(rng.Int64N(100)), Certainty: Likely}
		end.To = max(end.From, begin.To) + Instant(rng.Int64N(50))
		least, most, c := Elapsed(&begin, &end)
		if c != Likely {
			t.Fatalf("the grade is %s, expected that of the less certain span", c)
		}
		low, high := time.Duration(1<<62), time.Duration(0)
		for b := begin.From; b <= begin.To; b++ {
			for e := max(b, end.From); e <= end.To; e++ {
				low, high = min(low, e.Sub(b)), max(high, e.Sub(b))
			}
		}
		if least != low || most != high {
			t.Fatalf("%v to %v: %v to %v, expected %v to %v", begin, end, least, most, low, high)
		}
	}
	known := Span{From: 1, To: 2, Certainty: Certain}
	if least, most, c := Elapsed(&Span{}, &known); least >= 0 || most >= 0 || c != Unknown {
		t.Errorf("from an unknown begin: %v to %v, %s", least, most, c)
	}
}
