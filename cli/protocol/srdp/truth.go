package srdp

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"

	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// srdpLog is what the endpoints of a run did, in the form of the truth files
// beside recorded captures: a line of JSON an event, by rising time. Every copy
// has its line: sent and resent by who sends, received (handed over) or duplicate
// (dropped) by who gets it, acked and acked_again for the acknowledgements read,
// gave_up for the end without one.
type srdpLog struct {
	cast  *srdpCast
	s     *simulate.Simulation
	lines []map[string]any
	last  machine.Instant
}

func (l *srdpLog) begin(c *srdpCast, s *simulate.Simulation) {
	l.cast, l.s = c, s
	f := c.flags
	params := f.Params()
	params["repeats"], params["timeout"], params["services"] = f.Repeats, f.Timeout, f.Services
	var ports []uint16
	for _, h := range s.World.Hosts() {
		if l.isClient(h) {
			ports = append(ports, s.Addrs[h.Index].Port())
		}
	}
	scenario := map[string]any{
		"name": "simulated", "client_addr": simulate.Addrs[0].Addr().String(), "client_ports": ports,
		"server_addr": simulate.Addrs[1].Addr().String(), "server_port": simulate.Addrs[1].Port(), "params": params,
	}
	if c.proxy != srdpStraight {
		scenario["proxy_addr"], scenario["proxy_port"] = srdpProxyAddr.Addr().String(), srdpProxyAddr.Port()
	}
	l.add(0, "harness", "scenario", scenario)
	for _, h := range s.World.Hosts() {
		first := c.first[1]
		if l.isClient(h) {
			first = c.first[0]
		}
		if first != 0 && h.Name != "proxy" {
			l.add(0, h.Name, "logging_starts", map[string]any{"next_seq": first})
		}
	}
	s.World.Watch(l.watch)
}

func (l *srdpLog) isClient(h *sim.Host) bool { return h.Name != "server" && h.Name != "proxy" }

func (l *srdpLog) add(at machine.Instant, endpoint, event string, line map[string]any) {
	line["t"], line["endpoint"], line["event"] = math.Round(float64(at+simulate.Epoch)/1e3)/1e6, endpoint, event
	l.lines = append(l.lines, line)
	l.last = max(l.last, at)
}

// watch takes down what one step did.
func (l *srdpLog) watch(step *sim.Step) {
	sent := 0 // of step.Out.Transmit: events of sending are in its order
	for i := range step.Out.Events {
		e := &step.Out.Events[i]
		word, own := srdp.EventNames[e.Kind]
		if !own {
			word = e.Kind.String()
		}
		line := map[string]any{"seq": e.Sequence, "seq64": e.Sequence64, "flags": e.Channel}
		if at, ok := l.remote(step.Host, e.Peer); ok {
			line["peer"] = at
		}
		switch e.Kind {
		case machine.EventSent, machine.EventResent:
			var header []byte
			header, line["bytes"] = l.next(step.Out.Transmit, &sent)
			line["hex"] = hex.EncodeToString(header)
		case machine.EventReceived:
			for _, d := range step.Out.Deliver {
				if d.ID == uint64(e.Sequence) && d.From == e.Peer {
					line["bytes"] = len(d.Payload)
				}
			}
		case machine.EventAcked:
			if e.RTT >= 0 {
				line["rtt_ms"] = math.Round(float64(e.RTT)/1e3) / 1e3
			}
		}
		l.add(step.At, step.Host.Name, word, line)
	}
}

// next gives the header of the next data packet that a step has sent, and how
// many bytes follow it.
func (l *srdpLog) next(list []machine.Transmission, from *int) (header []byte, size int) {
	p := &l.cast.profile
	for *from < len(list) {
		t := &list[*from]
		*from++
		b := t.Bytes
		if t.Kind == machine.SendBytes {
			b = b[min(p.FramePrefix, len(b)):]
		}
		var pk wire.Packet
		if p.Fits(b, len(b), &pk) && !pk.Ack {
			return b[:pk.PayloadOffset], pk.PayloadLen
		}
	}
	return nil, 0
}

// remote gives the address of a host's peer.
func (l *srdpLog) remote(h *sim.Host, peer machine.Peer) (string, bool) {
	known, ok := h.Endpoint().(interface {
		Address(machine.Peer) (wire.Address, bool)
	})
	if ok {
		if a, ok := known.Address(peer); ok {
			return a.String(), true
		}
	}
	if l.isClient(h) {
		return simulate.Addrs[1].String(), true
	}
	// In the direct form the hosts after the server are its clients, by number.
	if i := h.Index + 1 + int(peer); h.Index == 0 && l.cast.proxy == srdpStraight && i < len(l.s.Addrs) {
		return l.s.Addrs[i].String(), true
	}
	return "", false
}

// write writes the lines, and a last one of each host with its figures.
func (l *srdpLog) write(w io.Writer) error {
	for _, h := range l.s.World.Hosts() {
		line := map[string]any{}
		var v machine.View
		h.Endpoint().Inspect(&v)
		for _, g := range v.Gauges {
			line[g.Name] = g.Value
		}
		l.add(l.last, h.Name, "final", line)
	}
	buffered := bufio.NewWriter(w)
	lines := json.NewEncoder(printable.JSONWriter(buffered))
	for _, line := range l.lines {
		if err := lines.Encode(line); err != nil {
			return err
		}
	}
	return buffered.Flush()
}
