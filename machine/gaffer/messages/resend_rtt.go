package messages

import (
	"slices"
	"sort"
	"time"

	"github.com/ackscope/ackscope/machine"
)

const (
	// rttSpansMost is how many spans the history of an RTT has.
	// Source: bound, the history of an RTT
	rttSpansMost = 512
	// rttSame is the share by which an RTT changes before it opens a new span.
	// Source: bound, the history of an RTT
	rttSame = 0.01
)

// rttHistory is the smoothed RTT of a side over time, as spans in their order. It is nil
// while the side has no RTT.
type rttHistory []rttSpan

// rttSpan is a time in which the RTT hardly changed. It ends where the next one begins.
type rttSpan struct {
	at          machine.Instant
	least, most time.Duration
}

// enter enters the RTT as of an instant.
func (h *rttHistory) enter(rtt time.Duration, at machine.Instant) {
	n := len(*h)
	if n > 0 {
		s := &(*h)[n-1]
		least, most := min(s.least, rtt), max(s.most, rtt)
		if most-least <= time.Duration(rttSame*float64(least)) {
			s.least, s.most = least, most
			return
		}
	}
	if n == rttSpansMost {
		for i := range n / 2 {
			a, b := (*h)[2*i], (*h)[2*i+1]
			(*h)[i] = rttSpan{a.at, min(a.least, b.least), max(a.most, b.most)}
		}
		*h = (*h)[:n/2]
	}
	*h = append(*h, rttSpan{at, rtt, rtt})
}

// between returns the extremes of the RTT in a stretch of time. known is false if the
// side had no RTT at its beginning.
func (h rttHistory) between(from, to machine.Instant) (least, most time.Duration, known bool) {
	i := sort.Search(len(h), func(i int) bool { return h[i].at > from }) - 1
	known = i >= 0
	for i = max(i, 0); i < len(h) && h[i].at <= to; i++ {
		if least == 0 {
			least = h[i].least
		}
		least, most = min(least, h[i].least), max(most, h[i].most)
	}
	return least, most, known
}

// clone returns a copy that does not change.
func (h rttHistory) clone() rttHistory { return slices.Clone(h) }
