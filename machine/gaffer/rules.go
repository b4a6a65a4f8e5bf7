package gaffer

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

// FindingRules lists every rule that tracker.Tracker may report.
var FindingRules = []*machine.Rule{
	FalseAck, StaleEntry, AckGoingBack, AckBitWithdrawn, SequenceReuse, SequenceJump, DuplicatePacket, OutOfOrder,
	AckWindowSlide, AckWindowEdge, HalfRangeStarvation, OneWaySilence, Stall, RTTSpike, LossBurst, RefusedPacket,
	FragmentLoss,
	CaptureLoss, MalformedPacket, NonCanonical,
}

// FalseAck is the rule "false-ack".
var FalseAck = &machine.Rule{
	ID: "false-ack", Severity: machine.Error, Absence: true,
	Summary: "a header acks a packet that had not been sent",
	Explain: `A header names a sequence number that its peer sent only later, by the time at which both passed the tap. No packet of that number can have arrived, so the ack is wrong: its peer takes something for delivered that never was.

Look at how the receive side builds ack_bits: an entry may count only if the sequence stored in it equals the one asked for, and the bits start at ack itself (bit n is ack-n), not at ack-1. A profile with the wrong meaning of the bits shows this too: check --decode-as.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d acks of packets that were not sent yet, the worst %.1f ms ahead of its packet", n, worst[0])
	},
}

// StaleEntry is the rule "stale-entry".
var StaleEntry = &machine.Rule{
	ID: "stale-entry", Severity: machine.Error, Absence: true,
	Summary: "a header acks a packet that never came: an old entry of the received buffer, one wrap back",
	Explain: `The receive window jumped over packets that were lost, and one of them is acked all the same. Nothing of that number passed the tap, which stands at the receiver: the entry in the received buffer is one of a wrap ago (65,536 packets), whose slot nobody has used since.

This is the fault of the article's first listing: when a newer sequence is inserted, the entries between the previous newest and the new one must be cleared. At 60 packets a second a wrap takes 18 minutes, and it takes heavy loss for a slot to survive it, so this shows as rare, unexplained lost messages in long sessions on bad networks.

The peer cannot tell these acks from true ones. Every ack in this flow is graded less than certain.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets acked that never arrived; the window had jumped by up to %.0f", n, worst[0])
	},
}

// AckGoingBack is the rule "ack-going-back".
var AckGoingBack = &machine.Rule{
	ID: "ack-going-back", Severity: machine.Error,
	Summary: "ack names an older packet than a header that was sent before",
	Explain: `ack is the newest sequence received, so from header to header of one sender it can only stay or grow. (Headers that were overtaken on the way are put in their order first; a new connection on the same addresses begins a new flow.)

The receiver keeps the last packet instead of the newest: compare with the half-range rule before storing.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d headers whose ack goes back, by up to %.0f", n, worst[0])
	},
}

// AckBitWithdrawn is the rule "ack-bit-withdrawn".
var AckBitWithdrawn = &machine.Rule{
	ID: "ack-bit-withdrawn", Severity: machine.Error,
	Summary: "a packet that an earlier header acked is in range, and no longer acked",
	Explain: `What was received stays received: while ack_bits speaks of a packet, its bit can only turn from 0 to 1. Here it turned back. (Overtaken headers are judged as the older snapshots that they are.)

Look for entries that are cleared one too many, for two packets that share a slot (a buffer size that does not divide the range of the sequence numbers), or for two threads that build the header and the buffer at the same time.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d ack bits were taken back, up to %.0f behind ack", n, worst[0])
	},
}

// SequenceReuse is the rule "sequence-reuse".
var SequenceReuse = &machine.Rule{
	ID: "sequence-reuse", Severity: machine.Error,
	Summary: "one sequence number was used for two different packets",
	Explain: `Two datagrams carry the same sequence number and different acks: they are not copies of one packet. The receiver keeps one of them and drops the other as a duplicate, and an ack of that number says nothing about which.

A resend must be a new packet with a new sequence number: it is the messages in it that are sent again.`,
	Say: func(n uint64, _ [3]float64) string {
		return fmt.Sprintf("%d packets carry the number of another packet", n)
	},
}

