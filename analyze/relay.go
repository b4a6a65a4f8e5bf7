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
	// apart has the findings while other goroutines write to those of the flows.
	apart map[*Flow]*findingList
}

// relayed is a message that reached an endpoint.
type relayed struct {
	key  uint64 // of the endpoint and the contents of the message
	at   machine.Instant
	ref  machine.Ref
	flow *Flow
}

func relayKey(at endpointKey, hash uint64) uint64 {
	h := hash
	for _, word := range [...]uint64{at.hi, at.lo, uint64(at.port)} {
		h = (h ^ word) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	return h
}

// note checks and records a message of a step.
func (r *relays) note(f *Flow, c *machine.Content) {
	from, to := f.origin, f.answer
	if c.From == machine.B {
		from, to = to, from
	}
	if r.slots == nil {
		r.slots = new([relaySlots]relayed)
	}
	key := relayKey(from, c.Hash)
	if x := &r.slots[key%relaySlots]; x.key == key && x.flow != f && c.At >= x.at && c.At.Sub(x.at) < relayWindow {
		r.findings(f).add(&machine.Anomaly{
			Rule: c.Rule, Side: c.From, Certainty: machine.Likely, At: c.At, Ref: c.Ref,
			About: x.ref, Figures: [3]float64{float64(c.Number)},
		})
	}
	key = relayKey(to, c.Hash)
	r.slots[key%relaySlots] = relayed{key, c.At, c.Ref, f}
}

// findings returns the list for the findings of a flow.
func (r *relays) findings(f *Flow) *findingList {
	if r.apart == nil {
		if f.findings == nil {
			f.findings = &findingList{}
		}
		return f.findings
	}
	x := r.apart[f]
	if x == nil {
		x = &findingList{}
		r.apart[f] = x
	}
	return x
}

// settle gives the flows their findings. Nothing else reports the rules of relayed messages.
func (r *relays) settle() {
	for f, x := range r.apart {
		f.findings = &findingList{append(f.findings.all(), x.list...)}
	}
	r.apart = nil
}
