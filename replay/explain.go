package replay

import (
	"slices"

	"github.com/ackscope/ackscope/machine"
)

// explainMost bounds the work of one explanation: how many datagrams are judged.
const explainMost = 2 << 20

// explain finds the smallest set of earlier frames from which a divergence follows. Fed these
// frames and the divergent packet alone, the judge says the same of it. Without any one of
// them it does not. If the flow is too long to find such a set, the judge's frames stay.
func (x *suspect) explain(k int, side machine.Side, d *machine.Divergence) error {
	at := -1
	for i := range x.history.list {
		if h := &x.history.list[i]; h.Ref == d.Ref && h.From == side {
			at = i
		}
	}
	if at < 0 {
		return nil
	}
	left := explainMost
	var failed error
	stands := func(of []int) bool {
		if left -= len(of) + 1; left < 0 || failed != nil {
			return false
		}
		j, err := x.flow.Protocol.NewJudge(x.flow.Config(), x.comparison.pair(k))
		if err != nil {
			failed = err
			return false
		}
		for _, i := range of {
			j.Observe(&x.history.list[i])
			if j.Opinion(side).Divergence != nil {
				return false // another packet diverges
			}
		}
		j.Observe(&x.history.list[at])
		v := j.Opinion(side).Divergence
		return v != nil && v.Ref == d.Ref && v.Rule == d.Rule && v.Field == d.Field && v.Expected == d.Expected &&
			v.Got == d.Got
	}
	all := make([]int, at)
	for i := range all {
		all[i] = i
	}
	if !stands(all) {
		return failed
	}
	set := thin(shorten(all, stands), stands)
	d.Frames = d.Frames[:0:0]
	for _, i := range set {
		if ref := x.history.list[i].Ref; ref != d.Ref && !slices.Contains(d.Frames, ref) {
			d.Frames = append(d.Frames, ref)
		}
	}
	return failed
}

// shorten leaves out the oldest frames, as many as the divergence does not need.
func shorten(of []int, stands func([]int) bool) []int {
	k := 1
	for ; k < len(of) && !stands(of[len(of)-k:]); k *= 2 {
	}
	if k >= len(of) {
		return of
	}
	// Half of them did not suffice.
	low, high := k/2, k
	for low+1 < high {
		if mid := (low + high) / 2; stands(of[len(of)-mid:]) {
			high = mid
		} else {
			low = mid
		}
	}
	return of[len(of)-high:]
}

// thin leaves out chunks of frames, and smaller chunks where nothing more can go. It ends when
// no single frame can go (ddmin of Zeller and Hildebrandt, complements only).
func thin(of []int, stands func([]int) bool) []int {
	if stands(nil) {
		return nil
	}
	for size := (len(of) + 1) / 2; size >= 1; {
		gone := false
		for from := 0; from < len(of); {
			rest := slices.Concat(of[:from], of[min(from+size, len(of)):])
			if stands(rest) {
				of, gone = rest, true
				continue
			}
			from += size
		}
		switch {
		case size > 1:
			size = (size + 1) / 2
		case !gone:
			return of
		}
	}
	return of
}
