package gaffer

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

// FindingRules lists every rule that tracker.Tracker may report.
var FindingRules = []*machine.Rule{
	FalseAck, StaleEntry, AckGoingBack, AckBitWithdrawn, SequenceReuse, SequenceJump, DuplicatePacket, OutOfOrder,
	AckWindowSlide, AckWindowEdge, AckFrozen, HalfRangeStarvation, OneWaySilence, Stall, RTTSpike, LossBurst,
	RefusedPacket, FragmentLoss,
	CaptureLoss, MalformedPacket, NonCanonical,
}

// FalseAck is the rule "false-ack".
var FalseAck = &machine.Rule{
	ID: "false-ack", Severity: machine.Error, Absence: true,
	Summary: "a header acks a packet that had not been sent",
	Explain: `A header acks a sequence number that its peer sent only later. For example, a header acks packet 500, and packet 500 is captured 20 ms after that header. Packet 500 cannot have arrived by then, so the ack is wrong. The peer counts a packet as delivered that never arrived.

ackscope compares the times at which the header and the packet were captured. It ignores differences up to 1 ms, by which frames of two directions may be recorded in the wrong order. The finding is certain.

It also reports a single header that the next one contradicts. For example, the headers of a side have ack 82, 339 and 84, and packet 339 has not been captured. Or one header names packet 70, which was not captured, and the next one does not. That one header was damaged, or built while the buffer changed.

Check how the receive side builds ack_bits. An entry may count only if the sequence stored in it equals the sequence asked for. The bits start at ack itself (bit n is ack-n), not at ack-1. A profile with the wrong meaning of the bits causes this finding too: check --decode-as.`,
	Say: func(n uint64, worst [3]float64) string {
		switch {
		case worst[0] > 0:
			return fmt.Sprintf(
				"%s of packets that were not sent yet; worst: %.1f ms before its packet",
				machine.Count(n, "ack", "acks"),
				worst[0],
			)
		case worst[1] > 0:
			return fmt.Sprintf("%s that the next one takes back, up to %.0f ahead of the peer's newest "+
				"packet", machine.Count(n, "header with acks", "headers with acks"), worst[1])
		}
		return fmt.Sprintf("%s of packets that are not in the capture, taken back by the next "+
			"header", machine.Count(n, "ack", "acks"))
	},
}

// StaleEntry is the rule "stale-entry".
var StaleEntry = &machine.Rule{
	ID: "stale-entry", Severity: machine.Error, Absence: true,
	Summary: "a header acks a packet that never came: an old entry of the received buffer, one wrap back",
	Explain: `A header acks a packet that never arrived. The receive window jumped over lost packets, and the slot of one of them still held an old entry. That entry is one wrap old (65,536 packets), because no packet has used the slot since. The side reads it as the lost packet.

This is the fault of the article's first listing. When a newer sequence is inserted, the code must clear the entries between the previous newest and the new one. At 60 packets a second a wrap takes 18 minutes, and a slot survives it only under heavy loss. So the symptom is rare, unexplained lost messages in long sessions on bad networks.

ackscope recognises it in a capture taken at the receiver: the window jumped, and no packet of that number was captured. The finding is likely.

Clear the skipped entries whenever the newest sequence moves on. The peer cannot distinguish these acks from true ones, so ackscope grades every ack in this flow below certain.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s that never arrived; the window had jumped by up to %.0f",
			machine.Count(n, "packet acked", "packets acked"),
			worst[0],
		)
	},
}

// AckGoingBack is the rule "ack-going-back".
var AckGoingBack = &machine.Rule{
	ID: "ack-going-back", Severity: machine.Error,
	Summary: "ack names an older packet than a header that was sent before",
	Explain: `The ack field of a header names an older packet than an earlier header of the same sender: 120 after 125. The field holds the newest sequence received, so from one header to the next it can only stay or grow.

ackscope first restores the order of headers that were overtaken on the way. A new connection on the same addresses begins a new flow. So the finding is certain.

The receiver stores the last packet instead of the newest one. Compare by the half-range rule before storing.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s ack goes back, by up to %.0f", machine.Count(n, "header whose", "headers whose"), worst[0])
	},
}

