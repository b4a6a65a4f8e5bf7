package gaffer

import (
	"encoding/hex"
	"fmt"
	"net/netip"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// samplesLog describes an endpoint of the series' programs, in the form of the logs of
// the recorded programs. Conn is the number of the client.
type samplesLog struct {
	kit            *Samples
	role           sim.Role
	n              int
	endpoint       machine.Endpoint
	packet         wire.Packet
	sent, received uint64 // datagrams
	connected      int
}

// Opening implements sim.Describer.
func (l *samplesLog) Opening(_, _ netip.AddrPort) []sim.Line {
	p := l.kit.Profile
	line := sim.Line{"event": "config", "conn": l.n, "num_packet_types": p.PacketTypes}
	if p.ProtocolID != nil {
		line["protocol_id"] = fmt.Sprintf("%08x", *p.ProtocolID)
	}
	switch {
	case p.Slices > 0:
		line["slice_size"], line["max_slices_per_chunk"] = p.SliceSize, p.Slices
	case p.Handshake && l.role == sim.Server:
		line["slots"] = l.kit.Slots
	}
	return []sim.Line{line}
}

// Opened implements sim.Describer.
func (l *samplesLog) Opened(netip.AddrPort) sim.Line { return nil }

// Met implements sim.Describer. A server logs who its clients are.
func (l *samplesLog) Met(peer machine.Peer, at netip.AddrPort) sim.Line {
	if l.role == sim.Client {
		return nil
	}
	return sim.Line{"event": "peer", "conn": l.n + int(peer), "addr": at.Addr().String(), "port": at.Port()}
}

// commands are the words for what an application asks for.
var commands = map[machine.CommandKind]string{
	machine.Connect: "connect", machine.Disconnect: "disconnect", machine.Stop: "stop",
}

// Step implements sim.Describer.
func (l *samplesLog) Step(step *sim.Step) (lines []sim.Line) {
	switch in := step.In.(type) {
	case machine.Command:
		lines = append(lines, sim.Line{"event": commands[in.Kind], "conn": l.n})
	case machine.Arrive:
		l.received++
		if line := l.datagram(in.Bytes, "received", "ack_received"); line != nil {
			lines = append(lines, line)
		}
	}
	for i := range step.Out.Transmit {
		x := &step.Out.Transmit[i]
		l.sent++
		if line := l.datagram(x.Bytes, "sent", "ack_sent"); line != nil {
			line["hex"] = hex.EncodeToString(x.Bytes[:min(len(x.Bytes), 16)])
			lines = append(lines, line)
		}
	}
	for i := range step.Out.Events {
		if line := l.event(&step.Out.Events[i], step.Out); line != nil {
			lines = append(lines, line)
		}
	}
	return lines
}

// datagram describes a slice, an ack of slices, a fragment, or a packet of the handshake.
// Whole packets have lines by their events.
func (l *samplesLog) datagram(b []byte, what, ack string) sim.Line {
	p := &l.packet
	if l.kit.Profile.Parse(b, len(b), p) != nil {
		return sim.Line{"event": "invalid", "conn": l.n, "udp_bytes": len(b)}
	}
	line := sim.Line{"conn": l.n, "udp_bytes": len(b)}
	switch p.Kind {
	case wire.KindSlice:
		line["event"], line["chunk"], line["slice"], line["num_slices"] = "slice_"+what, p.Chunk, p.SliceID, p.SliceCount
		line["bytes"] = p.PayloadLen
	case wire.KindSliceAck:
		acked := make([]byte, p.SliceCount)
		for i := range acked {
			acked[i] = '0'
			if p.SliceCame(i) {
				acked[i] = '1'
			}
		}
		line["event"], line["chunk"], line["num_slices"], line["acked"] = ack, p.Chunk, p.SliceCount, string(acked)
	case wire.KindFragment:
		line["event"], line["seq"], line["fragment"], line["fragments"] = "fragment_"+what, p.Sequence, p.FragmentID,
			p.FragmentCount
	case wire.KindHandshake:
		line["event"], line["kind"] = "packet_"+what, p.Handshake.String()
		line["client_salt"] = fmt.Sprintf("%016x", p.ClientSalt)
		line["challenge_salt"] = fmt.Sprintf("%016x", p.ChallengeSalt)
	default:
		return nil
	}
	return line
}

// event describes what the endpoint reports.
func (l *samplesLog) event(e *machine.Event, out *machine.Effects) sim.Line {
	line := sim.Line{"conn": l.n}
	switch p := l.kit.Profile; {
	case p.Handshake:
		return l.connection(e)
	case p.Slices > 0 && e.Kind == machine.EventAcked:
		line["event"], line["chunk"] = "chunk_acked", e.Sequence
	case p.Slices > 0 && e.Kind == machine.EventDelivered:
		line["event"], line["chunk"], line["bytes"] = "chunk_received", e.Sequence, delivered(out)
	case p.Slices > 0:
		return nil
	case e.Kind == machine.EventSent:
		line["event"], line["seq"], line["datagrams"] = "sent", e.Sequence, len(out.Transmit)
	case e.Kind == machine.EventDelivered:
		line["event"], line["seq"], line["bytes"] = "received", e.Sequence, delivered(out)
	default:
		return nil
	}
	return line
}

// connection describes a change of a connection. A server logs how many it has.
func (l *samplesLog) connection(e *machine.Event) sim.Line {
	word := gaffer.EventNames[e.Kind]
	if e.Kind == gaffer.EventConnected {
		l.connected++
	} else {
		l.connected = max(0, l.connected-1)
	}
	if l.role == sim.Client {
		return sim.Line{"event": word, "conn": l.n}
	}
	return sim.Line{"event": word, "conn": int(e.Sequence), "num_connected": l.connected}
}

func delivered(out *machine.Effects) int {
	n := 0
	for i := range out.Deliver {
		n += len(out.Deliver[i].Payload)
	}
	return n
}

// Final implements sim.Describer.
func (l *samplesLog) Final() sim.Line {
	return sim.Line{"event": "final", "conn": l.n, "counters": map[string]any{"sent": l.sent, "received": l.received}}
}
