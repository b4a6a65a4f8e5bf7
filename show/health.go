package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// Health summarises the network of several flows: loss by direction, round
// trips, resends. It is shown where no rule found anything. Unknown figures are
// shown as unknown.
type Health struct {
	flows   int // flows of a known protocol
	ways    [2]way
	least   time.Duration // shortest and longest RTT of a flow
	most    time.Duration
	timed   bool
	resends uint64
}

// way is the loss of one direction.
type way struct {
	settled, lost uint64
	open          bool // some figures include the way back
}

// Add adds a flow.
func (h *Health) Add(f *analyze.Flow) {
	if f.Protocol == nil {
		return
	}
	h.flows++
	rtt := time.Duration(-1)
	for _, side := range []machine.Side{machine.A, machine.B} {
		s, ok := f.Summary(side)
		if !ok {
			continue
		}
		h.resends += s.Resends
		if s.PathKnown != machine.Unknown && s.Path.Settled > 0 {
			w := &h.ways[side]
			w.settled, w.lost, w.open = w.settled+s.Path.Settled, w.lost+s.Path.Lost, w.open || s.PathBoth
		}
		if rtt < 0 {
			rtt = s.RTT
		}
	}
	if rtt < 0 {
		return
	}
	if !h.timed {
		h.least, h.most, h.timed = rtt, rtt, true
	}
	h.least, h.most = min(h.least, rtt), max(h.most, rtt)
}

// String formats the summary: "Loss A→B 0.3%, B→A 0.2%; RTT 41 ms; 16 resent".
func (h *Health) String() string {
	if h.flows == 0 {
		return "Loss and RTT unknown"
	}
	var parts []string
	for side, name := range [2]string{"A→B", "B→A"} {
		w := &h.ways[side]
		switch {
		case w.settled == 0:
			parts = append(parts, name+" unknown")
		case w.open:
			parts = append(parts, name+" and back "+Percent(float64(w.lost)/float64(w.settled)))
		default:
			parts = append(parts, name+" "+Percent(float64(w.lost)/float64(w.settled)))
		}
	}
	rtt := "RTT unknown"
	if h.timed {
		rtt = fmt.Sprintf("RTT %.0f ms", float64(h.least)/1e6)
		if text := fmt.Sprintf("RTT %.0f to %.0f ms", float64(h.least)/1e6,
			float64(h.most)/1e6); h.most.Round(time.Millisecond) != h.least.Round(time.Millisecond) {
			rtt = text
		}
	}
	return fmt.Sprintf("Loss %s; %s; %s resent", strings.Join(parts, ", "), rtt, Grouped(h.resends))
}