// AckBitWithdrawn is the rule "ack-bit-withdrawn".
var AckBitWithdrawn = &machine.Rule{
	ID: "ack-bit-withdrawn", Severity: machine.Error,
	Summary: "a packet that an earlier header acked is in range, and no longer acked",
	Explain: `An earlier header acked a packet, and a later header that still covers it does not. What was received stays received. So while ack_bits covers a packet, its bit can only turn from 0 to 1. Here it turned back.

ackscope reads headers that were overtaken as the older snapshots that they are. The finding is certain.

Look for code that clears one entry too many. Look for two packets that share a slot, because the buffer size does not divide the range of sequence numbers. Look for two threads that build the header and write the buffer at the same time.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s taken back, up to %.0f behind ack", machine.Count(n, "ack bit was", "ack bits were"), worst[0])
	},
}

// SequenceReuse is the rule "sequence-reuse".
var SequenceReuse = &machine.Rule{
	ID: "sequence-reuse", Severity: machine.Error,
	Summary: "one sequence number was used for two different packets",
	Explain: `Two different packets carry the same sequence number. The receiver keeps one of them and drops the other as a duplicate. An ack of that number does not say which one arrived.

ackscope recognises them by their different acks: copies of one packet have the same header. The finding is certain.

A resend must be a new packet with a new sequence number. Only the messages in it are sent again.`,
	Say: func(n uint64, _ [3]float64) string {
		return fmt.Sprintf("%s the number of another packet", machine.Count(n, "packet carries", "packets carry"))
	},
}

// SequenceJump is the rule "sequence-jump".
var SequenceJump = &machine.Rule{
	ID: "sequence-jump", Severity: machine.Warn, Absence: true, Origin: machine.OriginCode,
	Summary: "sequence numbers jump by more than the time allows",
	Explain: `From one packet to the next, the sequence number grew by more than the side sends in that time. For example, it grew by 400 within 50 ms, at 60 packets a second. The side's counter does not advance by one per packet, or the capture lacks packets, or the network lost a burst.

ackscope reports a jump above four times what the side usually sends in that time, plus the receive window. The finding is likely.

Check that the counter advances by exactly one per packet. A jump of more than the receive window clears all that the receiver stored about older packets.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, the largest by %s in %.0f ms",
			machine.Count(n, "jump", "jumps"),
			machine.Count(uint64(worst[0]), "packet", "packets"),
			worst[1],
		)
	},
}

// DuplicatePacket is the rule "duplicate".
var DuplicatePacket = &machine.Rule{
	ID: "duplicate", Severity: machine.Note, Origin: machine.OriginNetwork,
	Summary: "the same packet was captured more than once",
	Explain: `The same packet was captured more than once, with the same sequence number and the same header. The network duplicated it. The finding is certain. A datagram that the capturing host recorded twice is another finding: "capture-duplicate".

reliable drops a duplicate and does not read its acks. The article's code and reliable's first week deliver the packet again, so there the game must tolerate it.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s more than once; worst: a copy %.1f ms after the first",
			machine.Count(n, "packet was captured", "packets were captured"),
			worst[0],
		)
	},
}

// OutOfOrder is the rule "out-of-order".
var OutOfOrder = &machine.Rule{
	ID: "out-of-order", Severity: machine.Note, Origin: machine.OriginNetwork,
	Summary: "a packet was captured after a newer one",
	Explain: `The network let newer packets overtake this one. They were captured before it, so the finding is certain.

What the receiver does depends on how far behind the packet is. Within the receive window it still counts, and its bit in ack_bits is set late. Behind the width of ack_bits it can no longer be acked. Behind the receive window it is dropped as stale.

Packets that are overtaken by a few others need no action. If packets fall behind ack_bits, widen ack_bits.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, by up to %s",
			machine.Count(n, "packet was overtaken", "packets were overtaken"),
			machine.Count(uint64(worst[0]), "other", "others"),
		)
	},
}

