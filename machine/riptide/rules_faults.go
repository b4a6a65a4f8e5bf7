package riptide

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

// Each of these faults proves which versions its sender or its receiver can be. The finding names
// them.

// MergedSequences is the rule "riptide-merged-sequences".
var MergedSequences = &machine.Rule{
	ID: "riptide-merged-sequences", Severity: machine.Error, Absence: true,
	Summary: "messages went out under the sequence id of another connection (2.1.0)",
	Explain: `Release 2.1.0 writes the sequence id of a reliable message into the one message object that it sends to several clients, and ORs it over the id that is there: from the second client on the id is the OR of both. The receiver acks that id; the sender waits for the one that it meant, sends again, and drops the client after 15 attempts. Broadcasts, relayed messages and "client connected" all do it; sessions of three and more hardly survive.

It is repaired in 2.1.1: update the server.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the last under id %.0f: release 2.1.0", count(n, "message"), worst[1])
	},
}

// StopReads80 is the rule "riptide-stop-reads-80".
var StopReads80 = &machine.Rule{
	ID: "riptide-stop-reads-80", Severity: machine.Note,
	Summary: "the server's stop reads as disconnect reason 80",
	Explain: `Releases 2.1.0 to 2.2.0 (and Pytide 2.1.0-alpha over TCP) write the reason of a stopping server as a whole byte behind the 4 bits of the type; clients read 80 in place of 5 (ServerStopped). Repaired in 2.2.1.`,
	Say: func(_ uint64, worst [3]float64) string {
		who := "releases 2.1.0 to 2.2.0"
		if port := Behaviours[int(worst[0])]; port.Port {
			who = port.Window
		}
		return "the server's stop reads as disconnect reason 80: " + who
	},
}

// FalseAck is the rule "riptide-false-ack".
var FalseAck = &machine.Rule{
	ID: "riptide-false-ack", Severity: machine.Warn, Absence: true,
	Summary: "an Ack names messages that had not come",
	Explain: `The Ack follows a jump of 32 or more ids, and its bits name ids in between, of which none can have arrived. It is the fault of the library's window: a jump moves the bits by the jump modulo 32 only, so that old ones stay and stand for newer ids. The sender then takes the messages for delivered and does not send them again.

Source builds since February 2023 and releases 2.1.0 to 2.2.1 have it; it was repaired in August 2026. See "riptide-acked-not-delivered" for what came of it.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the worst names %.0f such ids below %.0f, after a jump of %.0f: built between February "+
			"2023 and August 2026, 2.1.0 to 2.2.1", count(n, "Ack"), worst[0], worst[1], worst[2])
	},
}

// WindowRepaired is the rule "riptide-window-repaired".
var WindowRepaired = &machine.Rule{
	ID: "riptide-window-repaired", Severity: machine.Note,
	Summary: "the receiver's window stood a jump of 32 and more: a library without the fault",
	Explain: `After such a jump the Acks of this side show what a window shows that moves all its bits. Releases 2.1.0 to 2.2.1 would have shown others ("riptide-false-ack"): this side is a library of after August 2026, or another implementation. It is followed as riptide@main from here on.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("a jump of %.0f ids: a library of after August 2026", worst[0])
	},
}

// LastStuck is the rule "riptide-last-stuck".
var LastStuck = &machine.Rule{
	ID: "riptide-last-stuck", Severity: machine.Note,
	Summary: "the newest id that Acks name stays behind what was received (2.0.0)",
	Explain: `Release 2.0.0 does not move its newest id at a jump of 17 to 80: its Acks go on naming the old one, with the id that they answer in the third field (AckExtra), until an id within reach comes. The bits then stand for older ids than they seem to, and ids more than 80 behind or ahead are taken whether they are new or not.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, up to %.0f ids behind (at %.0f): release 2.0.0", count(n, "Ack"), worst[0], worst[1])
	},
}

