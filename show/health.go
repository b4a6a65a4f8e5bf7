package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// Health summarises the network of several flows: loss by direction, round trips, messages
// that were sent again. It is shown where no rule found anything. Unknown figures are shown
// as unknown.
type Health struct {
	flows    int // flows of a known protocol
	ways     [2]way
	least    time.Duration // shortest and longest mean round trip of a flow
	most     time.Duration
	timed    bool
	resends  uint64 // messages that were sent more than once
	messages uint64 // of so many
	room     machine.Figures
}

// way is the loss of one direction: of so many packets, at least and at most so many were
// lost.
type way struct {
	sent, least, most float64
	open              bool // some figures include the way back
}

// Add adds a flow.
func (h *Health) Add(f *analyze.Flow) {
	if f.Protocol == nil {
		return
	}
	h.flows++
	f.Unpacked(&h.room, func() { h.add(f) })
}

func (h *Health) add(f *analyze.Flow) {
	library := time.Duration(-1)
	for _, side := range []machine.Side{machine.A, machine.B} {
		n, ok := f.Network(side)
		if !ok {
			continue
		}
		h.resends, h.messages = h.resends+n.Resends, h.messages+n.Sent
		h.ways[side].add(f, side, &n)
		if library < 0 {
			library = f.RTT(side)
		}
	}
	rtt := f.RoundTrip().Mean
	if rtt < 0 {
		rtt = library
	}
	if rtt < 0 {
		return
	}
	if !h.timed {
		h.least, h.most, h.timed = rtt, rtt, true
	}
	h.least, h.most = min(h.least, rtt), max(h.most, rtt)
}

// LossText formats the loss of what a side sent, as far as the capture shows it: "4.7%",
// "between 3.0% and 11.0%", "unknown".
func LossText(f *analyze.Flow, side machine.Side) string {
	n, ok := f.Network(side)
	if !ok {
		return "unknown"
	}
	var w way
	w.add(f, side, &n)
	if w.open && w.sent > 0 {
		return w.text() + " with the way back"
	}
	return w.text()
}

// add adds the loss of a flow: its bounds, where the tap does not tell more.
func (w *way) add(f *analyze.Flow, side machine.Side, n *analyze.Network) {
	if n.Loss.Known() && !n.Tells {
		w.sent, w.least, w.most = w.sent+float64(n.Loss.Sent), w.least+float64(n.Loss.Least), w.most+float64(n.Loss.Most)
		return
	}
	sum, _ := f.Summary(side)
	settled := max(sum.Path.Settled, n.Loss.Sent)
	if n.Share < 0 || settled == 0 {
		return
	}
	lost := n.Share * float64(settled)
	w.sent, w.least, w.most = w.sent+float64(settled), w.least+lost, w.most+lost
	w.open = w.open || n.Round
}

// text formats the loss: "0.3%", "between 3.0% and 11.0%", "unknown".
func (w *way) text() string {
	if w.sent == 0 || w.least == 0 && w.most >= w.sent {
		return "unknown"
	}
	least, most := Percent(w.least/w.sent), Percent(w.most/w.sent)
	if least == most {
		return least
	}
	return "between " + least + " and " + most
}

// String formats the summary: "Loss A→B 0.3%, B→A 0.2%; RTT 41 ms; 16 of 240 messages resent".
func (h *Health) String() string {
	if h.flows == 0 {
		return "Loss and RTT unknown"
	}
	var ways []string
	for side, name := range [2]string{"A→B", "B→A"} {
		w := &h.ways[side]
		if w.open {
			name += " and back"
		}
		ways = append(ways, name+" "+w.text())
	}
	rtt := "RTT unknown"
	if h.timed {
		rtt = fmt.Sprintf("RTT %.0f ms", float64(h.least)/1e6)
		if text := fmt.Sprintf("RTT %.0f to %.0f ms", float64(h.least)/1e6,
			float64(h.most)/1e6); h.most.Round(time.Millisecond) != h.least.Round(time.Millisecond) {
			rtt = text
		}
	}
	text := "Loss " + strings.Join(ways, ", ") + "; " + rtt
	if h.messages > 0 {
		text += fmt.Sprintf("; %s of %s resent", Grouped(h.resends), Plural(h.messages, "message"))
	}
	return text
}