// AckWindowSlide is the rule "ack-window-slide".
var AckWindowSlide = &machine.Rule{
	ID: "ack-window-slide", Severity: machine.Warn, Absence: true, Unacked: true, Origin: machine.OriginLibrary,
	Summary: "a packet arrived and can never be acked: ack_bits slid past it",
	Explain: `A packet arrived, but no ack can ever report it to its sender. By the receiver's next header, more newer packets had come than ack_bits covers. For example, 40 packets arrive between two headers with 32 ack bits: the oldest eight can never be acked. The sender never learns that they arrived, and resends what was in them for nothing.

ackscope recognises it in a capture taken at the receiver: the packet was captured, and ack_bits moved past it. The finding is likely.

The receiver sends too rarely for what it receives. With 32 bits it must send at least one packet for every 32 that arrive, and more where packets are lost. Let it send empty packets, or widen ack_bits. A packet that comes late, behind that many newer ones, ends the same way.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s never acked, up to %.0f behind the newest when the next header was "+
			"sent", machine.Count(n, "packet arrived and was", "packets arrived and were"), worst[0])
	},
}

// AckWindowEdge is the rule "ack-window-edge".
var AckWindowEdge = &machine.Rule{
	ID: "ack-window-edge", Severity: machine.Note,
	Summary: "a packet was acked only just before ack_bits slid past it",
	Explain: `The flow came close to losing an ack for good. When a header first acked this packet, the packet was in the last quarter of ack_bits. A little more loss, a little less sending, or a little more reordering would have moved ack_bits past it. Then the sender would never have learned that the packet arrived: see "ack-window-slide".

ackscope reads the position from the header. The finding is certain where the capture was taken at the side that sent the header, and likely elsewhere.

The same advice applies: send headers more often, or widen ack_bits.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("the last one to be acked was at position %.0f of %.0f", worst[0], worst[1])
	},
}

// NonCanonical is the rule "non-canonical-header".
var NonCanonical = &machine.Rule{
	ID: "non-canonical-header", Severity: machine.Note,
	Summary: "a header is written in more bytes than it needs, or with unused bits set",
	Explain: `A header is written in more bytes than it needs, or with unused bits set. reliable leaves out each byte of ack_bits that is 0xff. It writes ack as one byte where ack is at most 255 behind sequence. Bits 6 and 7 of the prefix are zero. This header encodes the same values in another way, which is certain.

reliable reads such a header all the same, except in fragment 0, where the header must be canonical.

The sender is another implementation, or the datagram was changed on the way. Write canonical headers if a peer runs reliable.`,
	Say: func(n uint64, _ [3]float64) string {
		return fmt.Sprintf("%s not in canonical form", machine.Count(n, "header is", "headers are"))
	},
}

// HalfRangeStarvation is the rule "half-range-starvation".
var HalfRangeStarvation = &machine.Rule{
	ID: "half-range-starvation", Severity: machine.Warn,
	Summary: "newer packets are dropped as stale: the gap is half the range of the sequence numbers",
	Explain: `The receiver drops newer packets as stale, because they compare as older ones. With 16-bit sequence numbers that begins about 32,768 packets ahead of the newest received. Either the receiver has received nothing for so long, or the sender's numbers jumped so far. All packets are dropped until the sender's numbers have come round. The connection looks alive and delivers nothing.

ackscope applies the receiver's own comparison in a capture taken at the receiver. The finding is certain where a later header shows what the receiver read, and likely otherwise.

Close a connection after a silence. At 60 packets a second, half the range takes nine minutes.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s newer, by up to %.0f",
			machine.Count(n, "packet was dropped as stale though it is", "packets were dropped as stale though they are"),
			worst[0],
		)
	},
}

// Why an ack stands still, as the third figure of AckFrozen says it.
const (
	// FrozenAt is for a number that says nothing.
	// Source: name, a reason for an ack that stands still
	FrozenAt = 0
	// FrozenWrap is for a number where those of the peer wrap.
	// Source: name, a reason for an ack that stands still
	FrozenWrap = 1
	// FrozenEver is for a side that has never acked anything.
	// Source: name, a reason for an ack that stands still
	FrozenEver = 2
	// FrozenAhead is for a number that is newer than all that the peer has sent.
	// Source: name, a reason for an ack that stands still
	FrozenAhead = 3
)

// AckFrozen is the rule "ack-frozen".
var AckFrozen = &machine.Rule{
	ID: "ack-frozen", Severity: machine.Warn, Origin: machine.OriginCode, Toward: machine.TowardSide,
	Summary: "a side goes on sending and acks nothing new, though packets of its peer are in the capture",
	Explain: `The headers of a side repeat one ack while its peer goes on sending. For example, ack is 65534 in 500 headers, and packets 0 to 499 of the peer are captured in that time. The connection is dead in this direction: the peer resends all of its reliable messages and takes every packet for lost.

ackscope reports each header that repeats the ack, from the moment at which three things hold. The ack has stood still for a second, 16 headers have repeated it, and 64 packets of the peer were captured meanwhile. The finding is certain in a capture taken at the side. Elsewhere it is likely, since the packets may have been lost after they were captured.

"Since the peer's numbers wrapped" means that the ack stands just below the wrap, so the side takes no number behind it. Such code compares two numbers by a plain >, where it needs the half-range rule: (int16)(sequence - newest) > 0 for 16 bits. Otherwise the application refuses every packet, or no longer reads its socket, or its host drops them.

"Ahead of its peer's numbers" means that the ack is newer than all that the peer has sent in this session. The peer has begun anew from 0 and the side has not, so it drops what looks old to it. Reset both ends.`,
	Say: func(_ uint64, worst [3]float64) string {
		switch worst[2] {
		case FrozenEver:
			return fmt.Sprintf(
				"it has never acked anything, though %s of its peer were captured",
				machine.Count(uint64(worst[0]), "packet", "packets"),
			)
		case FrozenWrap:
			return fmt.Sprintf(
				"ack has stayed at %.0f since its peer's numbers wrapped, though %s of its peer were captured",
				worst[1],
				machine.Count(uint64(worst[0]), "packet", "packets"),
			)
		case FrozenAhead:
			return fmt.Sprintf(
				"ack has stayed at %.0f, ahead of its peer's numbers, though %s of its peer were captured",
				worst[1],
				machine.Count(uint64(worst[0]), "packet", "packets"),
			)
		}
		return fmt.Sprintf(
			"ack has stayed at %.0f, though %s of its peer were captured",
			worst[1],
			machine.Count(uint64(worst[0]), "packet", "packets"),
		)
	},
}

// OneWaySilence is the rule "one-way-silence".
var OneWaySilence = &machine.Rule{
	ID: "one-way-silence", Severity: machine.Warn, Absence: true, ToldPause: true,
	Summary: "one side was silent while the other went on sending",
	Explain: `Nothing of this side was captured for a second or more, while its peer kept sending: a quarter of its usual packets or more was captured. In that time the peer's packets were not acked. The peer resends whatever it sends reliably, and its RTT and loss estimates freeze.

That nothing was captured is certain. Why is not: the side sent nothing, or the network lost it.

Look at the side's sequence numbers across the silence. If they went on, the network lost the packets. If they did not, the side did not send.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, the longest %.1f s, in which the peer sent %s",
			machine.Count(n, "time", "times"),
			worst[0]/1000,
			machine.Count(uint64(worst[1]), "packet", "packets"),
		)
	},
}

