package analyze

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

const (
	relaySlots = 1 << 11
	// relayWindow is how long after a message came to an endpoint the same one can
	// leave it again and count as passed on: a frame of the application, generously.
	relayWindow = 250 * time.Millisecond
)

// relays remembers what came to endpoints lately, each message in the one slot
// that its hash chooses, so as to tell what they pass on in other flows.
type relays struct {
	slots *[relaySlots]relayed
}

// relayed is a message that came to an endpoint.
type relayed struct {
	key  uint64 // of the endpoint and what the message says
	at   machine.Instant
	ref  machine.Ref
	flow int
}

func relayKey(at endpointKey, hash uint64) uint64 {
	h := hash
	for _, word := range [...]uint64{at.hi, at.lo, uint64(at.port)} {
		h = (h ^ word) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	return h
}

// note takes what the messages of a step say.
func (r *relays) note(f *Flow, contents []machine.Content) {
	for i := range contents {
		c := &contents[i]
		from, to := f.origin, f.answer
		if c.From == machine.B {
			from, to = to, from
		}
		if r.slots == nil {
			r.slots = new([relaySlots]relayed)
		}
		key := relayKey(from, c.Hash)
		if x := &r.slots[key%relaySlots]; x.key == key && x.flow != f.ID && c.At >= x.at && c.At.Sub(x.at) < relayWindow {
			f.gather.add(&machine.Anomaly{Rule: c.Rule, Side: c.From, Certainty: machine.Likely, At: c.At, Ref: c.Ref,
				About: x.ref, Figures: [3]float64{float64(c.Number)}})
		}
		key = relayKey(to, c.Hash)
		r.slots[key%relaySlots] = relayed{key, c.At, c.Ref, f.ID}
	}
}