// UselessCause is the rule "riptide-useless-ack-bits".
var UselessCause = &machine.Rule{
	ID: "riptide-useless-ack-bits", Severity: machine.Note,
	Summary: "Acks carry 16 bits that nobody reads",
	Explain: `The flag of these Acks says that the id which they answer is the newest one, and all the same that id follows: missing braces in releases 2.1.0 to 2.1.2. Two bytes an Ack, no harm. It tells the release: 2.2.0 and later send 5 bytes.`,
	Say:     func(uint64, [3]float64) string { return "releases 2.1.0 to 2.1.2" },
}

// StaleBits is the rule "riptide-stale-bits".
var StaleBits = &machine.Rule{
	ID: "riptide-stale-bits", Severity: machine.Note,
	Summary: "values behind a text or a byte[] of this side can be wrong",
	Explain: `In releases 2.1.0 and 2.1.1 whole bytes that are added at a byte boundary, a text or a byte[], leave bits of an earlier message behind them; the value that follows is OR-ed with those. What the receiver reads is then not what the application wrote (an int 0x0012d687 arrived as 0x1593ded7). It befalls the data of kicks and rejections, which begin at a boundary, and user messages whose bools or raw bits bring a text to one (a schema of the values shows those). The capture shows the result only, so this is graded by what the sender can be: possible where it may also be 2.1.2, which has it repaired.`,
	Say:     func(uint64, [3]float64) string { return "releases 2.1.0 and 2.1.1" },
}

// ShortArrays is the rule "riptide-short-arrays".
var ShortArrays = &machine.Rule{
	ID: "riptide-short-arrays", Severity: machine.Warn,
	Summary: "arrays of short or ushort went out without their elements",
	Explain: `Releases 2.1.0 to 2.1.2 put only the length of a short[] or ushort[] on the wire. The receiver logs "not enough bits" and hands over elements of zero, or takes what follows in the message for them. The values are not in the capture either.

Repaired in 2.2.0; until then write the elements one by one, or as an int[].`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the largest message id %.0f: releases 2.1.0 to 2.1.2", count(n, "message"), worst[0])
	},
}

// VarLong is the rule "riptide-varlong-overflow".
var VarLong = &machine.Rule{
	ID: "riptide-varlong-overflow", Severity: machine.Warn,
	Summary: "a VarLong is so large that the receiver's library reads another number",
	Explain: `The bytes are right, and this tool shows what they say. But the library decodes a VarLong wrongly from a magnitude of 2^62 on, in every release that has them (2.1.0 and later): the smallest long arrives as 0. Send such numbers as a plain long.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the largest message id %.0f: receivers of 2.1.0 and later", count(n, "message"), worst[0])
	},
}

// NotifyPassed is the rule "riptide-notify-passed-over".
var NotifyPassed = &machine.Rule{
	ID: "riptide-notify-passed-over", Severity: machine.Note,
	Summary: "notify messages were reported lost because the peer's headers passed them over",
	Explain: `A notify header tells of the newest id and of the 8 before it. Ids further behind are reported lost to the application whether they arrived or not, and the library's own loss metric leaves them out (2.1.0 and later; builds since July 2023). It happens where the peer sends notify messages more rarely than one in nine of this side's: with unequal rates most are "lost" with no loss at all.

Let the peer send notify messages as often, or do not read "lost" as lost.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("%.0f messages: 2.1.0 and later", worst[0])
	},
}

// NotifyJump is the rule "riptide-notify-jump".
var NotifyJump = &machine.Rule{
	ID: "riptide-notify-jump", Severity: machine.Note, Absence: true,
	Summary: "the newest notify id jumped by 32 or more",
	Explain: `Notify messages are kept in the same kind of window as reliable ones, with the same fault (source builds since July 2023, releases 2.1.0 to 2.2.1): after a jump of 32 and more its headers can name ids that never came, where the jump modulo 32 is below 8, and the new message itself can be refused.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d times, the largest jump %.0f, to id %.0f: builds of July 2023 to August 2026, 2.1.0 to 2.2.1",
			n, worst[0], worst[1])
	},
}
