package srdpcheck

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/srdppeer"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/sim"
)

// words are the kinds of entries that Ackscope's events tell.
var words = map[machine.EventKind]srdppeer.Kind{
	machine.EventSent: srdppeer.Sent, machine.EventResent: srdppeer.Resent, machine.EventReceived: srdppeer.Delivered,
	machine.EventDuplicate: srdppeer.Duplicate, machine.EventAcked: srdppeer.Acked, srdp.EventGaveUp: srdppeer.GaveUp,
	srdp.EventAckedAgain: srdppeer.AckUnknown,
}

// fact is what several events and log entries may share.
type fact struct {
	at, peer netip.AddrPort
	kind     srdppeer.Kind
	id       uint16
}

// tally counts what was held.
type tally struct {
	facts, certain int     // events about second endpoints
	wrong          [16]int // of them, likely or less: those that the log does not have, by kind
	likely         [16]int
	messages       int
	states         int // packets of a sent queue, and figures
	replayed       int // sides
	accused        int // of them, those that diverge, likely
	near           int // runs whose second endpoint was at the tap
	placed         int // of them, those whose tap was placed there
}

// String lists the figures.
func (c *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d events, %d certain", c.facts, c.certain)
	for kind, n := range c.likely {
		if n > 0 {
			fmt.Fprintf(&b, "; %v: %d less than certain, %d denied", srdppeer.Kind(kind), n, c.wrong[kind])
		}
	}
	fmt.Fprintf(&b, "; %d messages; %d rows of queues, certain; the tap placed at %d of %d; ", c.messages, c.states,
		c.placed, c.near)
	fmt.Fprintf(&b, "%d sides replayed, %d diverge, likely", c.replayed, c.accused)
	return b.String()
}

func (c *tally) add(x tally) {
	c.facts += x.facts
	c.certain += x.certain
	for i := range c.wrong {
		c.wrong[i] += x.wrong[i]
		c.likely[i] += x.likely[i]
	}
	c.messages += x.messages
	c.states += x.states
	c.replayed += x.replayed
	c.accused += x.accused
	c.near += x.near
	c.placed += x.placed
}

// hold returns a sentence for each kind of thing that Ackscope says and that
// the second endpoint's log denies. Of an endpoint at the tap it also returns
// one for what is missing.
func (o *outcome) hold(t *testing.T, s *scenario, x *told) (faults []string, c tally) {
	t.Helper()
	complain := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if n := len(x.session.Flows()); n != s.clients {
		complain("%d flows, expected one for each of %d clients", n, s.clients)
	}
	for _, f := range x.session.Flows() {
		if f.Protocol == nil || f.Protocol.Name != "srdp" {
			complain("flow %d is not taken for SRDP: %s", f.ID, f.Verdict.Reason)
		}
	}
	for _, e := range o.ends {
		if !e.second {
			continue
		}
		near := s.tap == 0 && e.role == sim.Client || s.tap == 1 && e.role == sim.Server
		h := holder{o: o, x: x, e: e, near: near, c: &c, log: map[fact][]time.Duration{}}
		for _, entry := range e.log {
			k := fact{e.addr, entry.Peer, entry.Kind, entry.ID}
			h.log[k] = append(h.log[k], entry.At)
		}
		h.events(complain)
		h.messages(complain)
		h.states(t, complain)
	}
	for _, r := range x.replayed.Results {
		c.replayed++
		if d := r.Divergence; d != nil && r.Certainty() < machine.Certain {
			c.accused++
		} else if d != nil {
			complain("replay: %s diverges in frame %d, %v: %s: %s", r.Addr(), d.Ref.Frame(), r.Certainty(), d.Rule.ID, d.Because)
		}
	}
	for _, a := range x.anomalies {
		if a.Certainty == machine.Certain && accuses[a.Rule] {
			complain("finding %s, certain, of %v in frame %d: no endpoint does that", a.Rule.ID, a.flow.Addr(a.Side),
				a.Ref.Frame())
		}
	}
	return faults, c
}

// accuses are the findings about what a correct endpoint does not do.
var accuses = map[*machine.Rule]bool{
	srdp.AckOfNothing: true, srdp.IDReuse: true, srdp.OrderBroken: true, srdp.AckIgnored: true, srdp.AckMissing: true,
	srdp.PromiseForgotten: true, srdp.CommandByte: true, srdp.UnknownFlags: true, srdp.Oversize: true,
	srdp.WrapInFlight: true, srdp.ForeignDatagram: true,
}

