package lab

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

// step hands one input to an endpoint and carries out what comes of it.
func (h *Host) step(e *running, in machine.Input) error {
	now := h.options.Clock.Now()
	e.out.Reset()
	if err := e.Endpoint.Step(now, in, &e.out); err != nil {
		return fmt.Errorf("%s: %T: %w", e.name, in, err)
	}
	for i := range e.out.Transmit {
		h.transmit(e, &e.out.Transmit[i], now)
	}
	h.options.Journal.record(e.label.Index, now, in, &e.out)
	if h.options.Log != nil {
		s := sim.Step{At: now, Host: e.label, In: in, Out: &e.out}
		for _, line := range e.Log.Tell(&s) {
			h.tell(e, now, line)
		}
	}
	for i := range e.out.Events {
		if kind := e.out.Events[i].Kind; kind < machine.EventProtocol {
			e.counts.Events[kind]++
		}
	}
	e.counts.Sent += uint64(len(e.out.Transmit))
	for _, d := range e.out.Deliver {
		d.Payload = append([]byte(nil), d.Payload...)
		e.delivered = append(e.delivered, d)
	}
	if h.rhythm.EventDriven {
		h.schedule(e)
	}
	return nil
}

// schedule has the endpoint's deadline come back through the inbox.
func (h *Host) schedule(e *running) {
	at, ok := e.Endpoint.Deadline()
	switch {
	case !ok:
		if e.waking != nil {
			e.waking.Stop()
		}
	case e.waking == nil:
		e.waking = time.AfterFunc(h.options.Clock.until(at), func() { h.post(arrival{kind: arrivedDeadline}) })
	default:
		e.waking.Reset(h.options.Clock.until(at))
	}
}

// post gives the host something to take; false once nobody takes it any more.
func (h *Host) post(a arrival) bool {
	select {
	case h.inbox <- a:
		return true
	case <-h.gone:
		return false
	}
}

// transmit puts something on the network.
func (h *Host) transmit(e *running, t *machine.Transmission, now machine.Instant) {
	if int(t.To) >= len(e.peers) {
		return
	}
	p := e.peers[t.To]
	if err := h.network.send(p, t); err != nil {
		h.tell(e, now, Line{"event": "send_failed", "error": err.Error()})
	}
}
