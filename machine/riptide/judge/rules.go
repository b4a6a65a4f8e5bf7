package judge

import "github.com/ackscope/ackscope/machine"

// Rules lists every rule that a side can break: the rules of the divergences that the
// judge finds. Those of the connection are in rules_session.go.
var Rules = []*machine.Rule{
	AckWrong, AckMissing, AckUnasked, AckUnsent, AckForgotten, NotifyAck,
	Sequence, SequenceReuse, ResendEarly, ResendLate, ResendAfterAck, Attempts,
	WrongType, WrongRole, Unreadable,
	ConnectEarly, ConnectAttempts, ConnectAgain, HeartbeatID, HeartbeatEarly, HeartbeatAnswer, WrongRTT, TimedOut,
	AfterTheEnd,
}

// AckWrong is the rule "ack".
var AckWrong = &machine.Rule{
	ID: "ack", Severity: machine.Error,
	Summary: "an Ack says something else than its receiver holds",
	Explain: `An Ack has the newest id received, a bit for each of the 16 ids before it, and the id that it answers. Here they are not what the receiver must hold after what it read. For example, messages 5, 6 and 8 were read, and the Ack says newest 8 with the bit of 7 set. The peer takes message 7 for delivered and does not send it again.

Some Acks contradict themselves. They leave out the id that they answer, or name a newest id that is older than that one. Or their flag says that the two differ, and they do not. These are certain in any capture. The others are compared with all that was captured on its way to the side, in that order. A capture that lacks a message explains an Ack that names more. Nothing explains one that leaves out what the side's own Acks named before.

Compare the two windows in the report. Look at how the bits shift when a newer id comes: bit 0 stands for the newest id - 1. Some releases have a fault there, "shift fault"; "ackscope replay --matrix" tells which behaviour the side has.`,
}

// AckMissing is the rule "ack-missing".
var AckMissing = &machine.Rule{
	ID: "ack-missing", Severity: machine.Error,
	Summary: "a reliable message was not answered by an Ack",
	Explain: `Each copy of a reliable message is answered by one Ack, at once and in order. Here one was not. For example, messages 20 and 21 arrive, and only the Ack of 21 leaves. If no later Ack names message 20, its sender sends it again for nothing, up to 15 times.

The capture was taken at the side, or the connection runs over TCP, so the order in which the side read is known. A message counts as missed when a later one is answered, or after a second in which the side sent other things. A capture that lacks the Ack shows the same.

Send the Ack in the handler of the message, before anything else can return from it. Answer a duplicate as well: its sender has not read the first Ack.`,
}

// AckUnasked is the rule "ack-unasked".
var AckUnasked = &machine.Rule{
	ID: "ack-unasked", Severity: machine.Error,
	Summary: "an Ack answers no message that waits for an answer",
	Explain: `Each copy of a reliable message is answered by one Ack, and by no more. Here an Ack answers a message that was not captured, or whose copies were all answered before. For example, message 30 is captured once, and two Acks answer it. A second Ack only costs bandwidth. An Ack of a message that never arrived loses that message: its sender does not send it again.

The capture was taken at the side, or the connection runs over TCP. A capture that lacks a copy of the message shows the same. If the peer is shown to have sent a message under a wrong type or number, the divergence is the peer's.

Call the code that sends an Ack once for each message that is read. An Ack from a timer as well as from the handler shows this.`,
}

// AckUnsent is the rule "ack-unsent".
var AckUnsent = &machine.Rule{
	ID: "ack-unsent", Severity: machine.Error,
	Summary: "an Ack, or a notify header, names a message that had not been sent",
	Explain: `The capture was not taken at this side. All that the side received was captured on its way, and a message that it names was not. For example, an Ack says newest 52, and its peer's newest message is 50. Its peer takes 51 and 52 for delivered before it has sent them.

Ids from before the capture do not count. A capture that lacks the message shows the same.

Look at how the newest id and the bits are set from what is read. Check that reliable and notify messages have counters of their own: each kind acks only its own ids.`,
}