// Stall is the rule "stall".
var Stall = &machine.Rule{
	ID: "stall", Severity: machine.Warn, Absence: true, Origin: machine.OriginCode, ToldPause: true,
	Toward:  machine.TowardSide,
	Summary: "a side stopped sending for a while: its process, not the network",
	Explain: `The side stopped sending for a while, because its process was held up. Causes are a long frame, garbage collection, loading, or a busy machine. For example, a side that sends every 16 ms sends nothing for 400 ms.

ackscope reports a pause of at least 200 ms and more than eight frames. Over the pause, the sequence numbers grew by half of what was due or less. So the packets were not lost: the side did not send them. The finding is likely.

Look at what the process did at that time. An outage of the network shows as "loss-burst" instead: there the numbers go on.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, the longest %.0f ms, where a frame takes %.1f ms",
			machine.Count(n, "time", "times"),
			worst[0],
			worst[1],
		)
	},
}

// RTTSpike is the rule "rtt-spike".
var RTTSpike = &machine.Rule{
	ID: "rtt-spike", Severity: machine.Note, Origin: machine.OriginNetwork,
	Summary: "acks took far longer than usual",
	Explain: `The ack of a packet came far later than usual: later than twice the smoothed RTT plus 50 ms. At a smoothed RTT of 40 ms, that is an ack after more than 130 ms. The cause is a queue on the way or a stall of either process. Or the first acks were lost, and only a later header brought this one.

ackscope measures it in a capture taken at the sender, where it is certain.

The library smooths with a factor of 0.0025, so its RTT hardly moves. A resend timer that uses this RTT fires in the meantime.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s late; worst: after %.0f ms, where the smoothed RTT was %.0f ms",
			machine.Count(n, "ack came", "acks came"),
			worst[0],
			worst[1],
		)
	},
}

