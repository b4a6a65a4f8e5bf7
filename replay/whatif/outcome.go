package whatif

import (
	"math"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Outcome is what one side sent in a run, and how long its reliable messages
// took.
type Outcome struct {
	Packets, Bytes uint64 // datagrams (or packets, when a packet travels in fragments) and their payload
	Resends        uint64 // how often messages were sent again
	Lost           uint64 // of Packets: those that were lost
	// Guessed counts packets that left when the capture shows nothing. Doubtful
	// counts packets whose fate the capture leaves open.
	Guessed, Doubtful uint64

	Latency     []time.Duration // from submission to delivery, in ascending order
	Wait        []time.Duration // the part held by an earlier message (head-of-line blocking), in ascending order
	Undelivered int             // messages that were not delivered when the capture ended
	Refused     int             // messages that could not be submitted: the connection had ended
}

// Quantile returns a quantile of times in ascending order. It returns 0 when
// there are none.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// original returns what the capture itself shows of a side. Packets that were
// lost before the tap count as sent.
//
// A peer at the tap reads its socket in frames: what passed the tap waited for
// the next frame. A peer far from the tap shows by its own packets when it had
// read; frames is nil then.
func original(x *machine.TraceSide, frames *machine.Frames, cuts silences) (o Outcome) {
	for i := range x.Sent {
		d := &x.Sent[i]
		o.Packets++
		o.Bytes += uint64(d.Length)
		if d.Fate == machine.No {
			o.Lost++
		}
		if d.Ref == 0 && d.Role == machine.RoleAsks {
			o.Resends++ // a datagram that the tap did not see was another copy
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

// Fit returns how far the run with the capture's own settings is from the
// capture. It is the largest relative difference among packets, bytes, median
// latency and the 95th percentile of latency. 0 is a perfect fit.
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

// Certainty returns the grade that a fit allows for a run under other settings.
func Certainty(fit float64) machine.Certainty {
	switch {
	case fit <= 0.05:
		return machine.Likely
	case fit <= 0.2:
		return machine.Possible
	}
	return machine.Unknown
}