// AckForgotten is the rule "ack-forgotten".
var AckForgotten = &machine.Rule{
	ID: "ack-forgotten", Severity: machine.Error,
	Summary: "two Acks each lack a message that the other one has",
	Explain: `What was received stays received. So of two Acks of a side, the later has all that the earlier has. Here each has something that the other lacks, so neither can be the later one. For example, one Ack names 10 and not 9, and another names 9 and not 10.

The capture was not taken at the side, so which Ack left first is not known, and it does not matter. The two contradict each other, and no packet that the capture lacks explains that.

Look at how the bits shift when a newer id comes. A bit that falls out too soon, or is set for the wrong id, shows this. "ackscope replay --matrix" tells whether the side has the shift fault of some releases.`,
}

// NotifyAck is the rule "notify-ack".
var NotifyAck = &machine.Rule{
	ID: "notify-ack", Severity: machine.Error,
	Summary: "a notify header says something else than its receiver holds",
	Explain: `A notify header has the newest notify id received and a bit for each of the 8 ids before it. An id that was skipped is never taken any more: if 7 arrives and then 6, only 7 counts. Here the header does not fit. For example, one header says that 6 was not received, and a later one says that it was. The sender was told that message 6 was lost, and then that it was delivered.

In a capture taken at the side, or over TCP, the header is compared with what was captured on its way to the side: a capture that lacks a message shows the same. Elsewhere headers of the side are compared with each other, by their numbers. Those contradict each other in any capture.

Take an id only if it is newer than all before. Check the order of the bits: bit 0 stands for the newest id - 1.`,
}

// Sequence is the rule "sequence".
var Sequence = &machine.Rule{
	ID: "sequence", Severity: machine.Error,
	Summary: "a message has another sequence id than the one that is due",
	Explain: `A side numbers its reliable messages one by one, and its notify messages as well, each kind with its own counter. Here another number came. For example, reliable message 15 follows 13. The receiver takes 14 for lost, and the bits of its Acks cover one message less. In Pytide 2.0.0 each reliable message has id 1, and another id breaks the rule.

The capture was taken at the side, or the connection runs over TCP. Where the number lies ahead, a capture that lacks those between shows the same. A reliable message that lies behind may be a copy of one that the capture lacks. A notify message is never sent again, so one that lies behind is certain. So is a message that is a copy of another one but for its id.

Step the counter once for each new message, and keep the id for its copies.`,
}

// SequenceReuse is the rule "sequence-reuse".
var SequenceReuse = &machine.Rule{
	ID: "sequence-reuse", Severity: machine.Error,
	Summary: "two different messages have the same sequence id",
	Explain: `A message that is sent again has the same id and the same bytes. Here the bytes differ. For example, message 44 carries a chat line, and 200 ms later message 44 carries a position. The receiver drops the second as a duplicate, and its sender learns that it was delivered.

The two messages contradict each other, wherever the capture was taken, and no packet that the capture lacks explains that. Releases that OR the ids of a message to several clients are judged by what they do: see "riptide-merged-sequences".

Give each message its own id before it is sent to several clients: one message object that is sent twice keeps the id of the last.`,
}

// ResendEarly is the rule "resend-early".
var ResendEarly = &machine.Rule{
	ID: "resend-early", Severity: machine.Warn,
	Summary: "messages are sent again before they are due",
	Explain: `The library sends a reliable message again after 1.2 times its smoothed round trip time, or after 50 ms while it knows none. Here copies come sooner, over and over. For example, the smoothed RTT is 100 ms, and messages are sent again after 60 ms. Such copies leave before the Ack can be back.

The capture was taken at the side, and the connection runs over UDP. The round trip time of the library is known between two bounds. One early copy proves nothing, since a process can be held up. So four times are needed, 200 ms apart, and most copies must be early. A capture that lacks a heartbeat can show the same: the heartbeat told of a shorter time.

Check the unit and the factor of the timer, and that it starts with each copy. A library whose resend time was changed on purpose is no fault: this divergence says that it is not the release's.`,
}

