package merge

import (
	"cmp"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/scale"
)

// outcome is the fate of a packet between the taps.
type outcome uint8

const (
	outcomeNone      outcome = iota
	outcomeCrossed           // seen at both
	outcomeLost              // upstream only, though the other tap was recording
	outcomeMissed            // upstream only, but received
	outcomeUndecided         // at a time when the other tap may not have been recording
	outcomeCopy              // downstream, once more often than upstream
	outcomeUnseen            // downstream only
)

const (
	longestDelay = 30 * time.Second     // the longest delay that is searched for
	slack        = 2 * time.Millisecond // how much time stamps may contradict the smallest delay
)

// way is the state of matching one direction of a pair.
type way struct {
	pair         *Pair
	side         machine.Side // the sending side, in the naming of tap A
	taps         [2]int       // upstream, downstream
	up, down     []passage
	clock        *Clock
	least, usual time.Duration
	delays       []time.Duration       // of all paired packets, sorted
	doubles      bool                  // the path both duplicates and loses packets
	spans        [2][2]machine.Instant // of the upstream and the downstream capture, by A's clock
}

// newWay starts on the packets of one side.
func newWay(m *Merged, p *Pair, s machine.Side) *way {
	w := &way{pair: p, side: s, taps: [2]int{p.First[s], 1 - p.First[s]}, clock: &m.Clock}
	w.up, w.down = p.passed(w.taps[0], s), p.passed(w.taps[1], s)
	for i, tap := range w.taps {
		begin, end := m.Taps[tap].Session.Span()
		w.spans[i] = [2]machine.Instant{m.Clock.of(tap, begin), m.Clock.of(tap, end)}
	}
	w.expect(p.singles(s))
	return w
}

// follow pairs every packet and counts the outcomes.
func (m *Merged) follow() {
	var ways []*way
	for _, p := range m.Pairs {
		for _, s := range []machine.Side{machine.A, machine.B} {
			w := newWay(m, p, s)
			w.match(&p.Ways[s])
			ways = append(ways, w)
		}
	}
	// A packet that only the downstream tap saw can show that the upstream tap
	// began too late for it, or ended too early. Without such a packet, a tap may
	// have recorded beyond its first and last packet.
	var began, ended [2]bool
	for _, w := range ways {
		for i := range w.down {
			if d := &w.down[i]; d.outcome == outcomeUnseen {
				at := w.time(1, d.at)
				began[w.taps[0]] = began[w.taps[0]] || at.Add(-w.usual) < w.spans[0][0]
				ended[w.taps[0]] = ended[w.taps[0]] || at.Add(-w.least) > w.spans[0][1]
			}
		}
	}
	for _, w := range ways {
		out := &w.pair.Ways[w.side]
		w.settle(began[w.taps[1]], ended[w.taps[1]], out)
		w.count(out)
		if sum, ok := w.pair.Flows[w.taps[0]].Summary(w.pair.sideAt(w.taps[0], w.side).Other()); ok &&
			sum.Missing > out.Unseen {
			out.DiedBefore = sum.Missing - out.Unseen
		}
	}
}

// time converts a time of the upstream (0) or the downstream (1) tap to A's
// clock.
func (w *way) time(end int, t machine.Instant) machine.Instant { return w.clock.of(w.taps[end], t) }

// delay returns the time from tap to tap.
func (w *way) delay(up, down int32) time.Duration {
	return w.time(1, w.down[down].at).Sub(w.time(0, w.up[up].at))
}

// expect computes the smallest and the usual delay from packets that are unique
// at both taps.
func (w *way) expect(singles [][2]int32) {
	list := make([]time.Duration, 0, len(singles))
	for _, s := range singles {
		if w.taps[0] == 1 {
			s[0], s[1] = s[1], s[0]
		}
		if d := w.delay(s[0], s[1]); d.Abs() < longestDelay {
			list = append(list, d)
		}
	}
	if len(list) > 0 {
		slices.Sort(list)
		w.least, w.usual = list[0], list[(len(list)-1)*99/100]
	}
}

// byContent returns the indexes of what passed a tap, sorted by content and
// then by time.
func byContent(passed []passage) []int32 {
	order := make([]int32, len(passed))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(x, y int32) int {
		return cmp.Or(cmp.Compare(passed[x].content, passed[y].content), cmp.Compare(passed[x].at, passed[y].at),
			cmp.Compare(x, y))
	})
	return order
}

// detectDoubling determines whether the path both duplicates and loses packets,
// from contents that were sent once. Only then can one of several equal packets
// be a copy while another was lost.
func (w *way) detectDoubling(ups, downs []int32) {
	doubled, lost := false, false
	for i, j := 0, 0; i < len(ups); {
		content, first := w.up[ups[i]].content, i
		for i < len(ups) && w.up[ups[i]].content == content {
			i++
		}
		for j < len(downs) && w.down[downs[j]].content < content {
			j++
		}
		came := 0
		for ; j < len(downs) && w.down[downs[j]].content == content; j++ {
			came++
		}
		if i == first+1 {
			doubled, lost = doubled || came > 1, lost || came == 0
		}
	}
	w.doubles = doubled && lost
}

