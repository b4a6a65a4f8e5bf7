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
	Explain: `A message went out under the sequence id of another connection. Release 2.1.0 sends one message object to several clients. For each client it ORs the sequence id over the one that is already in the object. For example, ids 5 and 6 become 7. So from the second client on, the id is wrong.

The receiver acks the wrong id. The sender waits for the id that it meant, sends again, and drops the client after 15 attempts. Broadcasts, relayed messages and "client connected" all do this. Sessions of three or more clients rarely survive.

ackscope sees two messages under one id, or an id beyond the next one that is sent again after its Ack. The first sign is certain in a capture taken at the sender. Otherwise the finding is likely.

Release 2.1.1 repairs it: update the server.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the last under id %.0f: release 2.1.0", count(n, "message"), worst[1])
	},
}

// StopReads80 is the rule "riptide-stop-reads-80".
var StopReads80 = &machine.Rule{
	ID: "riptide-stop-reads-80", Severity: machine.Note,
	Summary: "the server's stop reads as disconnect reason 80",
	Explain: `A server stopped, and its clients read disconnect reason 80 in place of 5 (ServerStopped). The server writes the reason as a whole byte behind the 4 bits of the type. So the clients read it shifted by 4 bits: 0x05 becomes 0x50, which is 80.

Releases 2.1.0 to 2.2.0 do this, and Pytide 2.1.0-alpha over TCP. ackscope reads it from the Disconnect, so the finding is certain.

Release 2.2.1 repairs it. Until then, treat reason 80 as ServerStopped.`,
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
	ID: "riptide-false-ack", Severity: machine.Warn, Absence: true, Origin: machine.OriginCode,
	Summary: "an Ack names messages that had not come",
	Explain: `An Ack names messages that had not come. For example, the ids jump from 100 to 140, and the Ack of 140 also names 130. The sender then counts message 130 as delivered and does not send it again.

The fault is in the library's window. A jump of 32 or more ids moves the bits by the jump modulo 32 only. Old bits stay and stand for newer ids. Source builds since February 2023 and releases 2.1.0 to 2.2.1 have the fault. It was repaired in August 2026.

The capture was taken at the receiver, and none of the ids inside the jump had come. The finding is certain if the capture is complete and was provably taken at that side. Otherwise it is likely.

See "riptide-acked-not-delivered" for what came of it, and what to do.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the worst names %.0f such ids below %.0f, after a jump of %.0f: built between February "+
			"2023 and August 2026, 2.1.0 to 2.2.1", count(n, "Ack"), worst[0], worst[1], worst[2])
	},
}

// WindowRepaired is the rule "riptide-window-repaired".
var WindowRepaired = &machine.Rule{
	ID: "riptide-window-repaired", Severity: machine.Note,
	Summary: "the receiver's window stood a jump of 32 and more: a library without the fault",
	Explain: `The receiver's window handled a jump of 32 ids or more correctly. So this side runs a library from after August 2026, without the window fault, or another implementation.

After the jump, the Acks of this side show the bits of a window that moves all of them. Releases 2.1.0 to 2.2.1 would have shown other bits: see "riptide-false-ack". The finding is certain if the capture is complete, and likely otherwise.

No action is needed. ackscope follows this side as riptide@main from here on.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("a jump of %s: a library of after August 2026", machine.Count(uint64(worst[0]), "id", "ids"))
	},
}

// LastStuck is the rule "riptide-last-stuck".
var LastStuck = &machine.Rule{
	ID: "riptide-last-stuck", Severity: machine.Note,
	Summary: "the newest id that Acks name stays behind what was received (2.0.0)",
	Explain: `The Acks of this side go on naming an old id as the newest one. Release 2.0.0 does not move its newest id at a jump of 17 to 80 ids. The id that an Ack answers is then in the third field (AckExtra). This ends when an id within 16 of the old one comes.

Meanwhile the bits stand for older ids than they seem to. The side takes ids more than 80 behind or ahead whether they are new or not.

ackscope reads it from an AckExtra whose third id is ahead of the newest. The finding is certain.

Send fewer reliable messages at once, or update the library.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, up to %s behind (at %.0f): release 2.0.0",
			count(n, "Ack"),
			machine.Count(uint64(worst[0]), "id", "ids"),
			worst[1],
		)
	},
}

// UselessCause is the rule "riptide-useless-ack-bits".
var UselessCause = &machine.Rule{
	ID: "riptide-useless-ack-bits", Severity: machine.Note,
	Summary: "Acks carry 16 bits that nobody reads",
	Explain: `Each Ack of this side carries 16 bits that no receiver reads. Its flag says that the id which it answers is the newest one, and yet that id follows. Missing braces in releases 2.1.0 to 2.1.2 cause this.

ackscope reads it from the Ack, so the finding is certain. It also shows the release: 2.2.0 and later send Acks of 5 bytes.

It costs two bytes an Ack and does no other harm. Release 2.2.0 repairs it.`,
	Say: func(uint64, [3]float64) string { return "releases 2.1.0 to 2.1.2" },
}

