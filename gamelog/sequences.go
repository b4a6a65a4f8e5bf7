package gamelog

import (
	"cmp"
	"math"
	"slices"
)

// event is a line of a log with a time of its own, in the log's unit.
type event struct {
	t        float64
	sequence int64
}

// sends returns the sends in order of time. peer and stream choose among them, and
// -1 takes all.
func (l *Log) sends(peer, stream int) (list []event) {
	for i := range l.Entries {
		e := &l.Entries[i]
		if e.Kind == Send && (peer < 0 || int(e.Peer) == peer) && (stream < 0 || int(e.Stream) == stream && e.Sequence >= 0) {
			list = append(list, event{e.T, e.Sequence})
		}
	}
	slices.SortStableFunc(list, func(x, y event) int { return cmp.Compare(x.t, y.t) })
	return list
}

// numbered reports whether the log has sends with sequence numbers, as many as are tried.
func (l *Log) numbered() bool {
	for stream := range l.Streams {
		if len(l.sends(-1, stream)) >= pairsLeast {
			return true
		}
	}
	return false
}

// units are those in which times are written, in seconds.
var units = [...]float64{1, 1e-3, 1e-6, 1e-9}

// unitOf returns the unit that makes a slope in seconds per unit one. It returns false if none
// does, within what clocks may differ.
func unitOf(slope float64) (float64, bool) {
	for _, u := range units {
		if math.Abs(slope/u-1) <= 2*skewMost {
			return u, true
		}
	}
	return 0, false
}

// wrap is how many sequence numbers of 16 bits there are.
const wrap = 1 << 16

// lapsMost is how many laps of sequence numbers are tried. Source: bound, time of an alignment
const lapsMost = 64

// unwrap counts the numbers of a log on where they begin again at 0.
func unwrap(list []event) []event {
	out := slices.Clone(list)
	var last int64
	for i := range out {
		if out[i].sequence >= wrap {
			return list // they are not of 16 bits
		}
		if i == 0 {
			last = out[0].sequence
			continue
		}
		last += int64(int16(out[i].sequence - last))
		out[i].sequence = last
	}
	return out
}

// bySequence fits a log to the packets of a side by their numbers. The capture's times count from
// base. The log's times are rounded to quantum, in their own unit.
func bySequence(list []event, packets []passed, base int64, quantum float64) (best fit, unit float64) {
	if len(list) < pairsLeast || len(packets) < pairsLeast {
		return best, 0
	}
	list = unwrap(list)
	slices.SortStableFunc(list, func(x, y event) int { return cmp.Compare(x.sequence, y.sequence) })
	packets = slices.Clone(packets)
	slices.SortStableFunc(packets, func(x, y passed) int { return cmp.Compare(x.number, y.number) })
	low := floorDiv(packets[0].number-list[len(list)-1].sequence, wrap)
	high := floorDiv(packets[len(packets)-1].number-list[0].sequence, wrap) + 1
	for lap := low; lap <= min(high, low+lapsMost); lap++ {
		pairs := join(list, packets, lap*wrap, base)
		if len(pairs) < pairsLeast {
			continue
		}
		u, ok := unitOf(medianSlope(pairs))
		if !ok {
			continue
		}
		for i := range pairs {
			pairs[i].log *= u
		}
		f, ok := newFit(pairs)
		if !ok {
			continue
		}
		if f.evidence = agreement(pairs, quantum*u, agreeShifts); better(&f, &best) {
			best, unit = f, u
		}
	}
	return best, unit
}

// floorDiv divides and rounds down.
func floorDiv(x, y int64) int64 {
	q := x / y
	if x%y < 0 {
		q--
	}
	return q
}

// better reports whether a fit shows more surely than another one that a log is of a run.
func better(x, y *fit) bool {
	if x.proven() != y.proven() {
		return x.proven()
	}
	return x.agree > y.agree || y.n == 0
}

// join pairs lines and packets of equal numbers, where those of packets are higher by more. The
// first line and the first packet of a number count. Pairs are in order of the log's time.
func join(list []event, packets []passed, more, base int64) (pairs []pair) {
	for i, j := 0, 0; i < len(list) && j < len(packets); {
		switch want := list[i].sequence + more; {
		case i > 0 && list[i].sequence == list[i-1].sequence, want < packets[j].number:
			i++
		case want > packets[j].number:
			j++
		default:
			pairs = append(pairs, pair{list[i].t, float64(int64(packets[j].at)-base) / 1e9, int64(i), int64(j)})
			i++
		}
	}
	slices.SortStableFunc(pairs, func(x, y pair) int { return cmp.Compare(x.log, y.log) })
	return pairs
}
