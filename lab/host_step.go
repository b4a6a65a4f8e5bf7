package lab

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

// step passes one input to an endpoint and carries out the effects.
func (h *Host) step(e *running, in machine.Input) error {
	if err := e.driver.Step(h.options.Clock.Now(), in); err != nil {
		return fmt.Errorf("%s: %T: %w", e.name, in, err)
	}
	return nil
}

// Do implements sim.Owner.
func (e *running) Do(in machine.Input) error { return e.host.step(e, in) }

// Carry implements sim.Owner: first it sends, then it writes the journal and
// the log.
func (e *running) Carry(s *sim.Step) {
	h := e.host
	for i := range s.Out.Transmit {
		h.transmit(e, &s.Out.Transmit[i], s.At)
	}
	h.options.Journal.record(journalHost(h.options.Role, e.n), s)
	if h.options.Log != nil {
		for _, line := range e.Log.Step(s) {
			h.tell(e, s.At, line)
		}
	}
}

// WakeAt implements sim.Owner: the deadline arrives through the inbox.
func (e *running) WakeAt(at machine.Instant, ok bool) {
	h := e.host
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

// post puts an arrival into the inbox. It returns false when the host has
// ended.
func (h *Host) post(a arrival) bool {
	select {
	case h.inbox <- a:
		return true
	case <-h.gone:
		return false
	}
}

// transmit puts a transmission on the network.
func (h *Host) transmit(e *running, t *machine.Transmission, now machine.Instant) {
	if int(t.To) >= len(e.peers) {
		return
	}
	p := e.peers[t.To]
	if err := h.network.send(p, t); err != nil {
		h.tell(e, now, sim.Line{"event": "send_failed", "error": err.Error()})
	}
}
