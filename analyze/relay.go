package analyze

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

const (
	relaySlots = 1 << 11
	// A message that reaches an endpoint and leaves it within relayWindow counts
	// as relayed. The limit is a generous one for one frame of the application.
	relayWindow = 250 * time.Millisecond
)

// relays remembers messages that recently reached endpoints, to recognise those
// that an endpoint relays in other flows. The hash of a message selects its
// slot.
type relays struct {
	slots *[relaySlots]relayed
}

// relayed is a message that reached an endpoint.
type relayed struct {
	key  uint64 // of the endpoint and the contents of the message
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

// note checks and records the messages of a step.
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
			f.addFinding(&machine.Anomaly{
				Rule: c.Rule, Side: c.From, Certainty: machine.Likely, At: c.At, Ref: c.Ref,
				About: x.ref, Figures: [3]float64{float64(c.Number)},
			})
		}
		key = relayKey(to, c.Hash)
		r.slots[key%relaySlots] = relayed{key, c.At, c.Ref, f.ID}
	}
}
