package gamelog

import (
	"cmp"
	"math"
	"slices"
)

// Bounds of the search by intervals.
const (
	// burst is how near packets must be to count as one: the parts of a packet, and messages
	// that leave together. Source: assumed, the time in which a host sends some datagrams
	burst = 300e-6
	// anchorEvents is how many successive sends are looked for first.
	anchorEvents = 64
	// scoreEvents is over how many sends a place is tried at length.
	scoreEvents = 512
	// placesMost is how many places are looked at, and placesBest how many of them are tried at length:
	// those where the intervals agree most. Source: bound, time of an alignment
	placesMost = 2048
	placesBest = 24
	// cellsMost bounds the memory of the search.
	cellsMost = 1 << 23
	// eventsMost is how many times of each list are looked at.
	eventsMost = 1 << 18
	// matchedLeast is the least share of the sends in the matched time that packets match.
	matchedLeast = 0.8
	// neighboursLeast is the least share of the pairs that follow each other in the log and in
	// the capture. Else the log has another pace: its few intervals that fit were picked because
	// they fit. A log that lacks half of its sends at random has 0.5.
	// Source: assumed, half of that
	neighboursLeast = 0.25
	// tellsApart is how many times the agreement at the second best place must be exceeded.
	tellsApart = 2.25
)

// single leaves one time of each burst. Times are sorted.
func single(times []float64) []float64 {
	out := times[:0]
	for _, t := range times {
		if len(out) == 0 || t-out[len(out)-1] > burst {
			out = append(out, t)
		}
	}
	return out[:min(len(out), eventsMost)]
}

// usualGap returns the median interval of sorted times.
func usualGap(times []float64) float64 {
	var gaps []float64
	for i := 1; i < len(times); i++ {
		gaps = append(gaps, times[i]-times[i-1])
	}
	return median(gaps)
}

// search looks for the place of a log in a capture by intervals alone.
type search struct {
	log, capture []float64 // single, sorted, in seconds
	reach        float64   // how far from its place a packet may be
	quantum      float64   // what the log's times are rounded to
}

// byIntervals fits the times of a log to those of packets. Both are sorted, in seconds. The
// second result is the agreement at the second best place: the log fits there too if it is near
// that of the best.
func byIntervals(logs, packets []float64, quantum float64) (best fit, second float64) {
	s := search{log: single(slices.Clone(logs)), capture: single(slices.Clone(packets)), quantum: quantum}
	if len(s.log) < pairsLeast || len(s.capture) < pairsLeast {
		return best, 0
	}
	gap, other := usualGap(s.log), usualGap(s.capture)
	const apart = 30 // units are 1000 apart
	if gap > apart*other || other > apart*gap || gap <= 0 {
		return best, 0
	}
	s.reach = min(max(gap/4, nearLeast), 8e-3)
	var at float64
	for _, anchor := range s.anchors() {
		for _, offset := range s.promising(anchor) {
			f, ok := s.follow(anchor, offset, scoreEvents)
			if !ok {
				continue
			}
			middle := s.log[anchor]
			switch {
			case best.n == 0 || f.agree > best.agree:
				if best.n > 0 && math.Abs(f.of(middle)-best.of(middle)) > s.reach {
					second = max(second, best.agree)
				}
				best, at = f, middle
			case math.Abs(f.of(at)-best.of(at)) > s.reach:
				second = max(second, f.agree)
			}
		}
		if best.agree >= agreeLeast && best.agree >= tellsApart*second {
			whole, ok := s.follow(anchor, best.of(s.log[anchor])-s.log[anchor], len(s.log))
			if ok && whole.agree >= best.agree/2 {
				best = whole
			}
			break
		}
	}
	return best, second
}

// anchors are the middles of the runs of sends that are looked for. A capture may cover only a
// part of the log, so there are several.
func (s *search) anchors() (list []int) {
	n := len(s.log)
	for _, eighths := range []int{4, 2, 6, 1, 7, 3, 5} {
		list = append(list, n*eighths/8)
	}
	if n < 4*anchorEvents {
		list = list[:1]
	}
	return list
}

