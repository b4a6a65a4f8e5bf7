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
var Rules = []*machine.Rule{
	captureDuplicate, ipFragmented, oversize, framingLost, captureDropped,
	steadyLoss, steadyRTT, steadyJitter, stalled, silenceAtTap, resendShare, bandwidth,
	offload, icmpClosed, icmpRefused, icmpUnreachable, icmpMTU, icmpExpired, largeLost, socketPoisoned,
	natIdle, reconnectLoop, rebound, ghost, socketDropped, readLate,
}

var captureDuplicate = &machine.Rule{
	ID: "capture-duplicate", Severity: machine.Note, Origin: machine.OriginCapture,
	Summary: "the capture holds the same datagram twice",
	Explain: `The capture holds the same datagram twice or more. The way the capture was taken made the copies, not the network. Examples are "-i any", a bridge together with its veth, and a mirror port.

ackscope recognises copies by equal addresses, IP identification and payload. They also differ in TTL, interface or VLAN tag and lie within 5 ms, or they lie within 250 microseconds. The finding is certain.

ackscope counts and shows the copies, but keeps them out of all state. They count neither as duplicates by the network nor as resends. To avoid them, capture on one interface.`,
	Say: func(n uint64, _ [3]float64) string {
		return fmt.Sprintf("%d datagrams were captured twice; the copies are kept out of all state", n)
	},
}

var ipFragmented = &machine.Rule{
	ID: "ip-fragmented", Severity: machine.Warn,
	Summary: "a datagram came in several IP fragments",
	Explain: `The datagram was larger than the MTU of the path, so IP cut it into fragments. The loss of one fragment loses the whole datagram. At a loss of p, a datagram of n fragments arrives with probability (1-p)^n. For example, at 2 % loss only 94 % of datagrams of three fragments arrive. In addition, many NATs, firewalls and mobile networks drop all fragments.

ackscope sees the fragments in the capture, so the finding is certain.

Split large packets in the protocol instead, into fragments, slices or blocks below 1,200 bytes. Or send less.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s cut by IP, the worst into %.0f fragments (%.0f bytes)",
			machine.Count(n, "datagram was", "datagrams were"), worst[0], worst[1])
	},
}

var oversize = &machine.Rule{
	ID: "oversize", Severity: machine.Note,
	Summary: "a datagram is larger than every path is sure to carry whole",
	Explain: `The payload has more than 1,232 bytes. With IPv6 and UDP headers the packet exceeds 1,280 bytes, the smallest MTU that every IPv6 path must support. Some tunnels, VPNs and mobile networks fragment such packets or silently drop them, while smaller packets pass. Players behind such a path lose only the large packets.

ackscope reads the size from the datagram, so the size is certain. The finding does not say that the packet was lost.

Lower the size above which the protocol fragments its packets. For reliable, set fragment_above and fragment_size to about 1,100.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d datagrams above %d bytes, the largest %.0f", n, safePayload, worst[0])
	},
}

var offload = &machine.Rule{
	ID: "offload", Severity: machine.Note, Origin: machine.OriginCapture,
	Summary: "several datagrams were captured as one: a network card cut them apart, or joined them",
	Explain: `The side sent several datagrams of equal size, the last one perhaps shorter, and the capture holds them as one. A program gives its system many datagrams in one call (UDP_SEGMENT, GSO), and the network card cuts them apart. Or the receiving card or system joins what came together (GRO). A capture on that host sees the long form.

ackscope takes the datagrams apart again, where the protocol confirms each cut: every part decodes, and their sequence numbers count up. The finding is likely, since the capture does not say the size. A long datagram that no cut confirms stays whole.

All figures count the datagrams. The times of datagrams within one frame are equal: the card knows when it sent each, and the capture does not. The bytes of headers in "ackscope ledger" are those of the capture, once for each frame.

To see them as they pass on the wire, capture on another host, or switch it off: "ethtool -K eth0 tx-udp-segmentation off rx-gro-list off gro off".`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the longest of %.0f datagrams with %.0f bytes each",
			machine.Count(n, "frame holds several datagrams", "frames hold several datagrams"), worst[0], worst[1])
	},
}

