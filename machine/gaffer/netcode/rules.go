package netcode

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

// Rules lists every rule that the netcode and yojimbo trackers may report, in addition
// to gaffer.FindingRules.
var Rules = []*machine.Rule{
	netcodeDenied, NoAnswer, netcodeTimeout, netcodeLoss, netcodeDuplicate, netcodeReplayed, netcodeTooOld,
	netcodeNonceReuse, netcodeTokenReuse, TokenExpired, ClockBehind,
}

var netcodeDenied = &machine.Rule{
	ID: "netcode-denied", Severity: machine.Warn,
	Summary: "the server denied the connection",
	Explain: `The server answered a connection request with "denied". netcode does so for one reason: all of its slots are taken. It answers a wrong, expired or used token with silence instead.

ackscope reads the type of the datagram, which travels unencrypted. The finding is certain.

Give the server more slots, or send the client to another server.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, the slowest answer after %.0f ms",
			machine.Count(n, "connection denied", "connections denied"),
			worst[0],
		)
	},
}

// NoAnswer is found where no request of a client is answered. Its third figure is for how many
// seconds the token was valid, or 0 if that explains nothing.
var NoAnswer = &machine.Rule{
	ID: "netcode-no-answer", Severity: machine.Warn, Absence: true,
	Summary: "the server met every connection request with silence",
	Explain: `The client repeated its connection request, and nothing came back. A netcode server stays silent when it cannot use the token. Such a token was made with another private key or for another protocol id, has expired, or was used from elsewhere. Or it does not contain the address by which this server knows itself. A server that is down looks the same, and so does a path that drops requests of 1,078 bytes.

ackscope reports two or more requests without any datagram of the server. That the capture has no answer is certain.

The time at which the token expires travels unencrypted. Where it had passed by the capture's clock, "netcode-token-expired" is reported instead. Where less than an hour was left, this finding says how much: a server whose clock is that far ahead takes the token for expired.

Give ackscope the server's private key (--keys). It then shows whether the token opens, and which servers it names.`,
	Say: func(_ uint64, worst [3]float64) string {
		text := fmt.Sprintf("%.0f connection requests over %.1f s, and no answer", worst[0], worst[1])
		if left := worst[2]; left > 0 {
			text += fmt.Sprintf("; the token was valid for another %s, by the capture's clock", span(left))
		}
		return text
	},
}

var netcodeTimeout = &machine.Rule{
	ID: "netcode-timeout", Severity: machine.Warn, Absence: true, ToldPause: true,
	Summary: "one side fell silent without a disconnect, while the other went on",
	Explain: `One side stopped sending without a disconnect, while the other went on. Its process died, its network failed, or its datagrams no longer reached the place of capture. The other side keeps sending until its timeout.

A netcode endpoint that is alive sends at least a keep-alive every 0.1 s, and says goodbye with ten disconnect datagrams. This side did neither. ackscope reports a silence of at least 4 s in which eight or more datagrams of the other side were captured. The finding is likely.

Look at what happened to the side's process and network at its last datagram.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("silent for the last %.1f s of the connection", worst[0])
	},
}

var netcodeLoss = &machine.Rule{
	ID: "netcode-loss", Severity: machine.Note, Absence: true,
	Summary: "datagrams of this side are missing from the capture, by netcode's counter",
	Explain: `Datagrams of this side are missing from the capture: the network lost them on their way, or the capturing host dropped them. netcode numbers the datagrams of a connection one by one, and the number travels unencrypted. For example, numbers 17 and 19 are in the capture, and 18 is not. That it is missing is certain.

Loss after the place of capture does not show here. To see it, give ackscope the keys (--keys), so that it can read the acks inside.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s of this side never reached this capture: %.1f%% of those sent",
			machine.Count(uint64(worst[0]), "datagram", "datagrams"),
			worst[1],
		)
	},
}

var netcodeDuplicate = &machine.Rule{
	ID: "netcode-duplicate", Severity: machine.Note, Origin: machine.OriginNetwork,
	Summary: "the network delivered a datagram twice",
	Explain: `The same datagram was captured again within a second, as happens in networks at times. ackscope compares the counters and the authentication tags, so the finding is certain.

netcode's replay window drops the copy before decryption, so nothing above it notices. No action is needed.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, the latest %.0f ms behind the first", machine.Count(n, "copy", "copies"), worst[0])
	},
}

var netcodeReplayed = &machine.Rule{
	ID: "netcode-replay", Severity: machine.Warn, Origin: machine.OriginNetwork,
	Summary: "an old datagram was sent again: a replay",
	Explain: `The same datagram, with the same counter and authentication tag, was captured again more than a second later. No network holds a copy back for so long. Somebody recorded the datagram and sent it again. That it came again so late is certain.

netcode's replay window of 256 drops it, so the game does not notice. If it goes on, look for the machine on the path that sends the copies.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s, the latest %.1f s behind the first",
			machine.Count(n, "datagram replayed", "datagrams replayed"),
			worst[0]/1000,
		)
	},
}