// places returns the offsets at which most of the sends around an anchor meet a packet.
func (s *search) places(anchor int) (offsets []float64) {
	lo, hi := max(0, anchor-anchorEvents/2), min(len(s.log), anchor+anchorEvents/2)
	least := s.capture[0] - s.log[hi-1]
	span := s.capture[len(s.capture)-1] - s.log[lo] - least
	cell := max(s.reach/4, span/cellsMost)
	cells := make([]uint16, int(span/cell)+2)
	for _, t := range s.log[lo:hi] {
		for _, c := range s.capture {
			if i := int((c - t - least) / cell); cells[i] < math.MaxUint16 {
				cells[i]++
			}
		}
	}
	type place struct {
		cell  int
		count int
	}
	var found []place
	const fewest = 12
	for i := 1; i+1 < len(cells); i++ {
		count := int(cells[i-1]) + int(cells[i]) + int(cells[i+1])
		if cells[i] >= cells[i-1] && cells[i] > cells[i+1] && count >= fewest {
			found = append(found, place{i, count})
		}
	}
	slices.SortStableFunc(found, func(x, y place) int { return cmp.Compare(y.count, x.count) })
	for _, p := range found[:min(len(found), placesMost)] {
		offsets = append(offsets, least+(float64(p.cell)+0.5)*cell)
	}
	return offsets
}

// promising returns the places where the intervals around an anchor agree most.
func (s *search) promising(anchor int) []float64 {
	type place struct{ offset, agree float64 }
	var list []place
	var pairs []pair
	for _, offset := range s.places(anchor) {
		lo, hi := max(0, anchor-anchorEvents/2), min(len(s.log), anchor+anchorEvents/2)
		pairs = s.match(pairs[:0], lo, hi, &line{mid: s.log[anchor], at: s.log[anchor] + offset, rate: 1}, s.reach)
		if e := agreement(pairs, s.quantum, 0); e.agree > 0 {
			list = append(list, place{offset, e.agree})
		}
	}
	slices.SortStableFunc(list, func(x, y place) int { return cmp.Compare(y.agree, x.agree) })
	var offsets []float64
	for _, p := range list {
		near := func(o float64) bool { return math.Abs(o-p.offset) <= s.reach/2 }
		if len(offsets) < placesBest && !slices.ContainsFunc(offsets, near) {
			offsets = append(offsets, p.offset)
		}
	}
	return offsets
}

// follow matches sends and packets from an anchor on in both directions, over so many sends at
// most. It learns how fast the clocks run as it goes.
func (s *search) follow(anchor int, offset float64, most int) (f fit, ok bool) {
	f.line = line{mid: s.log[anchor], at: s.log[anchor] + offset, rate: 1}
	var pairs []pair
	reach := s.reach
	for size := anchorEvents; ; size *= 2 {
		size = min(size, most)
		lo, hi := max(0, anchor-size/2), min(len(s.log), anchor+size/2)
		if most >= len(s.log) && size >= most {
			lo, hi = 0, len(s.log)
		}
		pairs = s.match(pairs[:0], lo, hi, &f.line, reach)
		next, ok := newFit(pairs)
		if !ok || math.Abs(next.rate-1) > 4*skewMost {
			return f, false
		}
		f = next
		// What is learned narrows where the next packets are looked for.
		reach = min(s.reach, max(4*nearLeast, 2*nearNoise*f.noise))
		if size >= most || lo == 0 && hi == len(s.log) {
			f.share = s.matched(pairs)
			break
		}
	}
	if neighbours(pairs) < neighboursLeast*float64(len(pairs)) {
		return f, false
	}
	f.evidence = agreement(pairs, s.quantum, agreeShifts)
	return f, len(pairs) >= pairsLeast && math.Abs(f.rate-1) <= skewMost
}

// neighbours counts the pairs that follow the one before them in the log and in the capture.
func neighbours(pairs []pair) (n float64) {
	for k := 1; k < len(pairs); k++ {
		if pairs[k].i == pairs[k-1].i+1 && pairs[k].j == pairs[k-1].j+1 {
			n++
		}
	}
	return n
}

// match pairs the sends lo to hi with the nearest packet.
func (s *search) match(pairs []pair, lo, hi int, l *line, reach float64) []pair {
	j, _ := slices.BinarySearch(s.capture, l.of(s.log[lo])-reach)
	for i := lo; i < hi; i++ {
		want := l.of(s.log[i])
		for j < len(s.capture) && s.capture[j] < want-reach {
			j++
		}
		if j == len(s.capture) {
			break
		}
		k := j
		for k+1 < len(s.capture) && math.Abs(s.capture[k+1]-want) < math.Abs(s.capture[k]-want) {
			k++
		}
		if math.Abs(s.capture[k]-want) <= reach {
			pairs = append(pairs, pair{s.log[i], s.capture[k], int64(i), int64(k)})
			j = k + 1
		}
	}
	return pairs
}

// matched returns the share of the sends between the first and the last pair that have one.
func (s *search) matched(pairs []pair) float64 {
	if len(pairs) == 0 {
		return 0
	}
	return float64(len(pairs)) / float64(pairs[len(pairs)-1].i-pairs[0].i+1)
}
