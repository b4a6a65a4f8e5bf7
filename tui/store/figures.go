package store

import (
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/scale"
)

// trafficCells is how many stretches of time a flow's traffic is counted in.
const trafficCells = 24

// figures is what the screens tell of a flow beyond its summary.
type figures struct {
	worst   time.Duration // longest that a message lay complete and was held back
	traffic [trafficCells]uint32
}

func (s *Store) figuresOf(flow int) *figures {
	x := s.figures[flow]
	if x == nil {
		x = &figures{}
		s.figures[flow] = x
	}
	return x
}

// stretch says in which part of the capture an instant lies.
func (s *Store) stretch(at machine.Instant) int {
	return scale.Position(at, s.first, s.last, trafficCells)
}

// Worst returns how long a message of a flow lay complete and was held back, at most.
func (s *Store) Worst(f *analyze.Flow) time.Duration {
	if x := s.figures[f.ID]; x != nil {
		return x.worst
	}
	return 0
}

// Traffic counts a flow's packets in equal stretches of the capture's time; nil while
// the end of the capture is not known.
func (s *Store) Traffic(f *analyze.Flow) []uint32 {
	x := s.figures[f.ID]
	if x == nil || s.growing && s.pass == 1 {
		return nil
	}
	return x.traffic[:]
}
