package gaffer

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

// YojimboRules lists what a Yojimbo may report beside FindingRules and NetcodeRules.
var YojimboRules = []*machine.Rule{
	configurationInferred, tokenClosed, netcodeForged, malformedConnection, messageStuck, messageResentAcked, messageNeedless, blockSplit, blockStalled,
}

var configurationInferred = &machine.Rule{
	ID: "configuration-inferred", Severity: machine.Note,
	Summary: "how the game packs its messages was found from the packets, not given",
	Explain: `No profile says which channels the game has, their limits, its message types and their bodies, so they were searched for: the configuration under which most connection packets read to their last bit. "ackscope state" shows what was found, what the evidence is, and what stays undecided; where that says a range, the packets cannot tell more.

Give the game's own with --profiles (docs/keys.md has an example) to see messages by name, with their values.`,
	Say: func(_ uint64, worst [3]float64) string {
		types := "message types undecided"
		if worst[1] > 0 {
			types = fmt.Sprintf("at most %.0f message types", worst[1])
		}
		return fmt.Sprintf("%.0f channels, %s; %.1f%% of packets read to the last bit", worst[0], types, worst[2])
	},
}

var tokenClosed = &machine.Rule{
	ID: "netcode-token-closed", Severity: machine.Warn,
	Summary: "the connect token does not open with the keys given",
	Explain: `The flow begins with a connection request whose token no private key of the key file opens, or whose protocol id the key file does not list. Its datagrams stay encrypted, and are shown as netcode.

If the server answers all the same, the key file lacks the right key. If it stays silent, the token was made with a key that the server does not have either: look at the service that makes the tokens.`,
}

var netcodeForged = &machine.Rule{
	ID: "netcode-forged", Severity: machine.Error,
	Summary: "a datagram does not open with its session's key",
	Explain: `Other datagrams of the flow open with the session's keys, this one does not: its authentication tag is wrong. It was altered on the way, sent by somebody who does not have the key, or belongs to another session on the same addresses. A receiver drops it.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d datagrams that the session's key does not open, the highest counter %.0f", n, worst[0])
	},
}

var malformedConnection = &machine.Rule{
	ID: "malformed-connection-packet", Severity: machine.Warn,
	Summary: "a decrypted packet is no connection packet of the configuration",
	Explain: `The packet's payload cannot be read to its last bit with the flow's configuration: channels, limits, message types and bodies. yojimbo's own receiver would end the connection over it, so when the connection lives on, the configuration in the profile is not the game's. Leave it out to have it inferred.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets, the longest payload %.0f bytes", n, worst[0])
	},
}

var messageStuck = &machine.Rule{
	ID: "stuck-message", Severity: machine.Error, Absence: true,
	Summary: "a message is never sent while later ones are: the channel is stuck behind it",
	Explain: `Ids of a reliable-ordered channel are given out in order, and the receiver hands messages over in order. The sender goes on with later ids, but no packet carries this one. The usual cause: the message is larger than what the channel may put into a packet (packetBudget, or maxPacketSize less its headers), so it is passed over each time. Everything behind it arrives, is held back, and after 1,024 ids the sender stops too.

Split such messages, send them as blocks, or raise the budget.`,
	Say: func(n uint64, worst [3]float64) string {
		if worst[1] < 0 {
			return fmt.Sprintf("message %.0f is never sent; %.0f later ids are", worst[0], worst[2])
		}
		return fmt.Sprintf("message %.0f of channel %.0f is never sent; %.0f later ids are", worst[0], worst[1], worst[2])
	},
}

var messageResentAcked = &machine.Rule{
	ID: "message-resent-after-ack", Severity: machine.Warn, Resend: "ack-ignored",
	Summary: "a message was sent again although its sender had read the ack of it",
	Explain: `A packet that carried this message was acked, and a later header of the sender proves that it had read that ack. It sent the message again all the same, a quarter of a second or more later (within a frame or two that is the order of the library's calls): bandwidth for nothing. Look at how acks of packets are taken to the messages that they carried.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d messages sent again, up to %.0f ms after the ack", n, worst[0])
	},
}

var messageNeedless = &machine.Rule{
	ID: "message-resent-needlessly", Severity: machine.Note, Resend: "needless",
	Summary: "messages were sent again after the copy that arrived",
	Explain: `A reliable message is put into further packets every messageResendTime (0.1 s unless set) until one of them is acked. Where an ack takes longer than that to come back, copies leave although the first had arrived. That is the price of the article's fixed resend time: below an RTT of it plus a frame there are none. Raise the resend time towards the RTT to save the bandwidth; lower it to recover faster.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d messages, one of them in %.0f packets after the one that arrived", n, worst[0])
	},
}

var blockSplit = &machine.Rule{
	ID: "block-fragment-split", Severity: machine.Warn,
	Summary: "packets with a block fragment travel as several datagrams each",
	Explain: `A block is cut into fragments that go one to a packet, so that each is lost and resent alone. But with the library's defaults a full fragment (1,024 bytes) and its headers exceed the size above which the packet itself is fragmented (1,024 too): each block fragment travels as two datagrams, and losing either loses it. At a loss of p the loss of a fragment becomes about 2p, and the second datagram is nearly empty.

Set blockFragmentSize some 32 bytes below fragmentPacketsAbove, or raise the latter if the path's MTU allows.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d packets with a block fragment travelled as %.0f datagrams", n, worst[0])
	},
}

var blockStalled = &machine.Rule{
	ID: "block-stalled", Severity: machine.Warn,
	Summary: "a block transfer stood still",
	Explain: `For this long no fragment came that the receiver did not have already. While the oldest message of a channel is a block, nothing else of the channel is sent, so everything behind it waited too. Fragments are sent again every blockFragmentResendTime (0.25 s unless set), one to a packet: heavy loss, or packets that are fragmented themselves, make such holes.`,
	Say: func(n uint64, worst [3]float64) string {
		return fmt.Sprintf("%d blocks, the longest stood still for %.1f s with %.0f of %.0f fragments there", n, worst[0], worst[1], worst[2])
	},
}
