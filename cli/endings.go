package cli

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// endings tell how the connections of a protocol ended, from the records of a capture.
type endings interface {
	Take(r *analyze.Record)
	// Forget lets go of what was kept of a flow.
	Forget(f *analyze.Flow, why analyze.Reason)
	// Ended gives the connections that had ended at a time, in the order of their flows.
	Ended(at machine.Instant) []ending
}

// ending is how one connection ended.
type ending struct {
	flow   *analyze.Flow
	silent bool     // it ended without a word
	story  []string // in sentences
	page   func(paint painter) []byte
}
