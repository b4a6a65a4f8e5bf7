package whatif

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

func rateOf(x *machine.TraceSide) float64 {
	n := len(x.Sent)
	if n < 2 || x.Sent[n-1].Left <= x.Sent[0].Left {
		return 0
	}
	return float64(n-1) / x.Sent[n-1].Left.Sub(x.Sent[0].Left).Seconds()
}

// resendOf estimates the resend time from what sides at the tap sent again. A
// packet that carried a message again shows that the time had passed. The
// packet before it did not carry the message: the time had not passed yet.
func (s *Stage) resendOf(t *machine.Trace) machine.Setting {
	v := machine.Setting{
		Name: "resend", Unit: "ms", Value: machine.Milliseconds(s.lanes[0].resend.After),
		Certainty: machine.Possible, Why: "the usual: nothing was sent again",
	}
	if s.resend.IsSet() {
		v.Certainty, v.Why = machine.Certain, fmt.Sprintf("the profile says %v", s.resend)
		if s.resend.Policy == wire.ResendRTT {
			v.Unit, v.Value = "rtt", s.resend.Times
		}
		return v
	}
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

// mostAgree returns the times that lie in most of the intervals, above lo and
// up to hi. It also returns in how many intervals they lie.
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

// sentAs returns the index of a packet of a side at the tap, by its frame. It
// returns -1 when there is none.
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

// placeUnseen estimates when messages of a far side were submitted whose first
// packet was lost before the tap. The capture shows such a message only when it
// was sent again.
//
//   - A later message overtook it: its first packet was lost. That packet left
//     a whole number of resend times before the first packet that was seen.
//   - No message overtook it, but a lost packet fits all the same: the message
//     may have been in either packet. Every second such message counts as lost.
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
	// leads returns the newest lost packet, at or before bound, from which
	// resend times lead to the packet that was seen. At most most resend times
	// are between the two. The next packet after the last of them must be the
	// one that was seen.
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
	// It was submitted when a later message was seen, at the latest. It was
	// submitted after the newest message before it that no message overtook.
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
			least = bound[max(i-1, 0)] // they were in one packet: neither comes first
		}
	}
	for i := len(own) - 2; i >= 0; i-- {
		own[i].Asked = min(own[i].Asked, own[i+1].Asked)
	}
}
