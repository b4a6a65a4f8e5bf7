package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// When an ack that stands still is worth a word. Heavy loss away from the tap can hold an
// ack for some packets, and a frame that hangs can hold it for some time.
const (
	// frozenPackets is how many packets of the peer must have passed the tap since.
	// Source: definition, ack-frozen: 64 packets of the peer have passed the tap since
	frozenPackets = 64
	// frozenHeaders is how many headers of the side must have repeated the ack.
	// Source: definition, ack-frozen: 16 headers have repeated the ack
	frozenHeaders = 16
	// frozenLeast is for how long the ack must have stood still.
	// Source: definition, ack-frozen: the ack has stood still for a second
	frozenLeast = time.Second
)

// standing is for how long the headers of a side have acked nothing new. For example, a
// header acks 65534, and the next 500 headers say the same while packets 0 to 499 pass.
type standing struct {
	claims  gaffer.Claims // of the last header that acked something new
	at      machine.Instant
	ref     machine.Ref
	heard   uint64 // packets of the peer that had passed the tap by then
	repeats uint64 // headers since
}

// checkStanding reports a header that still acks nothing new, once the peer has sent much.
// It is called for each header that is newer than the side's newest one.
func (t *Tracker) checkStanding(s, peer *side, p *sighting, c gaffer.Claims, out *machine.Effects) {
	f := &s.standing
	if f.ref == 0 || c.Newest != f.claims.Newest || c.Named&^f.claims.Named != 0 {
		// Field by field: a literal would be built elsewhere and copied.
		f.claims, f.at, f.ref, f.heard, f.repeats = c, p.at, p.ref, peer.sent.distinct, 0
		return
	}
	f.repeats++
	came := peer.sent.distinct - f.heard
	if f.repeats < frozenHeaders || came < frozenPackets || p.at.Sub(f.at) < frozenLeast {
		return
	}
	since := gaffer.FrozenAt
	switch {
	case c.Nothing(t.rules):
		since = gaffer.FrozenEver
	case t.rules.Newer(c.Newest, peer.sent.top):
		since = gaffer.FrozenAhead
	case int(t.rules.Mask()-c.Newest) < c.Width:
		since = gaffer.FrozenWrap
	}
	sure := s.known()
	if t.facts.Supposed[s.side] {
		sure = machine.Likely // its packets may have been lost between the tap and the side
	}
	out.At(p.at, p.ref).Report(gaffer.AckFrozen, p.from, sure, f.ref, float64(came), float64(c.Newest), float64(since))
}
