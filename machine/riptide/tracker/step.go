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
	behind bool // a hole in its stream: it has not reached its receiver
	gaps   bool // the capture lacks bytes of the connection's streams
}

// step holds one message while it is processed: where it passed the tap, its contents, its two
// sides and the effects.
type step struct {
	sighting
	m    *wire.Message
	beat riptide.Beat // for a heartbeat: its role
	own  *side        // the sender
	peer *side        // the receiver
	out  *machine.Effects
}

// pastStep returns a step for reporting what an earlier frame shows. It has no message.
func pastStep(at machine.Instant, ref machine.Ref, out *machine.Effects) *step {
	return &step{sighting: sighting{at: at, ref: ref}, out: out}
}
