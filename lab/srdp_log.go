package lab

import (
	"encoding/hex"
	"math"
	"net/netip"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// srdpScribe logs what an endpoint of SRDP did, in the manner of the other logs:
// no recorded captures of the protocol exist. Every copy has its line: sent and
// resent by who sends, received (handed over) or duplicate (dropped) by who gets
// it, acked and acked_again for the acknowledgements read, gave_up for the end
// without one.
type srdpScribe struct {
	kit      *SRDP
	role     Role
	endpoint machine.Endpoint
	addrs    map[machine.Peer]netip.AddrPort
}

func (s *srdpScribe) Opening(own, _ netip.AddrPort) []Line {
	return []Line{{
		"event": "start", "role": s.role.String(), "addr": own.String(), "form": s.kit.Profile.Form.String(), "proxy": s.kit.Via.String(),
		"repeats": s.kit.Repeats, "timeout_ms": s.kit.Timeout.Milliseconds(),
	}}
}

func (s *srdpScribe) Opened(own netip.AddrPort) Line {
	return Line{"event": "stream", "addr": own.String()}
}

func (s *srdpScribe) Met(peer machine.Peer, at netip.AddrPort) Line {
	s.addrs[peer] = at
	return Line{"event": "peer", "number": peer, "addr": at.Addr().String(), "port": at.Port()}
}

// remote gives a peer's address: the one that packets name it by, or the one that
// its datagrams come from.
func (s *srdpScribe) remote(p machine.Peer) string {
	if book, ok := s.endpoint.(interface {
		Address(p machine.Peer) (wire.Address, bool)
	}); ok {
		if a, known := book.Address(p); known {
			return a.String()
		}
	}
	return s.addrs[p].String()
}

func (s *srdpScribe) Tell(step *sim.Step) (lines []Line) {
	if s.role == Proxy && s.kit.Via == ViaUDP {
		return s.forwarded(step)
	}
	sent := step.Out.Transmit // events of sending are in its order
	for i := range step.Out.Events {
		ev := &step.Out.Events[i]
		word, own := srdp.EventNames[ev.Kind]
		if !own {
			word = ev.Kind.String()
		}
		line := Line{"event": word, "seq": ev.Sequence, "seq64": ev.Sequence64, "flags": ev.Channel, "peer": s.remote(ev.Peer)}
		switch ev.Kind {
		case machine.EventSent, machine.EventResent:
			var header []byte
			header, line["bytes"], sent = s.next(sent)
			line["hex"] = hex.EncodeToString(header)
		case machine.EventReceived:
			for _, d := range step.Out.Deliver {
				if d.ID == uint64(ev.Sequence) && d.From == ev.Peer {
					line["bytes"] = len(d.Payload)
				}
			}
		case machine.EventAcked:
			if ev.RTT >= 0 {
				line["rtt_ms"] = math.Round(float64(ev.RTT)/1e3) / 1e3
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// forwarded tells what a proxy that keeps nothing passed on.
func (s *srdpScribe) forwarded(step *sim.Step) (lines []Line) {
	for _, t := range step.Out.Transmit {
		var pk wire.Packet
		if s.kit.Profile.Fits(t.Bytes, len(t.Bytes), &pk) {
			lines = append(lines, Line{
				"event": "forwarded", "seq": pk.ID, "ack": pk.Ack, "from": pk.Source.String(), "peer": pk.Destination.String(), "bytes": pk.PayloadLen,
			})
		}
	}
	return lines
}

// next gives the header of the next data packet among transmissions, how many
// bytes follow it, and the transmissions behind it.
func (s *srdpScribe) next(list []machine.Transmission) (header []byte, size int, rest []machine.Transmission) {
	for i := range list {
		b := list[i].Bytes
		if list[i].Kind == machine.SendBytes {
			b = b[min(s.kit.Profile.FramePrefix, len(b)):]
		}
		var pk wire.Packet
		if s.kit.Profile.Fits(b, len(b), &pk) && !pk.Ack {
			return b[:pk.PayloadOffset], pk.PayloadLen, list[i+1:]
		}
	}
	return nil, 0, nil
}

func (s *srdpScribe) Final() Line {
	line := Line{"event": "final"}
	var v machine.View
	s.endpoint.Inspect(&v)
	for _, g := range v.Gauges {
		line[g.Name] = g.Value
	}
	return line
}
