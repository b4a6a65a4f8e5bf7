package store

import "github.com/ackscope/ackscope/analyze"

// Budget limits the work of one key or one drawing on the UI's thread, however
// long the capture is. The screen's size limits it, and a share of steps.
// Longer work continues in the background, share by share:
//
//	10000000]   steps along a flow of a million packets: the first share at once,
//	            the others beside the drawing; any key that moves on ends it
//
// A step examines one entry of the index, which takes some nanoseconds. Work
// that costs more counts as more steps.
type Budget struct {
	Share int // steps that a key or a drawing may take
	Spent int // steps taken since Turn
	Walks int // datagrams that may be stepped over at once to compute a state
}

const (
	shareSteps = 1 << 20 // 10 ms at 10 ns a step: a fifth of what a user notices
	// ReadSteps is the cost of reading and decoding a frame: some µs.
	ReadSteps = 256
	// MatchSteps is the cost of applying a filter to a record in memory, or of
	// formatting a row.
	MatchSteps = 32
	// FlowsAtOnce is how many flows are examined at once. The figures of a flow
	// cost about as much as one match.
	FlowsAtOnce = 4096
)

// Turn resets the budget for the next key, click or drawing.
func (b *Budget) Turn() { b.Spent = 0 }

// Spend counts steps. It returns false when the share is spent. The step that
// exceeds the share is still taken.
func (b *Budget) Spend(steps int) bool {
	b.Spent += steps
	return b.Spent <= b.Share
}

// StepResult is how a search for another entry ended.
type StepResult uint8

// The results of a step.
const (
	StepFound StepResult = iota
	StepEnd              // there is no such entry
	StepLater            // the share was spent: the search can continue from the returned entry
)

// Beside returns the flow's next entry after n, or the previous one if way is
// negative. If the share is spent first, it returns the entry to continue from.
func (s *Store) Beside(f *analyze.Flow, n, way int) (int, StepResult) {
	last, ok := s.timeline.Last(f)
	if !ok {
		return n, StepEnd
	}
	if way < 0 && n < s.Len() && n >= 0 && s.timeline.FlowID(n) == f.ID {
		// The index links an entry to the flow's previous entry.
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