var framingLost = &machine.Rule{
	ID: "stream-framing-lost", Severity: machine.Warn, Origin: machine.OriginCapture,
	Summary: "bytes of a TCP stream belong to no message: its framing was lost",
	Explain: `Some bytes of this TCP stream belong to no message. Over TCP, a length stands in front of each message. Where bytes are missing from the capture, or where no valid length stands, nothing shows where the next message begins.

ackscope then searches forward, and resumes where several messages in a row make sense. It shows the bytes in between without a message. The gap is certain, and the content of these bytes is unknown.

First check whether the capture is complete: look for dropped packets and for a snap length. If it is complete, one end writes lengths that do not fit what follows. The other end then reads nonsense from there on.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d in all, %.0f bytes at most; %.0f bytes are missing from the capture", n, worst[0], worst[1])
	},
}

var captureDropped = &machine.Rule{
	ID: "capture-dropped", Severity: machine.Note, Origin: machine.OriginCapture,
	Summary: "the capture lacks packets that the capturing host dropped",
	Explain: `The capture lacks packets that the capturing host dropped, as it had no room or no time for them. ackscope reads this from the interface statistics in the file, or from the kernel's counters in a live capture.

The capture does not say which packets these were. So the network did not necessarily lose a packet that is missing here. A packet that seems unanswered may have been answered. Findings that conclude from a missing packet are therefore possible at most. Replay blames no endpoint for a difference that a dropped packet would explain.

Whether this flow lost any of the packets is open too, so this finding is only possible.

Capture again with a larger ring (-B), a capture filter (-f), or fewer bytes of each packet (-s).`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("the capturing host dropped %.0f packets in all; %.0f sequence numbers of this flow are not "+
			"in the capture",
			worst[0], worst[1])
	},
}

// noteDropped adds a finding to a flow that ends, if the capture may lack some
// of its packets.
func (s *Session) noteDropped(f *Flow) {
	if s.dropped == 0 {
		return
	}
	missing := f.ended.fresh.Sides[machine.A].Missing + f.ended.fresh.Sides[machine.B].Missing
	s.note(f, &machine.Anomaly{
		Rule: captureDropped, Certainty: machine.Possible, At: f.Last, Ref: f.LastRef,
		Figures: [3]float64{float64(s.dropped), float64(missing)},
	})
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
		if n.Unframed <= f.has().unframed[side] || !f.conn.Whole(side) && n.Gaps == 0 {
			continue
		}
		lost := n.Unframed - f.has().unframed[side]
		f.gets().unframed[side] = n.Unframed
		s.note(f, &machine.Anomaly{
			Rule: framingLost, Side: side, Certainty: machine.Certain, At: d.At, Ref: d.Ref,
			Figures: [3]float64{float64(lost), float64(n.GapBytes)},
		})
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
	s.note(f, &machine.Anomaly{
		Rule: captureDuplicate, Side: d.From, Certainty: machine.Certain, At: d.At, Ref: d.Ref,
		Figures: [3]float64{float64(d.Length)},
	})
}

// noteSize reports datagrams that IP fragmented, and those that other paths may
// fragment.
func (s *Session) noteSize(f *Flow, d *machine.Datagram, fragments int) {
	if fragments > 1 {
		s.note(f, &machine.Anomaly{
			Rule: ipFragmented, Side: d.From, Certainty: machine.Certain, At: d.At, Ref: d.Ref,
			Figures: [3]float64{float64(fragments), float64(d.Length)},
		})
	} else if d.Length > safePayload {
		s.note(f, &machine.Anomaly{
			Rule: oversize, Side: d.From, Certainty: machine.Certain, At: d.At, Ref: d.Ref,
			Figures: [3]float64{float64(d.Length)},
		})
	}
}