// SequenceJump is the rule "sequence-jump".
var SequenceJump = &machine.Rule{
	ID: "sequence-jump", Severity: machine.Warn, Absence: true,
	Summary: "sequence numbers jump by more than the time allows",
	Explain: `From one packet to the next the sequence number grew by more than the side sends in that time. Either its counter is not stepped by one per packet, or the capture lacks packets, or a burst of them was lost.

A jump of more than the receive window clears all that was kept about older packets.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d jumps, the largest by %.0f packets in %.0f ms", n, worst[0], worst[1])
	},
}

// DuplicatePacket is the rule "duplicate".
var DuplicatePacket = &machine.Rule{
	ID: "duplicate", Severity: machine.Note,
	Summary: "the same packet passed the tap more than once",
	Explain: `Copies with the same sequence number and header: the network duplicated them. (Datagrams that the capture took twice are another finding: capture-duplicate.)

reliable drops a duplicate and does not read its acks; the article and reliable's first week hand it over again.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets came again, the latest copy %.1f ms after the first", n, worst[0])
	},
}

// OutOfOrder is the rule "out-of-order".
var OutOfOrder = &machine.Rule{
	ID: "out-of-order", Severity: machine.Note,
	Summary: "a packet passed the tap after a newer one",
	Explain: `The network let newer packets overtake this one. Within the receive window it still counts, and its bit in ack_bits is set late; more than the width of ack_bits behind it can no longer be acked, and behind the window it is dropped as stale.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets were overtaken, by up to %.0f others", n, worst[0])
	},
}

// AckWindowSlide is the rule "ack-window-slide".
var AckWindowSlide = &machine.Rule{
	ID: "ack-window-slide", Severity: machine.Warn, Absence: true,
	Summary: "a packet arrived and can never be acked: ack_bits slid past it",
	Explain: `The packet arrived, but when its receiver next sent a header, more newer packets had come than ack_bits speaks of. Its sender never learns that it arrived, and resends what was in it for nothing.

The receiver sends too seldom for what it receives: with 32 bits it must send at least one packet for every 32 that it gets, and more where packets are lost. Let it send empty packets, or widen ack_bits. (A packet that comes late, behind that many newer ones, ends the same way.)`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets arrived and were never acked, up to %.0f behind the newest when the next header was "+
			"sent", n, worst[0])
	},
}

// AckWindowEdge is the rule "ack-window-edge".
var AckWindowEdge = &machine.Rule{
	ID: "ack-window-edge", Severity: machine.Note,
	Summary: "a packet was acked only just before ack_bits slid past it",
	Explain: `How near the flow came to losing an ack for good: when a packet was first named, three quarters or more of ack_bits lay behind it. A little more loss, a little less sending, or a packet overtaken by a few more, and its sender would never have learned that it arrived (ack-window-slide).`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("the last one to be acked was at position %.0f of %.0f", worst[0], worst[1])
	},
}

// NonCanonical is the rule "non-canonical-header".
var NonCanonical = &machine.Rule{
	ID: "non-canonical-header", Severity: machine.Note,
	Summary: "a header is written in more bytes than it needs, or with unused bits set",
	Explain: `reliable leaves out each byte of ack_bits that is 0xff, and writes ack as one byte where it is at most 255 behind sequence; bits 6 and 7 of the prefix are zero. This header says the same in another way. reliable reads it all the same, except in fragment 0, where it must be canonical.

The sender is another implementation, or the datagram was changed on the way.`,
	Say: func(n uint64, _ [3]float64) string { return fmt.Sprintf("%d headers are not in canonical form", n) },
}

// HalfRangeStarvation is the rule "half-range-starvation".
var HalfRangeStarvation = &machine.Rule{
	ID: "half-range-starvation", Severity: machine.Warn,
	Summary: "newer packets are dropped as stale: the gap is half the range of the sequence numbers",
	Explain: `The receiver has seen nothing for so long, or the sender's numbers jumped so far, that the newer packets now compare as older ones: they are all dropped as stale, until the sender's numbers have come round. The connection looks alive and delivers nothing.

Close a connection after a silence; at 60 packets a second half the range takes nine minutes.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets were dropped as stale though they are newer, by up to %.0f", n, worst[0])
	},
}

