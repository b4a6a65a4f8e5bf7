package netcode

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

// Rules lists every rule that the netcode and yojimbo trackers may report, in addition
// to gaffer.FindingRules.
var Rules = []*machine.Rule{
	netcodeDenied, netcodeNoAnswer, netcodeTimeout, netcodeLoss, netcodeDuplicate, netcodeReplayed, netcodeTooOld,
	netcodeNonceReuse, netcodeTokenReuse,
}

var netcodeDenied = &machine.Rule{
	ID: "netcode-denied", Severity: machine.Warn,
	Summary: "the server denied the connection",
	Explain: `The server answered a connection request with "denied". netcode does so for one reason: all of its slots are taken. (A token that is wrong, expired or used already is met with silence.)`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d connections denied, the slowest answer after %.0f ms", n, worst[0])
	},
}

var netcodeNoAnswer = &machine.Rule{
	ID: "netcode-no-answer", Severity: machine.Warn, Absence: true,
	Summary: "the server met every connection request with silence",
	Explain: `The client repeated its connection request and nothing came back. That is how a netcode server meets a token that it cannot use: made with another private key or for another protocol id, expired, used already from elsewhere, or without the address in it by which this server knows itself. A server that is down, or a path that drops requests of 1,078 bytes, looks the same.

With the server's private key (--keys) the token can be looked at: whether it opens, for which servers it is, when it expires.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("%.0f connection requests over %.1f s, and no answer", worst[0], worst[1])
	},
}

var netcodeTimeout = &machine.Rule{
	ID: "netcode-timeout", Severity: machine.Warn, Absence: true,
	Summary: "one side fell silent without a disconnect, while the other went on",
	Explain: `A netcode endpoint that is alive sends at least a keep-alive every 0.1 s, and says goodbye with ten disconnect datagrams. This one stopped without either: its process died, its network went away, or what it sent no longer reached the tap. The other side keeps sending until its timeout.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("silent for the last %.1f s of the connection", worst[0])
	},
}

var netcodeLoss = &machine.Rule{
	ID: "netcode-loss", Severity: machine.Note, Absence: true,
	Summary: "datagrams of this side were lost before the tap, by netcode's counter",
	Explain: `netcode numbers the datagrams of a connection one by one, and the number travels in the clear. Numbers that never passed the tap are datagrams that were lost on their way to it (or by the capture). What is lost behind the tap does not show here: that takes keys, and the acks inside.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("%.0f datagrams never passed the tap, %.1f%% of those sent", worst[0], worst[1])
	},
}

var netcodeDuplicate = &machine.Rule{
	ID: "netcode-duplicate", Severity: machine.Note,
	Summary: "the network delivered a datagram twice",
	Explain: `The same datagram passed the tap again within a second, as networks do at times. netcode's replay window drops the copy before decryption, so nothing above it notices.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d copies, the latest %.0f ms behind the first", n, worst[0])
	},
}

var netcodeReplayed = &machine.Rule{
	ID: "netcode-replay", Severity: machine.Warn,
	Summary: "an old datagram was sent again: a replay",
	Explain: `The very same datagram, encrypted tag and all, passed the tap again more than a second later. No network holds a copy back for so long; somebody recorded it and sent it again. netcode's replay window of 256 drops it.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d datagrams replayed, the latest %.1f s behind the first", n, worst[0]/1000)
	},
}

var netcodeTooOld = &machine.Rule{
	ID: "netcode-too-old", Severity: machine.Warn,
	Summary: "a datagram came more than 256 behind the newest: the replay window drops it",
	Explain: `netcode's receiver keeps the last 256 counters of a connection to tell replays. A datagram from before that is dropped unread, even if it is genuine: at high send rates a path that reorders by more than 256 datagrams loses packets so.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d datagrams, up to %.0f behind the newest", n, worst[0])
	},
}

var netcodeNonceReuse = &machine.Rule{
	ID: "netcode-nonce-reuse", Severity: machine.Error,
	Summary: "two different datagrams were encrypted with one counter",
	Explain: `The counter of a netcode datagram is the nonce of its encryption. Two datagrams of one direction with the same counter and different contents break the cipher: who sees both learns the difference of their plaintexts, and can forge more. Either an endpoint restarted its counter within a session (a connect token used for a second connection keeps its keys), or one of the two is a forgery.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d datagrams with a counter that another one had, the highest counter %.0f", n, worst[0])
	},
}

var netcodeTokenReuse = &machine.Rule{
	ID: "netcode-token-reuse", Severity: machine.Warn,
	Summary: "a connect token was used again after its connection had ended",
	Explain: `A connect token is for one connection. The same token, hence the same session keys and counters from 0 again, would repeat nonces; a netcode server that remembers the token refuses it in silence. Have the matchmaker make a new token for each attempt to connect.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d requests with the token of a connection that ended up to %.1f s before", n, worst[0]/1000)
	},
}