// holder compares what is told of one second endpoint with its log.
type holder struct {
	o    *outcome
	x    *told
	e    *end
	near bool // the tap is at it
	c    *tally
	log  map[fact][]time.Duration
}

// instant returns the time of the run when a frame passed the tap.
func (h *holder) instant(at machine.Instant) time.Duration { return at.Sub(h.o.epoch) }

func (h *holder) events(complain func(string, ...any)) {
	got := map[fact]int{}
	certain := map[fact]int{}
	bad := map[srdppeer.Kind][]string{}
	var spoke time.Duration // when it last sent something that passed the tap
	for i := range h.x.events {
		e := &h.x.events[i]
		kind, ok := words[e.Kind]
		if !ok || e.of() != h.e.addr {
			continue
		}
		at := h.instant(e.At)
		if kind != srdppeer.Acked && kind != srdppeer.AckUnknown && kind != srdppeer.GaveUp {
			spoke = max(spoke, at)
		}
		k := fact{e.of(), e.peer(), kind, uint16(e.Sequence)}
		got[k]++
		h.c.facts++
		times := h.log[k]
		if e.Certainty != machine.Certain {
			h.c.likely[kind]++
			if got[k] > len(times) {
				h.c.wrong[kind]++
			}
			continue
		}
		h.c.certain++
		n := certain[k]
		certain[k]++
		switch {
		case n >= len(times):
			bad[kind] = append(bad[kind], fmt.Sprintf("id %d in frame %d did not happen", k.id, e.Ref.Frame()))
		case kind != srdppeer.Acked && kind != srdppeer.AckUnknown && times[n] > at+h.o.close,
			kind == srdppeer.Acked && (times[n] < at-h.o.close || times[n] > at+100*time.Millisecond):
			bad[kind] = append(bad[kind], fmt.Sprintf("id %d in frame %d is of %v, it happened at %v", k.id, e.Ref.Frame(), at,
				times[n]))
		}
	}
	missing := map[srdppeer.Kind][]string{}
	for k, times := range h.log {
		switch k.kind {
		case srdppeer.Sent, srdppeer.Resent, srdppeer.Received, srdppeer.Acked:
			told := got[k]
			if k.kind == srdppeer.Received {
				k.kind = srdppeer.Delivered
				told = got[k]
				k.kind = srdppeer.Duplicate
				told += got[k]
			}
			for n, at := range times {
				if h.near && n >= told && at < spoke-200*time.Millisecond {
					missing[k.kind] = append(missing[k.kind], fmt.Sprintf("id %d (%d.) at %v", k.id, n+1, at))
				}
			}
		}
	}
	for kind, list := range bad {
		slices.Sort(list)
		complain("%v: %d events %v, certain, are wrong: %s", h.e.addr, len(list), kind, list[0])
	}
	for kind, list := range missing {
		slices.Sort(list)
		complain("%v at the tap: %d of its log, %v, are not told: %s", h.e.addr, len(list), kind, list[0])
	}
}

func (h *holder) messages(complain func(string, ...any)) {
	bad := map[string][]string{}
	for i := range h.x.messages {
		m := &h.x.messages[i]
		var wrong string
		switch h.e.addr {
		case m.flow.Addr(m.From):
			h.c.messages++
			wrong = h.sentOne(m)
		case m.flow.Addr(m.From.Other()):
			h.c.messages++
			wrong = h.gotOne(m)
		}
		if wrong != "" {
			bad[wrong] = append(bad[wrong], fmt.Sprintf("id %d of frame %d: %d copies, acked %v, %d deliveries", m.Sequence,
				m.Frames[0].Frame(), m.Attempts, m.Acked, m.Deliveries))
		}
	}
	for what, list := range bad {
		slices.Sort(list)
		complain("%v: %d messages are wrong %s: %s", h.e.addr, len(list), what, list[0])
	}
}

// of returns the times of one kind of thing that the end logged of a message.
func (h *holder) of(m *flowMessage, kind srdppeer.Kind) []time.Duration {
	peer := m.flow.Addr(m.From)
	if peer == h.e.addr {
		peer = m.flow.Addr(m.From.Other())
	}
	return h.log[fact{h.e.addr, peer, kind, uint16(m.Sequence)}]
}

