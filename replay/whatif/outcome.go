package whatif

import (
	"math"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Outcome is what one side sent in a run, and when its reliable messages were
// handed over.
type Outcome struct {
	Packets, Bytes uint64 // datagrams (packets, where one travels in fragments) and their payload
	Resends        uint64 // messages that were sent again, each time counted
	Lost           uint64 // of Packets
	// Guessed counts what left at a time of which the capture tells nothing, and
	// Doubtful what met a fate that the capture leaves open.
	Guessed, Doubtful uint64

	Latency     []time.Duration // from submission to delivery, in order of size
	Wait        []time.Duration // of it, held by an earlier message (head-of-line), in order of size
	Undelivered int             // messages that were not delivered when the capture ended
	Refused     int             // messages that could not be submitted: the connection had ended
}

// Quantile returns a quantile of times in order of size; 0 of none.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// original returns what the capture itself shows of a side. What was lost before the
// tap counts as sent. A peer at the tap looks at its socket in these frames, so
// what passed the tap waited for the next one; of one far from it, its own packets
// showed when it had looked.
func original(x *machine.TraceSide, frames *machine.Frames, cuts silences) (o Outcome) {
	for i := range x.Sent {
		d := &x.Sent[i]
		o.Packets++
		o.Bytes += uint64(d.Length)
		if d.Fate == machine.No {
			o.Lost++
		}
		if d.Ref == 0 && d.Role == machine.RoleAsks {
			o.Resends++ // another copy of it came
		}
		if d.Fate == machine.Unanswered {
			o.Guessed++
		} else if d.Certainty <= machine.Possible {
			o.Doubtful++
		}
	}
	for i := range x.Messages {
		m := &x.Messages[i]
		if m.Mode != machine.ModeReliable {
			continue
		}
		o.Resends += uint64(max(m.Attempts-1, 0))
		if m.Delivered != machine.Yes {
			o.Undelivered++
			continue
		}
		at := m.At
		if k := frames.Search(at); k < frames.Len() {
			at = frames.At(k)
		}
		o.Latency = append(o.Latency, max(cuts.between(m.Asked, at), 0))
		o.Wait = append(o.Wait, m.Wait)
	}
	slices.Sort(o.Latency)
	slices.Sort(o.Wait)
	return o
}

// Fit tells how well the run with the capture's own settings reproduces the
// capture: the largest of the relative differences of the median and of the 95th
// percentile of latency, and of packets and bytes. 0 is a perfect fit.
func Fit(original, rehearsal *Outcome) float64 {
	off := func(a, b, least float64) float64 {
		if d := math.Abs(a - b); d > least {
			return d / max(math.Abs(a), least)
		}
		return 0
	}
	worst := max(
		off(float64(original.Packets), float64(rehearsal.Packets), 1),
		off(float64(original.Bytes), float64(rehearsal.Bytes), 100),
	)
	for _, q := range []float64{0.5, 0.95} {
		worst = max(worst, off(float64(Quantile(original.Latency, q)), float64(Quantile(rehearsal.Latency, q)),
			float64(time.Millisecond)))
	}
	return worst
}

// Certainty returns what a fit lets one say of a run under other settings.
func Certainty(fit float64) machine.Certainty {
	switch {
	case fit <= 0.05:
		return machine.Likely
	case fit <= 0.2:
		return machine.Possible
	}
	return machine.Unknown
}
