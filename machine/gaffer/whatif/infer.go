package whatif

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
)

func rateOf(x *machine.TraceSide) float64 {
	n := len(x.Sent)
	if n < 2 || x.Sent[n-1].Left <= x.Sent[0].Left {
		return 0
	}
	return float64(n-1) / x.Sent[n-1].Left.Sub(x.Sent[0].Left).Seconds()
}

// resendOf works the resend time out from what sides at the tap sent again: a
// packet that carried a message again shows that the time had passed, and the
// packet before it, which did not, that it had not.
func (s *Stage) resendOf(t *machine.Trace) machine.Setting {
	v := machine.Setting{Name: "resend", Unit: "ms", Value: machine.Milliseconds(s.lanes[0].resend.After),
		Certainty: machine.Possible, Why: "the usual: nothing was sent again"}
	var least, most []time.Duration
	for i := range t.Sides {
		x := &t.Sides[i]
		if !x.Near {
			continue
		}
		for k := range x.Messages {
			m := &x.Messages[k]
			if m.Block > 0 {
				continue
			}
			for n := 1; n < min(m.Attempts, machine.MessageFrames); n++ {
				from, to := sentAs(x, m.Frames[n-1]), sentAs(x, m.Frames[n])
				if from < 0 || to <= from {
					continue
				}
				most = append(most, x.Sent[to].Left.Sub(x.Sent[from].Left))
				least = append(least, x.Sent[to-1].Left.Sub(x.Sent[from].Left))
			}
		}
	}
	if len(most) == 0 {
		return v
	}
	lo, hi, agree := mostAgree(least, most)
	v.Certainty, v.Why = machine.Likely, fmt.Sprintf("%d of %d repeats agree with it", agree, len(most))
	if agree*10 < len(most)*8 {
		v.Certainty = machine.Possible
	}
	if usual := s.lanes[0].resend.After; usual <= lo || usual > hi {
		v.Value = math.Round(float64(lo+hi) / 2e6)
	}
	return v
}

// mostAgree returns the times, above lo and up to hi, that lie in most of the
// intervals, and in how many.
func mostAgree(least, most []time.Duration) (lo, hi time.Duration, agree int) {
	type end struct {
		at   time.Duration
		step int
	}
	var ends []end
	for i := range least {
		ends = append(ends, end{least[i], 1}, end{most[i], -1})
	}
	slices.SortFunc(ends, func(a, b end) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step)) })
	for i, n := 0, 0; i < len(ends)-1; i++ {
		if n += ends[i].step; n > agree && ends[i+1].at > ends[i].at {
			agree, lo, hi = n, ends[i].at, ends[i+1].at
		}
	}
	return lo, hi, agree
}

// sentAs finds a packet of a side at the tap by its frame; -1 where it is not there.
func sentAs(x *machine.TraceSide, ref machine.Ref) int {
	i, ok := slices.BinarySearchFunc(x.Sent,
		ref, func(s machine.Transit, ref machine.Ref) int { return cmp.Compare(s.Ref, ref) })
	switch {
	case ok && ref != 0:
		return i
	case i > 0 && x.Sent[i-1].Last == ref:
		return i - 1
	}
	return -1
}

// placeUnseen finds when messages of a far side were submitted whose first packet
// was lost before the tap, so that they were seen only when they went out again.
// One that a later message overtook was: in the lost packet from which the resend
// time leads to the first that was seen. Of one that was seen first where such a
// packet leads to it, too, either may be; they are taken alike.
func placeUnseen(own []machine.TraceMessage, x *machine.TraceSide, resend time.Duration) {
	left := make(map[machine.Ref]machine.Instant, len(x.Sent))
	var lost []machine.Instant
	for i := range x.Sent {
		if d := &x.Sent[i]; d.Ref != 0 {
			left[d.Ref] = d.Left
			if d.Last != 0 {
				left[d.Last] = d.Left
			}
		} else {
			lost = append(lost, d.Left)
		}
	}
	frame := machine.Instant(float64(time.Second) / max(rateOf(x), 1))
	// leads gives the newest lost packet, at or before a bound, after whose whole
	// number of resend times (at most so many) the next packet was the one seen.
	leads := func(seen, from, bound machine.Instant, most int) (machine.Instant, bool) {
		k, _ := slices.BinarySearch(lost, bound+1)
		for k--; k >= 0 && lost[k] >= from; k-- {
			n := (seen - lost[k]) / machine.Instant(resend)
			if rest := (seen - lost[k]) % machine.Instant(resend); n >= 1 && n <= machine.Instant(most) && rest < frame+frame/4 {
				return lost[k], true
			}
		}
		return 0, false
	}
	seen := make([]machine.Instant, len(own))
	for i := range own {
		var ok bool
		if seen[i], ok = left[own[i].Frames[0]]; !ok {
			seen[i] = own[i].Asked
		}
	}
	// At the latest it was submitted when a later one was seen; and not before
	// the newest one before it that none overtook.
	bound := slices.Clone(seen)
	for i := len(own) - 2; i >= 0; i-- {
		bound[i] = min(bound[i], bound[i+1])
	}
	least, coin := machine.Instant(math.MinInt64), false
	for i := range own {
		m := &own[i]
		m.Asked = bound[i]
		if seen[i] > bound[i] {
			if at, ok := leads(seen[i], least, bound[i], 16); ok {
				m.Asked = at
			}
			continue
		}
		if at, ok := leads(seen[i], least, seen[i], 1); ok {
			if coin = !coin; coin {
				m.Asked = at
			}
		}
		least = seen[i]
		if i+1 < len(own) && seen[i+1] == seen[i] {
			least = bound[max(i-1, 0)] // they were in one packet: neither is before the other
		}
	}
	for i := len(own) - 2; i >= 0; i-- {
		own[i].Asked = min(own[i].Asked, own[i+1].Asked)
	}
}