// OneWaySilence is the rule "one-way-silence".
var OneWaySilence = &machine.Rule{
	ID: "one-way-silence", Severity: machine.Warn, Absence: true,
	Summary: "one side was silent while the other went on sending",
	Explain: `Nothing of this side passed the tap for a second or more, while its peer kept sending. The peer's packets were not acked in that time: whatever it sends reliably is resent, and its RTT and loss estimates freeze.

If sequence numbers went on meanwhile, the network lost the packets; if not, the side did not send.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d times, the longest %.1f s, in which the peer sent %.0f packets", n, worst[0]/1000, worst[1])
	},
}

// Stall is the rule "stall".
var Stall = &machine.Rule{
	ID: "stall", Severity: machine.Warn, Absence: true,
	Summary: "a side stopped sending for a while: its process, not the network",
	Explain: `The side sent nothing for much longer than its frame, and its sequence numbers did not go on in that time: no packet was lost, none was sent. The process was held up: a long frame, garbage collection, loading, a busy machine.

An outage of the network shows as a loss burst instead: there the numbers go on.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d times, the longest %.0f ms, where a frame takes %.1f ms", n, worst[0], worst[1])
	},
}

// RTTSpike is the rule "rtt-spike".
var RTTSpike = &machine.Rule{
	ID: "rtt-spike", Severity: machine.Note,
	Summary: "acks took far longer than usual",
	Explain: `A packet's ack was read more than twice the smoothed RTT and 50 ms after it was sent. That is queueing on the way, a stall of either process, or an ack that only a later header brought because the first ones were lost.

The library smooths with a factor of 0.0025, so its RTT hardly moves; a resend timer built on it fires in the meantime.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d samples, the worst %.0f ms against a smoothed RTT of %.0f ms", n, worst[0], worst[1])
	},
}

// LossBurst is the rule "loss-burst".
var LossBurst = &machine.Rule{
	ID: "loss-burst", Severity: machine.Warn, Absence: true,
	Summary: "many packets in a row were lost before the tap",
	Explain: `Eight or more consecutive sequence numbers of the side never passed the tap. Above 32 lost in a row a header no longer speaks of what came before the hole: packets that arrived just before it may never be acked.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d bursts, the longest of %.0f packets over %.0f ms", n, worst[0], worst[1])
	},
}

// RefusedPacket is the rule "refused".
var RefusedPacket = &machine.Rule{
	ID: "refused", Severity: machine.Note, Absence: true,
	Summary: "packets reached the side and were neither received nor acked",
	Explain: `The datagram passed the tap, which stands at the receiver; later ones were read and acked, and this one was not, though the header speaks of its number. Either the application refused the packet (reliable lets it), or the datagram was dropped between the tap and the socket: a full socket buffer (netstat -su: receive buffer errors) or a wrong checksum.`,
	Say: func(n uint64, _ [3]float64) string {
		return fmt.Sprintf("%d packets arrived and were not taken", n)
	},
}

// FragmentLoss is the rule "fragment-loss-amplification".
var FragmentLoss = &machine.Rule{
	ID: "fragment-loss-amplification", Severity: machine.Warn,
	Summary: "large packets are lost more often because each of their fragments must arrive",
	Explain: `A packet of n fragments arrives only if all n do: at p loss its chance is (1-p)^n. Here packets that travel as fragments were incomplete at the tap markedly more often than single datagrams were lost.

Send less at once, spread large blocks over time with an ack for each slice (the article's "Sending Large Blocks of Data"), or let each fragment be acked and resent.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("%.1f%% of %.0f fragmented packets were incomplete, against %.1f%% of datagrams lost", worst[0],
			worst[1], worst[2])
	},
}

// CaptureLoss is the rule "capture-loss".
var CaptureLoss = &machine.Rule{
	ID: "capture-loss", Severity: machine.Note,
	Summary: "the capture lacks packets that were on the wire",
	Explain: `Packets are missing from the capture that cannot have been lost by the network: a side at the tap skipped numbers, or a header acks a packet that passed the tap unseen. The capturing program dropped them, or the capture was filtered.

Facts that rest on what is missing are graded lower. Capture with a larger buffer (tcpdump -B, dumpcap -B) or a shorter snap length.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d times, up to %.0f packets in a row", n, worst[0])
	},
}

// MalformedPacket is the rule "malformed".
var MalformedPacket = &machine.Rule{
	ID: "malformed", Severity: machine.Warn,
	Summary: "a datagram is no packet of the dialect",
	Explain: `The datagram cannot be read by the flow's profile: a receiver counts it as invalid and drops it. It enters no state. "ackscope packets" shows which field is bad, and where.

If it is a share of all datagrams of one side, the profile may be wrong; single short ones are usually truncated on the way, or probes.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d datagrams, the longest of %.0f bytes", n, worst[0])
	},
}
