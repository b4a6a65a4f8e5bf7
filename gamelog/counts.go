package gamelog

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"
)

// Limits of counters.
const (
	// readingsLeast is the least number of readings of a counter that show a clock.
	readingsLeast = 8
	// bendsLeast is how many readings must lie off a straight count, and yet equal the
	// capture's. A steady count equals that of every run at the same pace.
	bendsLeast = 5
	// equalLeast is the least share of readings that equal the capture's count.
	equalLeast = 0.9
)

// counterSeries is a counter over time, in order of the log.
type counterSeries struct {
	name    int // index into Log.Names
	t, v    []float64
	entries []uint32
}

// series returns the counters that have readings enough and never fall.
func (l *Log) series() (list []counterSeries) {
	all := make([]counterSeries, len(l.Names))
	for _, r := range l.Readings {
		c := &all[r.Name]
		c.t, c.v = append(c.t, l.Entries[r.Entry].T), append(c.v, r.Value)
		c.entries = append(c.entries, r.Entry)
	}
	for i := range all {
		c := &all[i]
		c.name = i
		if len(c.t) >= readingsLeast && sort.Float64sAreSorted(c.t) && sort.Float64sAreSorted(c.v) && c.counts() {
			list = append(list, *c)
		}
	}
	slices.SortFunc(list, func(x, y counterSeries) int { return cmp.Compare(l.Names[x.name], l.Names[y.name]) })
	return list
}

// counts reports whether the values are whole, and grow.
func (c *counterSeries) counts() bool {
	for _, v := range c.v {
		if v != math.Trunc(v) || v < 0 || v >= 1<<53 {
			return false
		}
	}
	return c.v[len(c.v)-1]-c.v[0] >= pairsLeast
}

// sentNames and the others are names of counters whose meaning is known, in lower case. A
// prefix as "counters." does not matter.
var meanings = map[string]meaning{
	"sent": countSent, "packets_sent": countSent, "sent_packets": countSent, "packets_out": countSent, "tx": countSent,
	"received": countReceived, "packets_received": countReceived, "received_packets": countReceived,
	"packets_in": countReceived, "rx": countReceived,
	"acked": countAcked, "packets_acked": countAcked, "acked_packets": countAcked,
	"lost": countLost, "packets_lost": countLost, "lost_packets": countLost,
}

// meaning is what a counter of a log counts.
type meaning uint8

const (
	countNothing meaning = iota // unknown
	countSent
	countReceived
	countAcked
	countLost
)

// meaningOf returns what a counter counts, by its name.
func meaningOf(name string) meaning {
	return meanings[strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])]
}

// tally is a count of the capture: when it grew, in seconds.
type tally []float64

// at returns the count at a time.
func (t tally) at(x float64) float64 {
	return float64(sort.Search(len(t), func(i int) bool { return t[i] > x }))
}

// byCount fits a counter to a count of the capture. When the counter was read, its last packet
// had passed, and the next one had not. The count was base before the capture's first packet.
func byCount(c *counterSeries, t tally, base float64) (f fit, unit float64) {
	var pairs []pair
	for i := range c.t {
		n := c.v[i] - base
		if n < 1 || n >= float64(len(t)) || i > 0 && c.v[i] == c.v[i-1] {
			continue
		}
		k := int(n)
		pairs = append(pairs, pair{c.t[i], (t[k-1] + t[k]) / 2, int64(i), int64(i)})
	}
	if len(pairs) < readingsLeast {
		return f, 0
	}
	gap := usualGap(t)
	span := pairs[len(pairs)-1].capture - pairs[0].capture
	slope := medianSlope(pairs)
	for _, u := range units {
		if math.Abs(slope/u-1) <= 2*skewMost+2*gap/max(span, gap) {
			unit = u
		}
	}
	if unit == 0 {
		return f, 0
	}
	for i := range pairs {
		pairs[i].log *= unit
	}
	f, ok := newFit(pairs)
	if !ok || f.noise > gap || f.share < shareLeast || math.Abs(f.rate-1) > skewMost+2*gap/max(span, gap) {
		return f, 0
	}
	f.bound += gap // the reading lies anywhere between two packets
	return f, unit
}

// equal compares a counter with a count of the capture, from the first reading on. It returns the
// share of the readings that equal the count. Of these, bends lie off a straight line.
func equal(c *counterSeries, t tally, f *fit, unit, slack float64) (share float64, bends int) {
	n := len(c.t)
	first := t.at(f.of(c.t[0] * unit))
	same := 0
	for i := range n {
		x := f.of(c.t[i] * unit)
		least, most := t.at(x-f.bound-slack)-first-1, t.at(x+f.bound+slack)-first+1
		v := c.v[i] - c.v[0]
		if v < least || v > most {
			continue
		}
		same++
		straight := (c.v[n-1] - c.v[0]) * (c.t[i] - c.t[0]) / max(c.t[n-1]-c.t[0], 1e-9)
		if math.Abs(v-straight) > most-least {
			bends++
		}
	}
	return float64(same) / float64(n), bends
}

// sameRun reports whether the counters show that a log is of the run of a capture. All whose
// meaning is known must equal the capture's counts, and one of them must leave a straight line.
func (l *Log) sameRun(counters []counterSeries, counts map[meaning][]tally, f *fit, unit, slack float64) bool {
	bent := false
	for i := range counters {
		what := meaningOf(l.Names[counters[i].name])
		same := what == countNothing
		for _, t := range counts[what] {
			share, bends := equal(&counters[i], t, f, unit, slack)
			same = same || share >= equalLeast
			bent = bent || share >= equalLeast && bends >= bendsLeast
		}
		if !same {
			return false
		}
	}
	return bent
}