// LossBurst is the rule "loss-burst".
var LossBurst = &machine.Rule{
	ID: "loss-burst", Severity: machine.Warn, Absence: true, ToldPause: true, Toward: machine.TowardTap,
	Summary: "many packets in a row were lost before they were captured",
	Explain: `Eight or more consecutive sequence numbers of the side are not in the capture. The packets were lost before the place where it was taken. That they are not in the capture is certain. Where a header of the peer acks half of those that it covers, they did arrive, and the finding is "capture-loss" instead.

Losses of more than 32 packets in a row also cost acks. The next header no longer covers what came before the gap, so packets that arrived just before it may never be acked.

Look for an outage or a full queue on the path.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, the longest of %s over %.0f ms",
			machine.Count(n, "burst", "bursts"),
			machine.Count(uint64(worst[0]), "packet", "packets"),
			worst[1],
		)
	},
}

// RefusedPacket is the rule "refused".
var RefusedPacket = &machine.Rule{
	ID: "refused", Severity: machine.Note, Absence: true, Toward: machine.TowardSideSeen,
	Summary: "packets reached the side and were neither received nor acked",
	Explain: `The packet reached the side, and the side neither received nor acked it. For example, its headers ack packets 41 and 43 and never 42, although 42 was captured.

ackscope recognises it in a capture taken at the receiver: the header covers the number and does not ack it. The finding is certain where such a header follows, and likely otherwise.

Either the application refused the packet, which reliable allows, or the datagram was dropped after it was captured and before the socket. Check for a full socket buffer (netstat -su: receive buffer errors) and for a wrong checksum.`,
	Say: func(n uint64, _ [3]float64) string {
		return fmt.Sprintf("%s not taken", machine.Count(n, "packet arrived and was", "packets arrived and were"))
	},
}

// FragmentLoss is the rule "fragment-loss-amplification".
var FragmentLoss = &machine.Rule{
	ID: "fragment-loss-amplification", Severity: machine.Warn,
	Summary: "large packets are lost more often because each of their fragments must arrive",
	Explain: `Large packets are lost more often, because a packet arrives only if all its fragments do. At a loss of p, a packet of n fragments arrives with probability (1-p)^n. For example, at 5 % loss only 66 % of packets of eight fragments arrive.

ackscope compares two shares in a capture taken at the receiver: fragmented packets that stayed incomplete, and packets that were lost. The first share is more than 1.5 times the second. The finding is likely.

Send less at once. Spread large blocks over time with an ack for each slice (the article's "Sending Large Blocks of Data"). Or let each fragment be acked and resent.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("%.1f%% of %.0f fragmented packets were incomplete, against %.1f%% of datagrams lost", worst[0],
			worst[1], worst[2])
	},
}

// CaptureLoss is the rule "capture-loss".
var CaptureLoss = &machine.Rule{
	ID: "capture-loss", Severity: machine.Note, CaptureLoss: true,
	Summary: "the capture lacks packets that were on the wire",
	Explain: `The capture lacks packets that were on the wire, and the network cannot have lost them. Either a side captured here skipped sequence numbers, or a header acks a packet that the capture does not have. For example, packets 33 to 183 are missing, and the next header acks 152 to 183. Then the capture lacks all of them, and nothing is said of the time in which they passed. The capturing program dropped the packets, or a filter left them out.

The finding is certain where the side that was not captured here acks such a packet, and likely otherwise.

ackscope grades facts that rest on the missing packets lower. Capture with a larger buffer (tcpdump -B, dumpcap -B) or a shorter snap length.`,
	Say: func(n uint64, worst [3]float64) string {
		const never = "of this side never reached this capture"
		if n == 1 || worst[0] <= 1 {
			return fmt.Sprintf("%s %s", machine.Count(max(n, uint64(worst[0])), "packet", "packets"), never)
		}
		return fmt.Sprintf("%d times, packets %s; worst: %.0f in a row", n, never, worst[0])
	},
}

// MalformedPacket is the rule "malformed".
var MalformedPacket = &machine.Rule{
	ID: "malformed", Severity: machine.Warn, Origin: machine.OriginCode,
	Summary: "a datagram is no packet of the dialect",
	Explain: `The datagram cannot be read as a packet of the flow's profile. A receiver counts it as invalid and drops it. ackscope keeps it out of all state. The finding is certain for the profile in use.

"ackscope packets" shows which field is bad, and where. If a share of all datagrams of one side is malformed, the profile may be wrong. Single short datagrams are usually truncated on the way, or probes.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, the longest of %s",
			machine.Count(n, "datagram", "datagrams"),
			machine.Count(uint64(worst[0]), "byte", "bytes"),
		)
	},
}
