package endpoint

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// Inspect draws the endpoint's buffers, its estimates and, if it has any, its messages.
func (e *Endpoint) Inspect(v *machine.View) {
	v.Reset()
	v.Windows = append(v.Windows, e.viewSent(), e.viewReceived())
	sent, acked, received := e.estimate.Bandwidth()
	spread := e.estimate.Spread()
	for _, g := range []machine.Gauge{
		{Name: "rtt", Value: e.estimate.rtt, Unit: "ms"},
		{Name: "rtt_min", Value: spread.Least, Unit: "ms"},
		{Name: "rtt_max", Value: spread.Most, Unit: "ms"},
		{Name: "rtt_avg", Value: spread.Mean, Unit: "ms"},
		{Name: "jitter_avg_vs_min", Value: spread.JitterMean, Unit: "ms"},
		{Name: "jitter_max_vs_min", Value: spread.JitterMost, Unit: "ms"},
		{Name: "jitter_stddev_vs_avg", Value: spread.JitterDeviation, Unit: "ms"},
		{Name: "packet_loss", Value: e.estimate.loss * 100, Unit: "%"},
		{Name: "sent_kbps", Value: sent, Unit: "kbit/s"},
		{Name: "acked_kbps", Value: acked, Unit: "kbit/s"},
		{Name: "received_kbps", Value: received, Unit: "kbit/s"},
	} {
		g.Grade = machine.Certain
		v.Gauges = append(v.Gauges, g)
	}
	if e.messages != nil {
		e.messages.Inspect(v)
	}
}

func (e *Endpoint) viewSent() machine.Window {
	s, r := &e.state, e.state.Rules
	count := min(int64(r.Sent), e.next64-int64(e.options.First))
	w := machine.Window{Name: "sent", First: e.next64 - count, Next: e.next64, Size: r.Sent, Grade: machine.Certain}
	for q := w.First; q < w.Next; q++ {
		cell := machine.CellEmpty
		p := s.Sent(uint32(q) & r.Mask())
		if p != nil {
			cell = machine.CellSent
			if p.Flags&gaffer.SentAcked != 0 {
				cell = machine.CellAcked
			}
			w.Slots = append(w.Slots, machine.Slot{
				Index: int(p.Sequence) % r.Sent, Sequence: p.Sequence, Sequence64: q, Cell: cell,
				SentAt: p.At, AckedAt: p.AckedAt, Bit: p.Bit, Grade: machine.Certain,
			})
		}
		w.Cells = append(w.Cells, cell)
	}
	return w
}

func (e *Endpoint) viewReceived() machine.Window {
	s, r := &e.state, e.state.Rules
	w := machine.Window{Name: "received", Next: -1, Size: r.Received, Grade: machine.Certain}
	if e.newest64 < 0 {
		return w
	}
	// A fragment may have moved the window beyond the newest packet received.
	w.Next = e.newest64 + int64(r.Distance(s.NewestReceived(), uint32(e.newest64)&r.Mask()))
	w.First = max(0, w.Next-int64(r.Received)+1)
	for q := w.First; q <= w.Next; q++ {
		sequence := uint32(q) & r.Mask()
		cell := machine.CellEmpty
		switch {
		case s.Has(sequence):
			cell = machine.CellReceived
			w.Slots = append(w.Slots, machine.Slot{
				Index: int(sequence) % r.Received, Sequence: sequence, Sequence64: q, Cell: cell, Grade: machine.Certain,
			})
		case s.PartialOf(sequence) != nil:
			cell = machine.CellPartial
		}
		w.Cells = append(w.Cells, cell)
	}
	return w
}