var netcodeTooOld = &machine.Rule{
	ID: "netcode-too-old", Severity: machine.Warn, Origin: machine.OriginNetwork,
	Summary: "a datagram came 256 or more behind the newest: the replay window drops it",
	Explain: `A datagram came 256 or more numbers behind the newest one. netcode's receiver keeps the last 256 counters of a connection, to recognise replays. It drops an older datagram unread, even a genuine one. For example, after number 1,000 it drops number 744.

ackscope compares the counters in the order of the capture. The finding is certain.

At high send rates, a path that reorders by 256 datagrams or more loses packets in this way. Send fewer datagrams, or find what delays them.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, up to %.0f behind the newest", machine.Count(n, "datagram", "datagrams"), worst[0])
	},
}

var netcodeNonceReuse = &machine.Rule{
	ID: "netcode-nonce-reuse", Severity: machine.Error,
	Summary: "two different datagrams were encrypted with one counter",
	Explain: `Two different datagrams of one direction have the same counter. In netcode the counter is the nonce of the encryption, so this breaks the cipher. Anyone who sees both learns the difference of their plaintexts, and can forge more.

ackscope compares the authentication tags, which differ. The finding is certain.

Either an endpoint restarted its counter within a session, or one of the two is a forgery. A connect token that is used for a second connection keeps its keys, and so restarts the counter. Use a new token for each connection.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s a counter that another one had, the highest counter %.0f",
			machine.Count(n, "datagram with", "datagrams with"),
			worst[0],
		)
	},
}

var netcodeTokenReuse = &machine.Rule{
	ID: "netcode-token-reuse", Severity: machine.Warn,
	Summary: "a connect token was used again after its connection had begun",
	Explain: `A client used a connect token again for a second connection. A token is for one connection. The second one would have the same session keys and counters from 0 again, and so repeat nonces. A netcode server that remembers the token refuses it in silence.

ackscope recognises a request with the token of a connection that has already begun. It comes more than a second later, when a client that was answered asks no more. The finding is certain.

Have the matchmaker make a new token for each attempt to connect.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf(
			"%s with the token of a connection that began up to %.1f s before",
			machine.Count(n, "request", "requests"),
			worst[0]/1000,
		)
	},
}

// TokenExpired is found where a client asks with a token that has expired, and is not answered.
var TokenExpired = &machine.Rule{
	ID: "netcode-token-expired", Severity: machine.Warn, Absence: true, Origin: machine.OriginLibrary,
	Summary: "the client asked with a connect token that had expired, and no answer came",
	Explain: `The client asked for a connection with a connect token that had expired before its first request. No challenge came back. A netcode server ignores an expired token without a word. The client sees only a timeout.

The request holds the time at which its token expires, unencrypted and to the second. ackscope compares it with the time of capture. So the expiry is exact, and the clock is that of the capturing host. If that clock is fast by the same time or more, the token was valid and the silence has another cause: see "netcode-no-answer". The finding is likely if the token had expired a second or more before, and the client repeated the request. Otherwise it is possible. If the same server took another token that had expired as long before, the clock is the reason: see "netcode-clock-behind".

Compare the clocks of the capturing host, the server and the matchmaker. Where they agree, the client waited too long with its token, or the matchmaker makes tokens that are valid for too short a time. netcode's client stops by itself after that time, counted from when it began to connect. It does not know how old the token was by then.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("the token expired %s before the first of %s over %.1f s, by the capture's clock; "+
			"a clock that is %s fast would explain it", span(worst[0]),
			machine.Count(uint64(worst[1]), "request", "requests"), worst[2], span(worst[0]))
	},
}

// ClockBehind is found where a server takes a token that has expired. Its first figure is for how
// many seconds.
var ClockBehind = &machine.Rule{
	ID: "netcode-clock-behind", Severity: machine.Note,
	Summary: "the server took a connect token that had expired by the capture's clock",
	Explain: `The client asked with a connect token that had expired by the time of capture, and the server answered it. A netcode server compares the token with its own clock first. So its clock is behind that of the capturing host by this time at least.

The time at which the token expires travels unencrypted, so it is exact. Which of the two clocks is wrong does not show. The finding is likely: a server may also leave the check out.

Compare both clocks. A server whose clock is behind takes old tokens. One whose clock is ahead refuses valid tokens with silence: see "netcode-no-answer".`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%s, which had expired up to %s before; the server's clock is behind by that or more",
			machine.Count(n, "token", "tokens"), span(worst[0]))
	},
}
