package analyze

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

// Sizes that the rules below name.
const (
	// safePayload is the payload that passes every path unfragmented: IPv6's
	// minimum MTU of 1280, less 40 bytes of IPv6 header and 8 of UDP header.
	safePayload = 1232
)

// Rules lists the rules for all protocols. Each protocol's descriptor lists its
// own rules.
var Rules = []*machine.Rule{captureDuplicate, ipFragmented, oversize, framingLost, captureDropped, steadyLoss}

var captureDuplicate = &machine.Rule{
	ID: "capture-duplicate", Severity: machine.Note,
	Summary: "the tap captured the same datagram twice",
	Explain: `The capture holds one datagram more than once: same addresses, IP identification and payload, with another TTL or interface, or nothing but microseconds apart. That is how the capture was taken ("-i any", a bridge and its veth, a mirror port), not what the network did.

The copies are counted and shown, and kept out of all state: they are neither duplicates of the network nor resends. To get rid of them capture on one interface.`,
	Say: func(n uint64, _ [3]float64) string {
		return fmt.Sprintf("%d datagrams were captured twice by this tap and are kept out of all state", n)
	},
}

var ipFragmented = &machine.Rule{
	ID: "ip-fragmented", Severity: machine.Warn,
	Summary: "a datagram came in several IP fragments",
	Explain: `A datagram larger than the path's MTU is cut by IP into fragments. Losing any one of them loses the whole datagram, so n fragments at p loss each arrive with (1-p)^n; and many NATs, firewalls and mobile networks drop fragments altogether.

Split large packets in the protocol (fragments, slices, blocks) below 1,200 bytes instead, or send less.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d datagrams were cut by IP, the worst into %.0f fragments (%.0f bytes)", n, worst[0], worst[1])
	},
}

var oversize = &machine.Rule{
	ID: "oversize", Severity: machine.Note,
	Summary: "a datagram is larger than every path is sure to carry whole",
	Explain: `The payload is above 1,232 bytes: with IPv6 and UDP headers it exceeds 1,280 bytes, the least MTU that every IPv6 path must carry. On tunnels, VPNs and some mobile networks such packets are fragmented or silently dropped, while smaller ones pass: players behind them see only the large packets vanish.

Lower the size at which the protocol fragments its packets (for reliable: fragment_above and fragment_size of about 1,100).`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d datagrams above %d bytes, the largest %.0f", n, safePayload, worst[0])
	},
}

var framingLost = &machine.Rule{
	ID: "stream-framing-lost", Severity: machine.Warn,
	Summary: "bytes of a TCP stream belong to no message: its framing was lost",
	Explain: `Over TCP each message stands behind its length. Where bytes are missing from the capture, or what stands there is no length, nothing says where the next message begins: it is searched for, and taken up again where several messages in a row make sense. The bytes in between are shown with no message, and what they held is unknown.

Is the capture complete (dropped packets, a snap length)? If it is, one end writes lengths that do not fit what follows: the other one reads nonsense from there on.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d in all, %.0f bytes at most; %.0f bytes are missing from the capture", n, worst[0], worst[1])
	},
}

var captureDropped = &machine.Rule{
	ID: "capture-dropped", Severity: machine.Note,
	Summary: "the capture lacks packets that its own tap dropped",
	Explain: `The statistics of the interface, in the file or as the kernel counts live, say that packets were dropped: the host that captured had no room for them or no time. Which they were nobody knows. So what is missing here was not lost by the network for certain, and what nobody seems to have answered may have been answered: findings that conclude from what did not pass the tap are possible at most, and replay blames no endpoint for what such a packet would explain.

Capture again with a larger ring (-B), a capture filter (-f), or fewer bytes of each packet (-s).`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("the tap dropped %.0f packets of all; %.0f sequence numbers of this flow never passed it",
			worst[0], worst[1])
	},
}

// noteDropped adds a finding to a flow that ends, if the capture may lack some
// of its packets.
func (s *Session) noteDropped(f *Flow) {
	if s.dropped == 0 {
		return
	}
	missing := f.tracker.Summary(machine.A).Missing + f.tracker.Summary(machine.B).Missing
	s.note(f, &machine.Anomaly{Rule: captureDropped, Certainty: machine.Possible, At: f.Last, Ref: f.LastRef,
		Figures: [3]float64{float64(s.dropped), float64(missing)}})
}

// noteFraming reports the bytes of a side's stream that could not be assigned
// to messages since the previous segment. The first bytes of a stream that was
// joined in its middle do not count.
func (s *Session) noteFraming(f *Flow, d *machine.Datagram) {
	if f.conn.Format() == nil {
		return
	}
	for _, side := range []machine.Side{machine.A, machine.B} {
		n := f.conn.Counts(side)
		if n.Unframed <= f.unframed[side] || !f.conn.Whole(side) && n.Gaps == 0 {
			continue
		}
		lost := n.Unframed - f.unframed[side]
		f.unframed[side] = n.Unframed
		s.note(f, &machine.Anomaly{Rule: framingLost, Side: side, Certainty: machine.Certain, At: d.At, Ref: d.Ref,
			Figures: [3]float64{float64(lost), float64(n.GapBytes)}})
	}
}

// note adds a finding of the session itself to the flow's findings, and to the
// next record.
func (s *Session) note(f *Flow, a *machine.Anomaly) {
	s.found(f, a)
	if s.sink != nil {
		s.noted = append(s.noted, *a)
	}
}

func (s *Session) noteDuplicate(f *Flow, d *machine.Datagram) {
	s.note(f, &machine.Anomaly{Rule: captureDuplicate, Side: d.From, Certainty: machine.Certain, At: d.At, Ref: d.Ref,
		Figures: [3]float64{float64(d.Length)}})
}

// noteSize reports datagrams that IP fragmented, and those that other paths may
// fragment.
func (s *Session) noteSize(f *Flow, d *machine.Datagram, fragments int) {
	if fragments > 1 {
		s.note(f, &machine.Anomaly{Rule: ipFragmented, Side: d.From, Certainty: machine.Certain, At: d.At, Ref: d.Ref,
			Figures: [3]float64{float64(fragments), float64(d.Length)}})
	} else if d.Length > safePayload {
		s.note(f, &machine.Anomaly{Rule: oversize, Side: d.From, Certainty: machine.Certain, At: d.At, Ref: d.Ref,
			Figures: [3]float64{float64(d.Length)}})
	}
}
