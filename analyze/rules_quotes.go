package analyze

import (
	"fmt"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

var icmpClosed = &machine.Rule{
	ID: "icmp-closed", Severity: machine.Note, Origin: machine.OriginLibrary, Toward: machine.TowardSide,
	Summary: "datagrams came to the side when its socket was closed",
	Explain: `An ICMP error came back for a datagram to this side, from the address that the datagram was sent to. It quotes the beginning of the datagram.

"Port unreachable" means that the host runs, and no socket is open on the port. That is normal where a connection ends: one side closes its socket, and the last datagrams of its peer are still on their way. Where the peer goes on for a second, see "icmp-refused". A firewall on the host can say the same. "Administratively prohibited" is the word of a firewall.

The finding is certain where the quote agrees with a captured datagram of the flow in what nobody can guess who did not see it: the IP identification, the UDP checksum, or the first bytes of the payload. It is likely where the quote is too short for that. It is only possible where no captured datagram fits, since anybody can send an ICMP error.

Hosts and routers limit how many ICMP errors they send. Linux sends one a second to an address, after a few at once. So the count does not say how many datagrams were refused.`,
	Say: sayRefused,
}

var icmpRefused = &machine.Rule{
	ID: "icmp-refused", Severity: machine.Warn, Origin: machine.OriginLibrary, Toward: machine.TowardSide,
	Summary: "the side's own host refused datagrams, and the peer went on to send",
	Explain: `ICMP errors said that no socket of this side is open for the peer's datagrams, as "icmp-closed" describes. The peer went on to send for a second or more after the first one. So the game of this side had ended, crashed or not yet started, and its peer did not know that.

The finding is graded as "icmp-closed" is.

Look at whether the process of this side was still running at that time, and whether it said goodbye. A game may end a connection early at such errors, but only after several, for they can be forged.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("the peer went on for %.1f s after the first of %s, such as %q", worst[0],
			machine.Count(uint64(worst[1]), "ICMP error", "ICMP errors"), capture.Reason(worst[2]).String())
	},
}

// sayRefused formats errors by their number and the last of their reasons.
func sayRefused(n uint64, worst [3]float64) string {
	return fmt.Sprintf("%s, such as %q", machine.Count(n, "ICMP error", "ICMP errors"), capture.Reason(worst[0]).String())
}

var icmpUnreachable = &machine.Rule{
	ID: "icmp-unreachable", Severity: machine.Warn, Origin: machine.OriginNetwork,
	Summary: "a router or firewall says that it cannot deliver datagrams of the side",
	Explain: `An ICMP error came back for a datagram of the side, from an address on the way. It quotes the beginning of the datagram.

"Host unreachable" means that the peer's host did not answer on its network: it is off, asleep, or its address is wrong. "Network unreachable" means that a router has no route. "Administratively prohibited" is the word of a firewall. Some firewalls say "port unreachable" instead.

The finding is graded as "icmp-closed" is: certain where the quote agrees with a captured datagram, and only possible where none fits.

Where such errors come and go, a route on the way changes. Where they stay, look at the peer's network and at the firewall whose address sent the error: "ackscope packets -Y icmp.reason" lists them.`,
	Say: sayRefused,
}

var icmpMTU = &machine.Rule{
	ID: "icmp-mtu", Severity: machine.Warn, Origin: machine.OriginNetwork,
	Summary: "an ICMP error says that a packet of the side was too big for the path",
	Explain: `A router on the way to the peer could not forward a packet of the side: it was larger than the next link carries, and routers may not fragment it. The ICMP error names the MTU of that link. IPv4 calls it "fragmentation needed", IPv6 "packet too big".

The quoted packet is lost. All later packets above that size are lost too, unless the host of the side learns from the error. Then it fragments them itself, or refuses to send them. See "ip-fragmented" and "large-lost".

The finding is graded as "icmp-closed" is. A forged error of this kind makes a host send small packets.

The MTU includes the headers: take off 28 bytes for IPv4 and UDP, or 48 for IPv6 and UDP. Send no payload above that, and split larger packets in the protocol. A limit of 1,200 bytes passes nearly every path.`,
	Say: func(n uint64, worst [3]float64) string {
		errors := machine.Count(n, "ICMP error", "ICMP errors")
		if worst[1] == 0 {
			return fmt.Sprintf("%s; the largest packet had %.0f bytes, and the MTU is not said", errors, worst[0])
		}
		return fmt.Sprintf("%s; the largest packet had %.0f bytes, and the link carries %.0f", errors, worst[0], worst[1])
	},
}

var icmpExpired = &machine.Rule{
	ID: "icmp-expired", Severity: machine.Warn, Origin: machine.OriginNetwork,
	Summary: "an ICMP error says that a datagram of the side expired on its way",
	Explain: `An ICMP error of the kind "time exceeded" came back for a datagram of the side.

"Time to live exceeded" means that the datagram passed as many routers as its TTL allows: routers send it in a circle, or the game sets a very small TTL. "Fragment reassembly time exceeded" comes from the peer's host: some fragments of a large datagram never arrived, so the whole datagram is lost.

The finding is graded as "icmp-closed" is. A tool such as traceroute that uses the game's ports causes such errors on purpose.

For circles, ask the provider. For fragments, see "ip-fragmented": send smaller datagrams.`,
	Say: sayRefused,
}

var largeLost = &machine.Rule{
	ID: "large-lost", Severity: machine.Warn, Absence: true, Toward: machine.TowardPeer,
	Summary: "large packets of the side are lost, and small ones arrive",
	Explain: `An ICMP error named the MTU of a link on the way, and since then the side's datagrams above that size were lost far more often than those below. The path drops large packets, and the side goes on to send them. A message that fits only into a large packet never arrives.

ackscope counts datagrams from the first such error on: those that the peer acked, and those that it can no longer ack. Five large ones or more were lost, and the lower end of the 95 % interval of their loss is above the loss of the small ones. The finding is likely: size explains the difference, though other reasons may.

Lower the size above which the protocol splits its packets: see "icmp-mtu".`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("%.0f%% of the packets with more than %.0f bytes of payload were lost, and %.0f%% of the others",
			worst[0], worst[2], worst[1])
	},
}

var socketPoisoned = &machine.Rule{
	ID: "socket-poisoned", Severity: machine.Warn, Origin: machine.OriginCode, Absence: true,
	Summary: "the side fell silent in several flows when an ICMP error about another client reached it",
	Explain: `An ICMP error about one client reached the socket of the side. From then on the side sent nothing for two seconds, in this flow and in every other active flow of the same socket, though their clients went on. The error most likely ended or blocked the loop that serves all clients: one dead client stalls the others.

Systems report an ICMP error at the next call on the socket. Windows returns WSAECONNRESET (10054) from recvfrom, even on a socket that serves many clients. Linux returns ECONNREFUSED on a connected socket, and on others that set IP_RECVERR. A loop that ends at an error of recvfrom, or waits after one, then serves nobody.

The finding is likely from three silent flows on, if the quote fits a captured datagram. Otherwise it is possible. Something else may have stopped the process at that moment.

Treat these errors as no data, and go on reading. On Windows, turn SIO_UDP_CONNRESET off. The frame of the finding is that of the ICMP error.`,
	Say: func(_ uint64, worst [3]float64) string {
		return fmt.Sprintf("%.0f flows of its socket fell silent at an ICMP error about flow %.0f", worst[0], worst[1])
	},
}
