package unit

import "time"

// State is what became of a capture, in one word.
type State string

// The states. Where several hold, the later one of this list is told.
const (
	OK         State = "ok"         // it was read to its end
	Bounded    State = "bounded"    // Status.Bound was reached; its rows are those of what was read
	Cut        State = "cut"        // it ends inside a record; its rows are those up to there
	Damaged    State = "damaged"    // a record cannot be read; its rows are those up to there
	Unreadable State = "unreadable" // it cannot be read from its start; it has no rows
	Panicked   State = "panic"      // the analysis panicked: Status.Stack; it has no rows
)

// States returns all states.
func States() []State { return []State{OK, Bounded, Cut, Damaged, Unreadable, Panicked} }

// Bound is an option of the analysis that was reached.
type Bound string

// The bounds. Where several were reached, the later one of this list is told.
const (
	NoBound      Bound = ""
	BoundMemory  Bound = "memory"  // flows ended early, or rows were left out
	BoundPackets Bound = "packets" // the frames behind Options.Packets were not read
	BoundTime    Bound = "time"    // the frames behind some frame were not read; another run may get further
)

// Status is what became of a capture. Its JSON form is stable.
type Status struct {
	Capture string `json:"capture"`
	State   State  `json:"state"`
	Bound   Bound  `json:"bound,omitempty"` // also where State is another
	Error   string `json:"error,omitempty"` // what is wrong with the capture, in words
	// Stack is that of a panic, without what differs from run to run.
	Stack string `json:"stack,omitempty"`

	Files int   `json:"files"`
	Bytes int64 `json:"bytes"` // the stated sizes of the inputs; -1 if one is not known
	// Packets is how many frames the rows of flows are made of. Studied is how many those of
	// findings and the aggregates are made of: fewer only if the bound of time was reached.
	Packets uint64 `json:"packets"`
	Studied uint64 `json:"studied"`
	// Flows and Findings count the rows.
	Flows      uint64     `json:"flows"`
	Findings   uint64     `json:"findings"`
	EndedEarly uint64     `json:"ended_early,omitempty"`   // flows that the bound of memory ended early
	LeftOut    uint64     `json:"rows_left_out,omitempty"` // rows that the bound of memory left out
	First      *time.Time `json:"first,omitempty"`         // time of the first frame; nil if there is none
	Last       *time.Time `json:"last,omitempty"`          // the newest time of a frame
}

// Whole reports whether the rows cover the whole capture.
func (s *Status) Whole() bool { return s.State == OK }

// Read reports whether the capture was analysed at all, so that it counts among the captures that
// have a finding or lack it.
func (s *Status) Read() bool { return s.State != Unreadable && s.State != Panicked }