// ResendLate is the rule "resend-late".
var ResendLate = &machine.Rule{
	ID: "resend-late", Severity: machine.Warn,
	Summary: "a message that was not acked is not sent again in time",
	Explain: `The library sends a reliable message again after 1.2 times its smoothed round trip time. Here the time is long past, the side sends other things, and no copy comes. For example, a message is due after 120 ms and has not left after 700 ms. If its first copy was lost, the receiver waits for it all that time.

The capture was taken at the side, and the connection runs over UDP. 400 ms are allowed for a long frame. In releases whose timers can hold each other back, three late messages are needed, and most must be late. A capture that lacks the copy, or the Ack, shows the same.

Look at how pending messages are found when their time comes. A queue that is ordered by the time of entry misses those that are due before older ones.`,
}

// ResendAfterAck is the rule "resend-after-ack".
var ResendAfterAck = &machine.Rule{
	ID: "resend-after-ack", Severity: machine.Warn,
	Summary: "a message was sent again although its Ack had been read",
	Explain: `Once an Ack names a message, its sender forgets it. Here a copy leaves after that. For example, the Ack of message 12 is in frame 80. Messages that came after it are answered by frame 90, so it was read. Message 12 leaves again in frame 95.

The capture was taken at the side. An Ack counts as read when something that came after it was answered, or after half a second in the socket. An Ack that leaves a message out can ask for it. A capture that lacks such an Ack shows the same.

Stop the timer of a message when its Ack is read. Look at how ids wrap at 65,536 where a message is looked up.`,
}

// Attempts is the rule "attempts".
var Attempts = &machine.Rule{
	ID: "attempts", Severity: machine.Warn,
	Summary: "a message was sent more often than the library sends any",
	Explain: `These releases send a reliable message 15 times and then give it up. Here one left a 16th time. For example, a client that went away is still sent message 3 every 50 ms. The later releases end the connection in that case, and their applications can lift the limit. There, more sendings are left open.

The capture was taken at the side, so it counts the copies that left. Copies that the capture lacks only make the number larger.

Count a copy in one place, where it is sent. A counter that starts anew whenever an Ack asks for the message shows this.`,
}

// WrongType is the rule "type".
var WrongType = &machine.Rule{
	ID: "type", Severity: machine.Error,
	Summary: "a message has the type of another kind of message",
	Explain: `A message of this side is another one but for its type. For example, reliable message 9 is due. A message leaves as Unreliable whose bytes behind the type are those of reliable message 9, and then message 10 follows. The receiver reads it as the type says, and message 9 never comes.

The capture was taken at the side. What leads to it is what is missing: a number, an Ack, a heartbeat, or a Connect that was answered. A capture that lacks the right message shows the same by chance. A Disconnect after which the side goes on has a wrong type too, unless the capture lacks a new Connect.

Check the table of types of the release. Dialects number the types differently: Reliable is 6 in one and 7 in another. "ackscope protocols riptide" lists the dialects.`,
}

// WrongRole is the rule "role".
var WrongRole = &machine.Rule{
	ID: "role", Severity: machine.Error,
	Summary: "a side sent a message that only its peer sends",
	Explain: `ClientConnected, ClientDisconnected and Reject are the server's. In most dialects a heartbeat with an RTT is the client's, and one without is the server's answer. Here a side sends what belongs to the other role. For example, the client of the connection sends ClientConnected. Its peer drops the message, or ends the connection.

The capture was taken at the side, and the capture has the connection's beginning, so who is the client is known.

Check the type that is written, and that a host that is both server and client uses the right object for each connection.`,
}

// Unreadable is the rule "unreadable".
var Unreadable = &machine.Rule{
	ID: "unreadable", Severity: machine.Error,
	Summary: "a datagram, or a message of a stream, is none of the dialect",
	Explain: `An endpoint of Riptide sends nothing but messages of its dialect from its port. Here something cannot be read: a type that does not exist, a header that is cut short, or bytes behind the end. For example, an Ack of 4 bytes leaves where the dialect has 5 or 7. The peer drops it.

The capture was taken at the side, so the network did not damage it. No packet that the capture lacks explains it. Over TCP this holds only for a stream whose beginning is in the capture.

The report names the field, what was expected there and what stands there. A field of the wrong width shifts all that follows. Two ends of different releases show this as well: "ackscope flows --json" says what tells the dialect.`,
}
