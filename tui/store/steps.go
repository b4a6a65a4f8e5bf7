package store

import "github.com/ackscope/ackscope/analyze"

// Budget bounds what a key or a drawing does on the UI's thread, whatever the length of
// the capture: by the screen, and by a share of steps. What takes longer goes on in the
// background, a share at a time:
//
//	10000000]   steps along a flow of a million packets: the first share at once,
//	            the others beside the drawing; any key that moves on ends it
//
// A step is a look at an entry of the index, some nanoseconds; what costs more counts as
// more steps.
type Budget struct {
	Share int // steps that a key or a drawing may take
	Spent int // of them, since Turn
	Walks int // datagrams that are stepped over at once to tell a state
}

const (
	shareSteps = 1 << 20 // at 10 ns a step 10 ms: a fifth of what a user notices
	// ReadSteps is what it costs to read a frame from the file and decode it: some µs.
	ReadSteps = 256
	// MatchSteps is what it costs to ask a filter about what is in memory, or to word
	// a row.
	MatchSteps = 32
	// FlowsAtOnce is how many flows are gone through at once: their figures cost
	// about as much as a match each.
	FlowsAtOnce = 4096
)

// Turn begins what a key, a click or a drawing may spend.
func (b *Budget) Turn() { b.Spent = 0 }

// Spend counts steps; false once the share is spent. The step that spends the last
// of it is still done.
func (b *Budget) Spend(steps int) bool {
	b.Spent += steps
	return b.Spent <= b.Share
}

// StepResult says how a look for another entry ended.
type StepResult uint8

// The ways in which it ends.
const (
	StepFound StepResult = iota
	StepEnd              // there is none
	StepLater            // the share was spent: it goes on from there
)

// Beside returns the flow's entry after n, or before it where way is below 0. Where
// the share is spent first it gives the entry from which to go on.
func (s *Store) Beside(f *analyze.Flow, n, way int) (int, StepResult) {
	last, ok := s.timeline.Last(f)
	if !ok {
		return n, StepEnd
	}
	if way < 0 && n < s.Len() && n >= 0 && s.timeline.FlowID(n) == f.ID {
		// The index links an entry to the one before it of its flow.
		before, ok := s.timeline.Previous(n)
		switch {
		case !ok:
			return n, StepEnd
		case !s.Spend(1):
			return n, StepLater
		}
		return before, StepFound
	}
	from := n + way
	if way < 0 {
		from = min(from, last)
	}
	for at := from; at >= 0 && at <= last; at += way {
		if !s.Spend(1) {
			return at - way, StepLater
		}
		if s.timeline.FlowID(at) == f.ID {
			return at, StepFound
		}
	}
	return n, StepEnd
}
