package gamelog

import (
	"math"
	"slices"
)

// pair is a packet that both the log and the capture have. Times are in seconds.
type pair struct {
	log, capture float64
	i, j         int64 // positions: neighbours in the log, and in the capture, differ by 1
}

// line relates two clocks: capture = at + rate × (log - mid). Times are centred, since a double
// has only 0.2 µs at the seconds since 1970.
type line struct {
	mid, at, rate float64
}

func (l *line) of(log float64) float64 { return l.at + l.rate*(log-l.mid) }

// fit is a line with how well it fits.
type fit struct {
	line
	n        int     // pairs
	share    float64 // of them near the line
	noise    float64 // half of the pairs are this near to the line, in seconds
	bound    float64 // 99 of 100 pairs near it are within this, with room for the usual noise
	from, to float64 // the first and the last pair, on the log's clock
	evidence         // that the log is of this run
}

// Limits of a fit.
const (
	// skewMost is how much one clock may run faster than the other. Crystals of hosts differ by
	// 100 ppm at most, and a clock that NTP slews by 500 ppm.
	// Source: D. Mills et al., RFC 5905, 2010, section 11: "the tolerance is 15 ppm … slew 500 ppm"
	skewMost = 1000e-6
	// shareLeast is the least share of pairs near the line.
	shareLeast = 0.9
	// nearNoise is how many times the usual distance from the line is near. It is 4 standard
	// deviations of a normal distribution, by its median absolute deviation.
	nearNoise = 6
	// nearLeast is near in any case: twice the time in which a socket call reaches the tap.
	// Source: measured, testdata/pcaps: 9 of 10 calls take 5 to 100 µs
	nearLeast = 200e-6
	// pairsLeast is the least number of pairs that show a clock.
	pairsLeast = 8
)

// newFit fits a line through pairs in order of the log. It ignores pairs that are far from the
// line that most of them lie on. It returns false if the pairs are too few.
func newFit(pairs []pair) (f fit, ok bool) {
	n := len(pairs)
	f = fit{n: n}
	if n < 2 || pairs[n-1].log <= pairs[0].log {
		return f, false
	}
	f.from, f.to = pairs[0].log, pairs[n-1].log
	f.mid = (f.from + f.to) / 2
	f.rate = medianSlope(pairs)
	distances := make([]float64, n)
	f.center(pairs, distances)
	for range 3 {
		near := f.measure(pairs, distances)
		f.least(pairs, near)
	}
	near := f.measure(pairs, distances)
	inside, most := 0, distances[:0]
	for i := range pairs {
		if d := math.Abs(pairs[i].capture - f.of(pairs[i].log)); d <= near {
			inside++
			most = append(most, d)
		}
	}
	f.share = float64(inside) / float64(n)
	slices.Sort(most)
	if inside > 0 {
		f.bound = most[inside*99/100] + f.noise
	}
	return f, inside > 1
}

// medianSlope returns the median of the slopes between pairs that are half of the list apart.
func medianSlope(pairs []pair) float64 {
	half := len(pairs) / 2
	var slopes []float64
	for i := 0; i+half < len(pairs); i++ {
		x, y := &pairs[i], &pairs[i+half]
		if y.log > x.log {
			slopes = append(slopes, (y.capture-x.capture)/(y.log-x.log))
		}
	}
	if len(slopes) == 0 {
		return 1
	}
	return median(slopes)
}

// center sets the height of the line to the median of the pairs.
func (f *fit) center(pairs []pair, scratch []float64) {
	for i := range pairs {
		scratch[i] = pairs[i].capture - f.rate*(pairs[i].log-f.mid)
	}
	f.at = median(scratch)
}

// measure sets the noise. It returns how far from the line is near.
func (f *fit) measure(pairs []pair, scratch []float64) float64 {
	for i := range pairs {
		scratch[i] = math.Abs(pairs[i].capture - f.of(pairs[i].log))
	}
	f.noise = median(scratch)
	return max(nearLeast, nearNoise*f.noise)
}

// least fits the line to the pairs that are near, by least squares.
func (f *fit) least(pairs []pair, near float64) {
	var n, x, y, xx, xy float64
	for i := range pairs {
		u, d := pairs[i].log-f.mid, pairs[i].capture-f.of(pairs[i].log)
		if math.Abs(d) <= near {
			n, x, y, xx, xy = n+1, x+u, y+d, xx+u*u, xy+u*d
		}
	}
	spread := n*xx - x*x
	if n < 2 || spread <= 0 {
		return
	}
	slope := (n*xy - x*y) / spread
	f.at, f.rate = f.at+(y-slope*x)/n, f.rate+slope
}

// error returns how far the line may be off at a time of the log. The bound holds between the
// first and the last pair. Outside it grows, since the slope is known within it only.
func (f *fit) error(log float64) float64 {
	beyond := max(0, f.from-log, log-f.to)
	span := max(f.to-f.from, 1e-9)
	return f.bound + 2*f.bound/span*beyond
}

// median returns the median of a list, and reorders it.
func median(list []float64) float64 {
	slices.Sort(list)
	if len(list) == 0 {
		return 0
	}
	return list[len(list)/2]
}
