package analyze

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
)

var rebound = &machine.Rule{
	ID: "rebound", Severity: machine.Note, Origin: machine.OriginNetwork,
	Summary: "the side changed its address: the flow continues another one",
	Explain: `The side took part in another flow before, and goes on here from another address or port. Both flows are one connection of one player. A NAT that forgets a mapping causes this: it gives the next packet another port. So does a phone that leaves one network for another.

ackscope compares a flow that shows no beginning with the flows of the same server whose other side fell silent just before. Packet numbers must go on, and acks must name packets of the earlier flow. The finding is certain where keys prove it: the datagrams open with the session keys of the earlier flow. It is likely where an unrelated flow fits as well in at most 1 % of the cases, and possible up to 10 %. "ackscope flows -V" says what fits, and that chance.

A library that knows its peers by their addresses does not follow: netcode, yojimbo and Riptide drop what comes from an unknown address. The player then times out, and connects again. See "ghost". Send something at least every 15 seconds so that NATs keep the mapping, and let the game reconnect soon.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("it went on here %s after its last packet in flow %.0f", seconds(worst[1]), worst[0])
	},
}

var ghost = &machine.Rule{
	ID: "ghost", Severity: machine.Warn, Origin: machine.OriginLibrary,
	Summary: "the side went on to send to an address that its peer had left",
	Explain: `The peer changed its address, and another flow shows it there. For a second or more after that, the side went on to send to the old address. Nobody reads those datagrams: to the other players the peer is a ghost, until the side's timeout ends it.

The finding is as certain as the one that joins the two flows: see "rebound". It counts from the peer's first packet at the new address to the side's last packet to the old one.

The side's library knows its peers by their addresses. Shorten its timeout. Or have the server move a connection to a new address once a packet from there is authenticated with the connection's keys.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("for %s after its peer had moved to flow %.0f", seconds(worst[0]), worst[1])
	},
}

// seconds formats a time, in ms if it is short.
func seconds(x float64) string {
	if x < 1 {
		return fmt.Sprintf("%.0f ms", 1000*x)
	}
	return fmt.Sprintf("%.1f s", x)
}
