package srdp

import (
	"encoding/hex"
	"net/netip"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// Form is the difference between the logs of the two commands.
type Form struct {
	// Sockets adds lines for real sockets: an endpoint's start with its
	// settings, its stream, its peers, and what a UDP proxy forwards. Without
	// it, an endpoint whose ids do not start at 0 logs its first id.
	Sockets bool
}

// log describes an endpoint like the logs of the other protocols, since no
// recorded captures of SRDP exist. Every copy has its line:
//
//   - The sender logs sent or resent.
//   - The receiver logs received (handed over) or duplicate (dropped).
//   - For acknowledgements that it reads, the sender logs acked or acked_again.
//   - Without one, the sender logs gave_up at the end.
type log struct {
	kit      *Kit
	role     sim.Role
	endpoint machine.Endpoint
	addrs    map[machine.Peer]netip.AddrPort
}

func newLog(k *Kit, role sim.Role, e machine.Endpoint) *log {
	return &log{kit: k, role: role, endpoint: e, addrs: map[machine.Peer]netip.AddrPort{}}
}

// Opening implements sim.Describer.
func (l *log) Opening(own, _ netip.AddrPort) []sim.Line {
	if l.kit.Form.Sockets {
		return []sim.Line{{
			"event": "start", "role": l.role.String(), "addr": own.String(), "form": l.kit.Profile.Form.String(),
			"proxy":   l.kit.Via.String(),
			"repeats": l.kit.Repeats, "timeout_ms": l.kit.Timeout.Milliseconds(),
		}}
	}
	if l.role != sim.Proxy && l.kit.First[l.role] != 0 {
		return []sim.Line{{"event": "logging_starts", "next_seq": l.kit.First[l.role]}}
	}
	return nil
}

// Opened implements sim.Describer.
func (l *log) Opened(own netip.AddrPort) sim.Line {
	if !l.kit.Form.Sockets {
		return nil
	}
	return sim.Line{"event": "stream", "addr": own.String()}
}

// Met implements sim.Describer.
func (l *log) Met(peer machine.Peer, at netip.AddrPort) sim.Line {
	l.addrs[peer] = at
	if !l.kit.Form.Sockets {
		return nil
	}
	return sim.Line{"event": "peer", "number": peer, "addr": at.Addr().String(), "port": at.Port()}
}

// remote returns a peer's address: the one in its packets, or the source of its
// datagrams.
func (l *log) remote(p machine.Peer) (string, bool) {
	if addresses, ok := l.endpoint.(interface {
		Address(p machine.Peer) (wire.Address, bool)
	}); ok {
		if a, known := addresses.Address(p); known {
			return a.String(), true
		}
	}
	at, ok := l.addrs[p]
	return at.String(), ok
}

// Step implements sim.Describer.
func (l *log) Step(step *sim.Step) (lines []sim.Line) {
	if l.role == sim.Proxy && l.kit.Via == ViaUDP {
		return l.forwarded(step)
	}
	sent := step.Out.Transmit // sending events have the same order
	for i := range step.Out.Events {
		e := &step.Out.Events[i]
		word, own := srdp.EventNames[e.Kind]
		if !own {
			word = e.Kind.String()
		}
		line := sim.Line{"event": word, "seq": e.Sequence, "seq64": e.Sequence64, "flags": e.Channel}
		if at, ok := l.remote(e.Peer); ok || l.kit.Form.Sockets {
			line["peer"] = at
		}
		switch e.Kind {
		case machine.EventSent, machine.EventResent:
			var header []byte
			header, line["bytes"], sent = l.next(sent)
			line["hex"] = hex.EncodeToString(header)
		case machine.EventReceived:
			for _, d := range step.Out.Deliver {
				if d.ID == uint64(e.Sequence) && d.From == e.Peer {
					line["bytes"] = len(d.Payload)
				}
			}
		case machine.EventAcked:
			if e.RTT >= 0 {
				line["rtt_ms"] = sim.Milliseconds(e.RTT)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// forwarded returns the lines about what a UDP proxy passed on.
func (l *log) forwarded(step *sim.Step) (lines []sim.Line) {
	if !l.kit.Form.Sockets {
		return nil
	}
	for _, t := range step.Out.Transmit {
		var pk wire.Packet
		if l.kit.Profile.Fits(t.Bytes, len(t.Bytes), &pk) {
			lines = append(lines, sim.Line{
				"event": "forwarded", "seq": pk.ID, "ack": pk.Ack, "from": pk.Source.String(), "peer": pk.Destination.String(),
				"bytes": pk.PayloadLen,
			})
		}
	}
	return lines
}

// next returns the header of the next data packet among transmissions. It also
// returns how many bytes follow the header, and the transmissions after the
// packet.
func (l *log) next(list []machine.Transmission) (header []byte, size int, rest []machine.Transmission) {
	for i := range list {
		b := list[i].Bytes
		if list[i].Kind == machine.SendBytes {
			b = b[min(l.kit.Profile.FramePrefix, len(b)):]
		}
		var pk wire.Packet
		if l.kit.Profile.Fits(b, len(b), &pk) && !pk.Ack {
			return b[:pk.PayloadOffset], pk.PayloadLen, list[i+1:]
		}
	}
	return nil, 0, nil
}

// Final implements sim.Describer.
func (l *log) Final() sim.Line {
	line := sim.Line{"event": "final"}
	sim.Gauges(l.endpoint, line)
	return line
}