// StaleBits is the rule "riptide-stale-bits".
var StaleBits = &machine.Rule{
	ID: "riptide-stale-bits", Severity: machine.Note,
	Summary: "values behind a text or a byte[] of this side can be wrong",
	Explain: `Values behind a text or a byte[] of this side can be wrong. In releases 2.1.0 and 2.1.1, whole bytes that are added at a byte boundary leave bits of an earlier message behind them. The value that follows is OR-ed with those bits. The receiver then reads something else than the application wrote: an int 0x0012d687 arrived as 0x1593ded7.

The data of kicks and rejections is affected, since it begins at a byte boundary. So are user messages in which bools or raw bits bring a text to a boundary. ackscope needs a schema of the values to see those.

The capture shows the result only, so the grade depends on what the sender can be. The finding is likely for 2.1.0 and 2.1.1, and possible where the sender may also be 2.1.2, in which the fault is repaired.

Update to 2.1.2 or later.`,
	Say: func(uint64, [3]float64) string { return "releases 2.1.0 and 2.1.1" },
}

// ShortArrays is the rule "riptide-short-arrays".
var ShortArrays = &machine.Rule{
	ID: "riptide-short-arrays", Severity: machine.Warn,
	Summary: "arrays of short or ushort went out without their elements",
	Explain: `An array of short or ushort went out without its elements. Releases 2.1.0 to 2.1.2 put only the length of a short[] or ushort[] on the wire. The receiver logs "not enough bits" and hands over elements of zero, or reads what follows in the message as the elements. The values are not in the capture either.

ackscope sees it with a schema of the messages, and then the finding is certain.

Release 2.2.0 repairs it. Until then, write the elements one by one, or as an int[].`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the largest message id %.0f: releases 2.1.0 to 2.1.2", count(n, "message"), worst[0])
	},
}

// VarLong is the rule "riptide-varlong-overflow".
var VarLong = &machine.Rule{
	ID: "riptide-varlong-overflow", Severity: machine.Warn, Origin: machine.OriginCode,
	Summary: "a VarLong is so large that the receiver's library reads another number",
	Explain: `A VarLong is so large that the receiver's library reads another number. The bytes are right, and ackscope shows the value that they encode. But the library decodes a VarLong wrongly from a magnitude of 2^62 on: the smallest long arrives as 0. Every release that has VarLongs does so (2.1.0 and later).

ackscope sees it with a schema of the messages, and then the finding is certain.

Send such numbers as a plain long.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the largest message id %.0f: receivers of 2.1.0 and later", count(n, "message"), worst[0])
	},
}

// NotifyPassed is the rule "riptide-notify-passed-over".
var NotifyPassed = &machine.Rule{
	ID: "riptide-notify-passed-over", Severity: machine.Note,
	Summary: "notify messages were reported lost because the peer's headers passed them over",
	Explain: `Notify messages were reported lost to the application, whether they arrived or not. A notify header covers the newest id and the 8 before it. Ids further behind are reported lost. For example, a header names id 30 after id 10: ids 11 to 21 are reported lost.

The library's own loss metric leaves them out (2.1.0 and later; source builds since July 2023). ackscope counts them in a capture taken at the sender. The finding is certain if the capture is complete, and likely otherwise.

It happens where the peer sends notify messages more rarely than one in nine of this side's. With such unequal rates, most messages are "lost" with no loss at all. Let the peer send notify messages as often, or do not read "lost" as lost.`,
	Say: func(_ uint64, worst [3]float64) string {
		return count(uint64(worst[0]), "message") + ": 2.1.0 and later"
	},
}

// NotifyJump is the rule "riptide-notify-jump".
var NotifyJump = &machine.Rule{
	ID: "riptide-notify-jump", Severity: machine.Note, Absence: true,
	Summary: "the newest notify id jumped by 32 or more",
	Explain: `The newest notify id jumped by 32 or more. The library keeps notify messages in the same kind of window as reliable ones, with the same fault. Source builds since July 2023 and releases 2.1.0 to 2.2.1 have it. After such a jump, the headers of this side can name ids that never came, where the jump modulo 32 is below 8. The side can also refuse the new message itself.

ackscope sees the jump in a capture taken at the receiver. The fault is likely, since a library with the repaired window takes what the others refuse.

Send fewer notify messages at once, or use a version from after August 2026.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, the largest jump %.0f, to id %.0f: builds of July 2023 to August 2026, 2.1.0 to 2.2.1",
			machine.Count(n, "time", "times"),
			worst[0],
			worst[1],
		)
	},
}