// sentOne says what is wrong about a message of the end; "" is nothing.
func (h *holder) sentOne(m *flowMessage) string {
	copies := len(h.of(m, srdppeer.Sent)) + len(h.of(m, srdppeer.Resent))
	acked := len(h.of(m, srdppeer.Acked)) > 0
	switch {
	case copies == 0:
		return "that it did not send"
	case !h.near:
	case m.Attempts != copies:
		return "by their copies"
	case m.Acked != machine.Yes && acked:
		return "by an acknowledgement that is not told"
	case m.Acked == machine.Yes && !acked && len(h.of(m, srdppeer.GaveUp)) == 0:
		return "by an acknowledgement" // one that comes after it was given up passes the tap like others
	}
	return ""
}

// gotOne says what is wrong about a message to the end; "" is nothing.
func (h *holder) gotOne(m *flowMessage) string {
	delivered := h.of(m, srdppeer.Delivered)
	atOnce := 0 // a message is told two seconds after its last copy that passed
	for i, at := range delivered {
		if i > 0 && at-delivered[i-1] >= 2*time.Second {
			break
		}
		atOnce++
	}
	certain := m.Certainty == machine.Certain
	switch {
	case certain && m.Delivered == machine.Yes && len(delivered) == 0:
		return "by a delivery, certain"
	case !h.near:
	case m.Delivered != machine.Yes && len(delivered) > 0:
		return "by a delivery that is not told"
	case certain && (m.Deliveries > len(delivered) || m.Type == 0 && m.Deliveries < atOnce):
		return "by how often they were delivered, certain"
	}
	return ""
}

// stateFrames is at how many frames of a flow the state is compared.
const stateFrames = 24

// states compares the sent queue of an endpoint at the tap with its log, at
// some frames.
func (h *holder) states(t *testing.T, complain func(string, ...any)) {
	t.Helper()
	if !h.near {
		return
	}
	var bad []string
	for _, f := range h.x.session.Flows() {
		side := machine.A
		if f.Addr(machine.B) == h.e.addr {
			side = machine.B
		} else if f.Addr(machine.A) != h.e.addr {
			continue
		}
		h.c.near++
		if f.Facts().Vantage.Near(side) {
			h.c.placed++
		}
		frames := h.x.frames[f]
		for n := range min(stateFrames, len(frames)) {
			shown := frames[n*len(frames)/min(stateFrames, len(frames))]
			want, settled := h.queue(f.Addr(side.Other()), h.instant(shown.at))
			if !settled {
				continue
			}
			tracker, err := h.x.timeline.StateAt(f, shown.ref)
			if err != nil {
				t.Fatal(err)
			}
			var view machine.View
			tracker.Inspect(side, &view)
			bad = append(bad, h.compareQueue(&view, want, shown.ref)...)
		}
	}
	if len(bad) > 0 {
		complain("%v at the tap: %d states are wrong: %s", h.e.addr, len(bad), bad[0])
	}
}

// queue returns the copies so far of each packet to a peer, if it waits for an
// acknowledgement.
//
// If something happened at about that time, settled is false. The log and the
// tap then need not agree on what came first.
func (h *holder) queue(peer netip.AddrPort, at time.Duration) (copies map[uint16]int, settled bool) {
	const about = 2 * time.Millisecond
	copies = map[uint16]int{}
	for _, x := range h.e.log {
		if x.Peer != peer {
			continue
		}
		if x.At > at-about && x.At < at+about {
			return nil, false
		}
		if x.At > at {
			break
		}
		switch x.Kind {
		case srdppeer.Sent, srdppeer.Resent:
			copies[x.ID] = x.Copy
		case srdppeer.Acked, srdppeer.GaveUp:
			delete(copies, x.ID)
		}
	}
	return copies, true
}

// compareQueue checks what is certain of a sent queue: its length and its rows.
func (h *holder) compareQueue(v *machine.View, want map[uint16]int, ref machine.Ref) (faults []string) {
	for _, g := range v.Gauges {
		if g.Name == "in the sent queue" && g.Grade == machine.Certain && int(g.Value) != len(want) {
			faults = append(faults, fmt.Sprintf("frame %d: %v packets wait, certain; the log has %d", ref.Frame(), g.Value,
				len(want)))
		}
	}
	for _, table := range v.Tables {
		if !strings.HasPrefix(table.Name, "sent queue") {
			continue
		}
		for _, row := range table.Rows {
			if row[len(row)-1] != machine.Certain.String() {
				continue
			}
			h.c.states++
			id, _ := strconv.Atoi(row[0])
			copies, _ := strconv.Atoi(row[1])
			if n, waits := want[uint16(id)]; !waits || n != copies {
				faults = append(faults, fmt.Sprintf("frame %d: packet %d waits with %d copies, certain; the log has %d, waiting %v",
					ref.Frame(), id, copies, n, waits))
			}
		}
	}
	return faults
}
