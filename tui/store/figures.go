package store

import (
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/scale"
)

// trafficCells is the number of equal spans of time in which a flow's packets
// are counted.
const trafficCells = 24

// figures holds what the screens show about a flow besides its summary.
type figures struct {
	worst   time.Duration // longest time that a complete message was held back
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

// stretch returns the span of the capture's time that contains an instant,
// counted from 0.
func (s *Store) stretch(at machine.Instant) int {
	return scale.Position(at, s.first, s.last, trafficCells)
}

// Worst returns the longest time that a complete message of a flow was held
// back.
func (s *Store) Worst(f *analyze.Flow) time.Duration {
	if x := s.figures[f.ID]; x != nil {
		return x.worst
	}
	return 0
}

// Traffic returns a flow's packets in each of 24 equal spans of the capture's
// time. It returns nil while a growing capture has no known end.
func (s *Store) Traffic(f *analyze.Flow) []uint32 {
	x := s.figures[f.ID]
	if x == nil || s.growing && s.pass == 1 {
		return nil
	}
	return x.traffic[:]
}
