package judge

import "github.com/ackscope/ackscope/machine"

// ConnectEarly is the rule "connect-early".
var ConnectEarly = &machine.Rule{
	ID: "connect-early", Severity: machine.Warn,
	Summary: "a client repeated its Connect too soon",
	Explain: `A client that has no answer sends Connect again once a heartbeat interval: every second. Here the next one came sooner. For example, Connects leave at 0, 100 and 200 ms. A server may take each for a new client.

The capture was taken at the client, so the times are its own. 60 ms are allowed for a late timer. Over TCP a Connect can be held back, so each is compared with the soonest time at which it can have left.

Start one timer for each attempt to connect, and stop it when a new attempt begins. Two timers that run at once show this.`,
}

// ConnectAttempts is the rule "connect-attempts".
var ConnectAttempts = &machine.Rule{
	ID: "connect-attempts", Severity: machine.Warn,
	Summary: "a client sent more Connects than the library sends",
	Explain: `A client gives up after five Connects without an answer. Here one more left. For example, a client sends Connect every second for a minute to a server that is down.

The capture was taken at the client, so all of its Connects are counted. Connects that the capture lacks only make the number larger.

Count the Connects in the timer, and tell the application that the connection failed when the last one has no answer. An application that calls Connect again by itself begins a new attempt: it should open a new socket.`,
}

// ConnectAgain is the rule "connect-again".
var ConnectAgain = &machine.Rule{
	ID: "connect-again", Severity: machine.Error,
	Summary: "a client sent Connect although its connection stands",
	Explain: `A client that has answered the Welcome is connected. It sends no further Connect. Here it does. For example, Welcome and its answer are frames 3 and 4, and frame 20 is a Connect. A server may close the connection and open another one.

The capture was taken at the client, and the capture has the connection's beginning. Where the client does not answer the Welcome, it must have read it: something that came after it was answered.

Stop the timer of the Connect when the Welcome is read.`,
}

// HeartbeatID is the rule "heartbeat".
var HeartbeatID = &machine.Rule{
	ID: "heartbeat", Severity: machine.Error,
	Summary: "a heartbeat has another id than the one that is due",
	Explain: `The ids of a client's heartbeats begin at 0 and step by one. Here another id came. For example, the ids are 0, 1, 2, 2. The client finds the answer to a heartbeat by its id. So an id that stays gives wrong round trip times, and with them wrong resend times. Every heartbeat of Pytide has id 1.

In a capture taken at the side, or over TCP, an id that lies ahead may follow some that the capture lacks; one that stays or lies behind is certain. Elsewhere two heartbeats with one id and different RTTs are: the ids take 256 seconds to come round.

Step the id with each heartbeat that is sent, not with each answer that is read.`,
}

// HeartbeatEarly is the rule "heartbeat-early".
var HeartbeatEarly = &machine.Rule{
	ID: "heartbeat-early", Severity: machine.Warn,
	Summary: "a heartbeat was sent too soon after the one before",
	Explain: `A client sends a heartbeat once a second. Here the next one came sooner. For example, heartbeats leave 500 ms apart. They cost little, but a timer that runs twice as fast times peers out twice as fast too.

The capture was taken at the client, so the times are its own. 60 ms are allowed for a late timer. Over TCP each is compared with the soonest time at which it can have left.

Check the interval, and that one timer only sends heartbeats. If the application has set another HeartbeatInterval, this is no fault.`,
}

// HeartbeatAnswer is the rule "heartbeat-answer".
var HeartbeatAnswer = &machine.Rule{
	ID: "heartbeat-answer", Severity: machine.Error,
	Summary: "a heartbeat was not answered, or an answer has no heartbeat",
	Explain: `A server answers each heartbeat at once, with the id of that heartbeat. Here a heartbeat has had no answer for more than a second, or an answer has an id that no heartbeat had. For example, heartbeat 7 is answered with id 8. The client measures no round trip time, and gives the connection up after 5 seconds without an answer.

The capture was taken at the server, or the connection runs over TCP. Heartbeats that came before the server knew its client need no answer. A capture that lacks the heartbeat, or the answer, shows the same.

Send the answer in the handler of the heartbeat, and copy its id.`,
}

// WrongRTT is the rule "rtt".
var WrongRTT = &machine.Rule{
	ID: "rtt", Severity: machine.Error,
	Summary: "a heartbeat gives another round trip time than the one that was measured",
	Explain: `A client writes into each heartbeat the time from the last one to its answer, in milliseconds. Without a new answer it repeats the old value. Here the value is another one. For example, the answer came 42 ms after the heartbeat, and the next heartbeat says 84. The server resends by this value: twice the RTT means resends twice as late.

The capture was taken at the client, where the time is known; up to 250 ms are allowed for a frame in which the answer lies unread. An answer of a server repeats an RTT that its client has told, in dialects that write one. A capture that lacks a heartbeat or an answer shows the same.

Take the time when the heartbeat is sent and when its answer is read, from one clock, and do not double the half.`,
}

// TimedOut is the rule "timeout".
var TimedOut = &machine.Rule{
	ID: "timeout", Severity: machine.Warn,
	Summary: "a side went on although its peer had been silent too long",
	Explain: `A side gives the connection up when it has heard no heartbeat for 5 seconds; it looks once a second, so after 6 at the latest. Here it still sends. For example, the last heartbeat came 9 s ago, and the side still sends positions. A server keeps the slot of a player who is gone.

The capture was taken at the side. A capture that lacks heartbeats shows the same, and so does an application that has raised TimeoutTime.

Store the time of each heartbeat, Welcome and Connect that is read, and compare it in the timer of the heartbeats.`,
}

// AfterTheEnd is the rule "after-the-end".
var AfterTheEnd = &machine.Rule{
	ID: "after-the-end", Severity: machine.Error,
	Summary: "a side went on with a connection after it had ended",
	Explain: `A Disconnect of either side ends the connection. Here a side sends other messages more than a second later. For example, the server kicks a client in frame 200, and the client sends positions until frame 290. The server drops them, or takes them for a new client without a Connect. The library of after August 2026 also ends a connection without a word: when its window of 1024 ids is too short for an id that never came. A side that goes on after that is another version.

The capture was taken at the side. A second is allowed, since what was on its way to the socket still leaves. If the Disconnect is the peer's and the peer is shown to be at fault, this is left open.

Stop the timers and drop the pending messages when a Disconnect is sent or read.`,
}
