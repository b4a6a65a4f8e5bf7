package capture

import "strconv"

// Link types that the Decoder decodes, by their LINKTYPE_ numbers.
const (
	LinkNull     = 0   // BSD loopback: address family in the byte order of the capturing host
	LinkEthernet = 1   //
	LinkRaw12    = 12  // raw IP, the number of some systems
	LinkRaw14    = 14  // raw IP, the number of OpenBSD
	LinkRaw      = 101 // raw IP
	LinkLoop     = 108 // OpenBSD loopback: address family in network byte order
	LinkSLL      = 113 // Linux cooked capture
	LinkIPv4     = 228
	LinkIPv6     = 229
	LinkSLL2     = 276 // Linux cooked capture, version 2
)

// LinkTypeName returns the name of a link type: "Ethernet" for 1. For a number
// that the Decoder does not know it returns "link type N".
func LinkTypeName(t uint32) string {
	switch t {
	case LinkNull:
		return "BSD loopback"
	case LinkEthernet:
		return "Ethernet"
	case LinkRaw12, LinkRaw14, LinkRaw:
		return "raw IP"
	case LinkLoop:
		return "OpenBSD loopback"
	case LinkSLL:
		return "Linux cooked v1"
	case LinkIPv4:
		return "raw IPv4"
	case LinkIPv6:
		return "raw IPv6"
	case LinkSLL2:
		return "Linux cooked v2"
	}
	return "link type " + strconv.FormatUint(uint64(t), 10)
}
