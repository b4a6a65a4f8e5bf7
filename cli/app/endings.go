package app

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Endings tell how the connections of a protocol ended, from the records of a capture.
type Endings interface {
	Take(r *analyze.Record)
	// Forget lets go of what was kept of a flow.
	Forget(f *analyze.Flow, why analyze.Reason)
	// Ended returns the connections that had ended at a time, in the order of their flows.
	Ended(at machine.Instant) []Ending
}

// Ending is how one connection ended.
type Ending struct {
	Flow   *analyze.Flow
	Silent bool     // it ended without a word
	Story  []string // in sentences
	Page   func(paint show.Painter) []byte
}
