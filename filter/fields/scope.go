package fields

import (
	"slices"
	"strings"

	"github.com/ackscope/ackscope/filter"
)

// scopeOf returns what a field describes.
func scopeOf(f *filter.Field) filter.Scope {
	first, _, _ := strings.Cut(f.Name, ".")
	switch {
	case slices.Contains([]string{"frame.number", "frame.time", "frame.time_epoch", "frame.file"}, f.Name):
		return filter.OfMoment
	case slices.Contains([]string{
		"ip.src", "ip.dst", "ip.addr", "ipv6.src", "ipv6.dst", "ipv6.addr",
		"udp.port", "udp.srcport", "udp.dstport", "tcp.port", "tcp.srcport", "tcp.dstport", "flow.side",
	}, f.Name):
		return filter.OfAddress
	case first == "finding" || f.Name == "rel.resend.cause":
		return filter.OfFinding
	case first == "flow" || f.Name == "udp.stream" || f.Name == "tcp.stream" || f.Of != nil && f.Name == f.Of.Name:
		return filter.OfFlow
	case first == "rel":
		return filter.OfEvent
	case f.Needs&filter.NeedMessages != 0:
		return filter.OfMessage
	}
	return filter.OfPacket
}
