package app

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Endings finds out how the connections of a protocol ended, from the records
// of a capture.
type Endings interface {
	Take(r *analyze.Record)
	// Forget drops what is kept of a flow.
	Forget(f *analyze.Flow, why analyze.Reason)
	// Ended returns the connections that had ended at a time, ordered by flow.
	Ended(at machine.Instant) []Ending
}

// Ending is how one connection ended.
type Ending struct {
	Flow   *analyze.Flow
	Silent bool     // no packet announced the end
	Story  []string // the sentences that describe it
	Page   func(paint show.Painter) []byte
}
