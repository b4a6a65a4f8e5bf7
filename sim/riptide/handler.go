package riptide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide/endpoint"
	"github.com/ackscope/ackscope/sim"
)

// Handler is the connection handler of a server's application: what it decides on clients, and after how long. The
// zero value accepts every client in the next frame.
type Handler struct {
	Decisions []Decision    // by client, the last one for all after it
	After     time.Duration // from the Connect to the decision
}

// Decision is what a handler does with one client.
type Decision struct {
	Kind DecisionKind
	Text string // of Reject: the data that goes with it; then its reason is Custom
}

// DecisionKind is the kind of a decision.
type DecisionKind uint8

// Accept makes the connection, Reject refuses it, and Never leaves it pending.
const (
	Accept DecisionKind = iota
	Reject
	Never
)

// DecisionWords are the words of ParseHandler.
var DecisionWords = []string{"accept", "reject", "never", "none"}

// ParseHandler reads decisions with commas between them: accept, reject, reject:TEXT or never. The word none is for a
// server without a handler: asks is then false, and the library accepts every client.
func ParseHandler(text string) (h Handler, asks bool, err error) {
	if text == "none" {
		return h, false, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		kind, data, with := strings.Cut(word, ":")
		switch {
		case kind == "accept" && !with:
			h.Decisions = append(h.Decisions, Decision{Kind: Accept})
		case kind == "reject":
			h.Decisions = append(h.Decisions, Decision{Kind: Reject, Text: data})
		case kind == "never" && !with:
			h.Decisions = append(h.Decisions, Decision{Kind: Never})
		default:
			return Handler{}, false, fmt.Errorf("%q: expected accept, reject, reject:TEXT or never, with commas between, "+
				"or none", text)
		}
	}
	return h, true, nil
}

// of returns the decision on a client.
func (h *Handler) of(peer machine.Peer) Decision {
	if len(h.Decisions) == 0 {
		return Decision{}
	}
	return h.Decisions[min(int(peer), len(h.Decisions)-1)]
}

// Desk is a handler at work for one server.
type Desk struct {
	handler Handler
	since   map[machine.Peer]machine.Instant // when each client that waits was first seen to
}

// NewDesk returns the handler of a server that no client has asked yet.
func NewDesk(h Handler) *Desk { return &Desk{handler: h, since: map[machine.Peer]machine.Instant{}} }

// Frame decides on the clients that have waited long enough.
func (d *Desk) Frame(f *sim.Frame, e *endpoint.Endpoint) {
	pending := e.Pending()
	for peer := range d.since {
		if !slices.Contains(pending, peer) {
			delete(d.since, peer) // it left: it asks as a new client
		}
	}
	for _, peer := range pending {
		since, known := d.since[peer]
		if !known {
			since = f.Now
			d.since[peer] = since
		}
		decision := d.handler.of(peer)
		switch {
		case decision.Kind == Never || f.Now.Sub(since) < d.handler.After:
		case decision.Kind == Accept:
			f.Do(machine.Command{Kind: machine.Accept, Peer: peer})
		default:
			f.Do(machine.Command{Kind: machine.Reject, Peer: peer, Payload: Greeting(e, decision.Text)})
		}
	}
}

// Greeting returns a text as the data of a Connect, a Reject or a kick. An empty text is no data.
func Greeting(e *endpoint.Endpoint, text string) []byte {
	if text == "" {
		return nil
	}
	w := e.Options().Codec.Writer(nil)
	w.Text(text)
	return w.Body()
}
