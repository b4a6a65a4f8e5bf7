package tracker

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// sighting is one message as it passed the tap.
type sighting struct {
	at     machine.Instant
	ref    machine.Ref
	from   machine.Side
	bytes  []byte
	length int
	behind bool // a hole in its stream: it has not come to its receiver
}

// step is the taking of one message: what passed the tap, what it says, whom it
// concerns, and where goes what follows from it.
type step struct {
	sighting
	m    *wire.Message
	beat riptide.Beat // what a heartbeat is
	own  *side        // who sent it
	peer *side        // to whom it goes
	out  *machine.Effects
}

// pastStep returns the step of telling what a frame that has passed before shows: it takes
// no message.
func pastStep(at machine.Instant, ref machine.Ref, out *machine.Effects) *step {
	return &step{sighting: sighting{at: at, ref: ref}, out: out}
}