// match pairs upstream with downstream packets, content by content. If several
// equal packets could be the one that arrived, it decides in this order:
//
//  1. It is the first one that would have had a usual delay.
//  2. It is a copy of the packet that was paired last, if no other packet waits.
//     The same holds if the path duplicates and loses packets, and the copy had
//     a usual delay or was sent after the waiting ones.
//  3. It is the last one that was sent before the arrival.
func (w *way) match(out *Way) {
	ups, downs := byContent(w.up), byContent(w.down)
	w.detectDoubling(ups, downs)
	usual := max(w.usual, w.least+10*time.Millisecond)
	var waiting []int32
	for i, j := 0, 0; j < len(downs); {
		content := w.down[downs[j]].content
		for i < len(ups) && w.up[ups[i]].content < content {
			i++
		}
		waiting = waiting[:0]
		paired := int32(-1)
		for ; j < len(downs) && w.down[downs[j]].content == content; j++ {
			d := downs[j]
			for i < len(ups) && w.up[ups[i]].content == content && w.delay(ups[i], d) >= w.least-slack {
				waiting = append(waiting, ups[i])
				i++
			}
			quick := slices.IndexFunc(waiting, func(u int32) bool { return w.delay(u, d) <= usual })
			copied := paired >= 0 && w.delay(paired, d) <= longestDelay
			switch n := len(waiting); {
			case quick >= 0:
				if quick < n-1 {
					out.Ambiguous++
				}
			case copied && (n == 0 || w.doubles && (w.delay(paired, d) <= usual || paired > waiting[n-1])):
				w.down[d].outcome, w.down[d].mate = outcomeCopy, paired
				continue
			case n > 0 && w.delay(waiting[n-1], d) <= longestDelay:
				quick = n - 1
			default:
				w.down[d].outcome = outcomeUnseen
				continue
			}
			paired = waiting[quick]
			waiting = slices.Delete(waiting, quick, quick+1)
			w.up[paired].mate, w.down[d].mate = d, paired
			w.up[paired].outcome, w.down[d].outcome = outcomeCrossed, outcomeCrossed
			w.delays = append(w.delays, w.delay(paired, d))
		}
	}
	slices.Sort(w.delays)
}

// later returns the share of packets that took longer than d.
func (w *way) later(d time.Duration) float64 {
	n, _ := slices.BinarySearch(w.delays, d+1)
	return float64(len(w.delays)-n) / float64(max(1, len(w.delays)))
}

// settle decides the outcome of packets that were seen at one tap only. With
// late, the downstream tap began after packets of this traffic had passed
// there. With early, it ended before some passed.
func (w *way) settle(late, early bool, out *Way) {
	var seen []uint64 // contents that were seen downstream
	for i := range w.down {
		seen = append(seen, w.down[i].content)
	}
	slices.Sort(seen)
	// If nothing shows that the tap stopped, it recorded a little longer.
	begin, end := w.spans[1][0], w.spans[1][1]
	runs := end
	if len(w.delays) > 0 && !early {
		runs = end.Add(scale.Mul(w.delays[len(w.delays)/2], 2))
	}
	loss := float64(len(w.up)-len(w.delays)) / float64(max(1, len(w.up)))
	for i := range w.up {
		u := &w.up[i]
		if u.outcome == outcomeCrossed {
			continue
		}
		at := w.time(0, u.at)
		before, after := at.Add(w.least) < begin, at.Add(w.usual) > end
		_, again := slices.BinarySearch(seen, u.content)
		switch {
		case u.fate == fateArrived && !again && !before && !after:
			u.outcome = outcomeMissed
		case before && late, after && early, after && w.later(runs.Sub(at)) > loss/2:
			u.outcome = outcomeUndecided
		default:
			u.outcome = outcomeLost
			if before || after {
				out.LostAtEnds++
			}
		}
	}
	for i := range w.down {
		if d := &w.down[i]; d.outcome == outcomeUnseen {
			at := w.time(1, d.at)
			if at.Add(-w.usual) < w.spans[0][0] || at.Add(-w.least) > w.spans[0][1] {
				d.outcome = outcomeUndecided
			}
		}
	}
}

// count counts the outcomes.
func (w *way) count(out *Way) {
	out.Upstream, out.Downstream = uint64(len(w.up)), uint64(len(w.down))
	for i := range w.up {
		switch w.up[i].outcome {
		case outcomeCrossed:
			out.Both++
		case outcomeMissed:
			out.Missed++
		case outcomeLost:
			out.Lost++
		default:
			out.Undecided++
		}
	}
	// A packet that passes a tap at the receiver has arrived.
	near := w.pair.Flows[w.taps[1]].Facts().Vantage.Near(w.pair.sideAt(w.taps[1], w.side).Other())
	newest := int32(-1)
	for i := range w.down {
		d := &w.down[i]
		switch d.outcome {
		case outcomeCrossed:
			if d.mate < newest {
				out.Reordered++
			}
			newest = max(newest, d.mate)
			if d.fate == fateLost && !near {
				out.DiedAfter++
			}
		case outcomeCopy:
			out.Copies++
		case outcomeUnseen:
			out.Unseen++
		default:
			out.Outside++
		}
	}
	out.Delay = delaysOf(w.delays)
}

// delaysOf summarises sorted delays.
func delaysOf(list []time.Duration) Delays {
	if len(list) == 0 {
		return Delays{}
	}
	sum := 0.0
	for _, d := range list {
		sum += float64(d)
	}
	at := func(share int) time.Duration { return list[(len(list)-1)*share/100] }
	return Delays{
		Known: true, Least: list[0], Median: at(50), P95: at(95), P99: at(99), Most: list[len(list)-1],
		Mean: time.Duration(sum / float64(len(list))),
	}
}
