package messages

import (
	"math"

	"github.com/ackscope/ackscope/machine"
)

// Receipt bounds when a side accepted a packet. A tracker of packets has one for each
// EventReceived. Of messages, it is about the packet that brought the missing part.
type Receipt struct {
	Read     machine.Span // when the side's library read the packet
	Estimate machine.Span // a narrower span of that, where both ways take equally long
	// Covered is the oldest packet, unwrapped, that the header covers which proves the receipt.
	// Older ones may have been read before it, though no header names them. It is NothingOlder
	// where the tap shows all that the side read.
	Covered int64
}

// NothingOlder is the value of Receipt.Covered where the tap shows all that a side read.
// Source: name, no older packet counts
const NothingOlder = math.MinInt64

// none is the receipt of nothing: any other one is later.
var none = Receipt{
	Read:     machine.At(math.MinInt64, machine.Certain),
	Estimate: machine.At(math.MinInt64, machine.Certain),
}

// of returns the receipt of something that a packet carried, of event e. It was first sent with
// another packet, sequence, at first, and may have come with that one. The packet was whole when
// its last datagram passed the tap, at whole.
func (r Receipt) of(e *machine.Event, sequence uint32, first, whole machine.Instant) Receipt {
	if r.Covered == NothingOlder || !r.Read.Known() {
		return r
	}
	from := max(r.Read.From, whole)
	if number := e.Sequence64 + int64(int16(sequence-e.Sequence)); number < r.Covered && sequence != e.Sequence {
		from = first // the header covers only the packets since, and says nothing of that one
	}
	r.Read.From = min(from, r.Read.To)
	return r
}

// atMost returns r with no higher certainty than c.
func (r Receipt) atMost(c machine.Certainty) Receipt {
	r.Read.Certainty, r.Estimate.Certainty = min(r.Read.Certainty, c), min(r.Estimate.Certainty, c)
	return r
}

// with returns when all is received that r and o bound.
func (r Receipt) with(o Receipt) Receipt {
	return Receipt{Read: later(r.Read, o.Read), Estimate: later(r.Estimate, o.Estimate)}
}

func later(a, b machine.Span) machine.Span {
	return machine.Span{From: max(a.From, b.From), To: max(a.To, b.To), Certainty: min(a.Certainty, b.Certainty)}
}

// shown returns a span as messages have it: the zero value where it is unknown.
func shown(s machine.Span, most machine.Certainty) machine.Span {
	if s.Certainty = min(s.Certainty, most); s.Certainty == machine.Unknown {
		return machine.Span{}
	}
	return s
}
