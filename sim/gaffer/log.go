package gaffer

import (
	"encoding/hex"
	"fmt"
	"net/netip"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/endpoint"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// log describes an endpoint in the form of the recorded captures' logs. Conn is the
// number of its connection.
type log struct {
	kit      *Kit
	role     sim.Role
	n        int
	endpoint *endpoint.Endpoint
}

// Opening implements sim.Describer.
func (l *log) Opening(_, _ netip.AddrPort) []sim.Line {
	if first := l.kit.First[l.role]; first != 0 {
		return []sim.Line{{"event": "logging_starts", "conn": l.n, "next_seq": first}}
	}
	return nil
}

// Opened implements sim.Describer.
func (l *log) Opened(netip.AddrPort) sim.Line { return nil }

// Met implements sim.Describer. A server logs who its client is.
func (l *log) Met(_ machine.Peer, at netip.AddrPort) sim.Line {
	if l.role == sim.Client {
		return nil
	}
	return sim.Line{"event": "peer", "conn": l.n, "addr": at.Addr().String(), "port": at.Port()}
}

// Step implements sim.Describer.
func (l *log) Step(step *sim.Step) (lines []sim.Line) {
	for _, f := range step.Facts(nil) {
		lines = append(lines, l.line(&f))
	}
	return lines
}

func (l *log) line(f *sim.Fact) sim.Line {
	line := sim.Line{"conn": l.n, "event": f.Event.Kind.String(), "seq": f.Event.Sequence}
	if f.Bytes >= 0 {
		line["bytes"] = f.Bytes
	}
	switch f.Event.Kind {
	case machine.EventSent:
		line["datagrams"], line["hex"] = f.Datagrams, hex.EncodeToString(f.Head)
		var p wire.Packet
		if err := l.kit.Profile.Parse(f.Head, f.Length, &p); p.HasHeader && (err == nil || p.HeaderLen > 0) {
			line["ack"], line["ack_bits"] = p.Header.Ack, fmt.Sprintf("%08x", p.Header.AckBits)
			line["hex"] = hex.EncodeToString(f.Head[:min(len(f.Head), p.HeaderOffset+p.HeaderLen)])
		}
	case machine.EventAcked:
		if f.Event.RTT >= 0 {
			line["rtt_ms"] = sim.Milliseconds(f.Event.RTT)
		}
	}
	return line
}

// Final implements sim.Describer. It returns the endpoint's own estimates.
func (l *log) Final() sim.Line {
	line := sim.Line{"event": "final", "conn": l.n}
	sim.Gauges(l.endpoint, line)
	return line
}
