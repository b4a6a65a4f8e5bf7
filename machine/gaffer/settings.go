package gaffer

import (
	"cmp"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TapJitter is the time within which a capture may record frames of the two directions
// in the wrong order.
// Source: measured, TestMarginsGaffer
const TapJitter = time.Millisecond

// assumedBuffer is how many entries a buffer of unknown size is assumed to have. What
// rests on its size is likely at most.
// Source: unmeasured, what rests on the size is likely at most
const assumedBuffer = 1024

// assumedPartial is how many packets can be in reassembly where the profile does not say.
// Source: library, reliable 1.4.0: fragment_reassembly_buffer_size
const assumedPartial = 64

// RulesOf returns the rules that a profile states.
func RulesOf(p *wire.Profile) *Rules {
	r := StatedRules(p)
	return &r
}

// StatedRules is RulesOf without memory of its own: a capture can have very many flows.
func StatedRules(p *wire.Profile) Rules {
	assumed := min(assumedBuffer, 1<<(p.Space()-1))
	r := Rules{
		SequenceBits:      p.Space(),
		AckBits:           p.AckBitsWidth(),
		AckBelow:          p.AckBase == wire.AckMinusNMinusOne,
		Sent:              cmp.Or(p.SentBuffer, assumed),
		SentUnknown:       p.SentBuffer == 0,
		Received:          cmp.Or(p.ReceiveWindow, assumed),
		ReceivedUnknown:   p.ReceiveWindow == 0,
		DeliverDuplicates: p.Duplicates == wire.Delivered,
		DuplicatesUnknown: p.Duplicates == wire.RuleUnknown,
		DeliverStale:      p.Stale == wire.Delivered,
		ZeroedAckBits:     p.ZeroedAckBits,
		FragmentsWait:     p.FragmentsWait,
	}
	if p.Fragments == wire.FragmentsReliable {
		r.Partial = cmp.Or(p.ReassemblyBuffer, assumedPartial)
	}
	return r
}

// Refs returns the given frames without zeros. A zero Ref is no frame.
func Refs(list ...machine.Ref) (out []machine.Ref) {
	for _, r := range list {
		if r != 0 {
			out = append(out, r)
		}
	}
	return out
}

// IsSample reports whether a profile describes one of the article series' programs that
// do not acknowledge packets: large blocks, fragments or connections.
func IsSample(p *wire.Profile) bool {
	return p.Slices > 0 || IsPieces(p) || p.Handshake
}

// IsPieces reports whether a profile describes the fragmentation sample.
func IsPieces(p *wire.Profile) bool {
	return p.Fragments == wire.FragmentsArticle && !p.HasAcks() && p.SequenceBits() > 0
}
