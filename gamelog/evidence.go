package gamelog

import "math"

// Limits of the evidence.
const (
	// agreeLeast is the least agreement that shows that two lists of times are of one run: chance
	// reaches it in one of 10^9 tries. The unit is that of logarithms, so it is ln(10^9).
	agreeLeast = 20.7
	// agreeOther is how many times the agreement with the intervals before or after must be
	// exceeded. Without that, a timer's steady pattern would agree with itself in any run.
	// Source: measured, internal/gamelogs: the factor is above 4 in one run
	agreeOther = 2.25
	// agreeShifts is over how many intervals before and after that is looked at.
	agreeShifts = 24
	// alike is how much equal intervals of both clocks differ at most. It is more than twice the
	// time in which a socket call reaches the tap.
	// Source: measured, testdata/pcaps: 9 of 10 calls take 5 to 100 µs
	alike = 300e-6
	// alikeLeast is the least share of equal intervals, where equality is the evidence.
	alikeLeast = 0.8
	// chanceLeast is the least chance of equal intervals that is believed.
	// Source: assumed, few intervals show no smaller one
	chanceLeast = 0.02
)

// evidence says how far the intervals of a log agree with those of packets. other is the
// highest agreement with the intervals before or after.
type evidence struct {
	agree, other float64
}

// proven reports whether a log and packets are of one run.
func (e *evidence) proven() bool { return e.agree >= agreeLeast && e.agree >= agreeOther*e.other }

// spans are the intervals of successive pairs, on both clocks. An interval of which the log or
// the capture has more than its ends is not a number.
type spans struct {
	log, capture []float64
}

// newSpans returns the intervals of pairs. Packets of one burst count as one.
func newSpans(pairs []pair) (s spans) {
	last, whole := 0, true
	for k := 1; k < len(pairs); k++ {
		x, y := &pairs[k-1], &pairs[k]
		whole = whole && y.i == x.i+1 && y.j == x.j+1
		log, capture := y.log-pairs[last].log, y.capture-pairs[last].capture
		if whole && math.Abs(log) <= burst && math.Abs(capture) <= burst {
			continue
		}
		if !whole {
			log = math.NaN()
		}
		s.log, s.capture = append(s.log, log), append(s.capture, capture)
		last, whole = k, true
	}
	return s
}

// agreement tells whether the times of a log and of packets are of one run. There are two
// tests, and the stronger one counts:
//
//   - Each interval is longer or shorter than the usual one. In one run, log and capture agree
//     about that far more often than by chance. That holds even where packets leave by a timer:
//     timers are late by some microseconds, and both clocks see it.
//   - Intervals are equal on both clocks, far more often than those that do not belong together.
//     That needs only a few intervals, if they differ among themselves.
//
// The result is the logarithm of the chance, by the bound of Chernoff. Shifts says how many
// intervals before and after are compared as well. Source: H. Chernoff, "A measure of asymptotic
// efficiency for tests of a hypothesis", Annals of Mathematical Statistics 23, 1952.
func agreement(pairs []pair, quantum float64, shifts int) evidence {
	s := newSpans(pairs)
	signs := s.compare(shifts, s.signs())
	if shifts == 0 {
		return signs
	}
	equal := s.compare(shifts, s.equal(max(alike, 1.1*quantum)))
	if equal.proven() && (!signs.proven() || equal.agree > signs.agree) {
		return equal
	}
	return signs
}

// test compares interval i of the log with interval j of the capture. The result is 1 if they
// agree, 0 if not, and -1 if they tell nothing. The chance of 1 is chance. A negative one means
// that of the intervals before and after. A share of less than least is no agreement.
type test struct {
	of            func(i, j int) int
	chance, least float64
}

// signs compares which intervals are longer than the usual one.
func (s *spans) signs() test {
	var usual [2][]float64
	for k, v := range s.log {
		if !math.IsNaN(v) {
			usual[0], usual[1] = append(usual[0], v), append(usual[1], s.capture[k])
		}
	}
	log, capture := median(usual[0]), median(usual[1])
	return test{func(i, j int) int {
		switch x, y := s.log[i]-log, s.capture[j]-capture; {
		case x == 0 || y == 0:
			return -1
		case x > 0 == (y > 0):
			return 1
		}
		return 0
	}, 0.5, 0.5}
}

// equal compares whether intervals are equal.
func (s *spans) equal(within float64) test {
	return test{func(i, j int) int {
		if math.Abs(s.log[i]-s.capture[j]) <= within {
			return 1
		}
		return 0
	}, -1, alikeLeast}
}

// compare runs a test at all shifts.
func (s *spans) compare(shifts int, t test) (e evidence) {
	n := len(s.log)
	counts, sums := make([]float64, 2*shifts+1), make([]float64, 2*shifts+1)
	var all, agreed float64
	for shift := -shifts; shift <= shifts; shift++ {
		k := shift + shifts
		for i := max(0, -shift); i < min(n, n-shift); i++ {
			if math.IsNaN(s.log[i]) || math.IsNaN(s.log[i+shift]) {
				continue
			}
			if x := t.of(i, i+shift); x >= 0 {
				counts[k]++
				sums[k] += float64(x)
			}
		}
		if shift != 0 {
			all, agreed = all+counts[k], agreed+sums[k]
		}
	}
	chance := t.chance
	if chance < 0 {
		chance = max(chanceLeast, agreed/max(all, 1))
	}
	for k := range counts {
		score := chernoff(sums[k], counts[k], chance)
		switch {
		case k != shifts:
			e.other = max(e.other, score)
		case sums[k] >= t.least*counts[k]:
			e.agree = score
		}
	}
	return e
}

// chernoff returns the negative logarithm of a bound on the chance that so many of n agree.
func chernoff(agreed, n, chance float64) float64 {
	if n == 0 || chance >= 1 || agreed <= n*chance {
		return 0
	}
	q := agreed / n
	score := q * math.Log(q/chance)
	if q < 1 {
		score += (1 - q) * math.Log((1-q)/(1-chance))
	}
	return n * score
}
