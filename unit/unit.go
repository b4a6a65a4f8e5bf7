package unit

import (
	"context"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Input is a file of the capture: its name, its size in bytes, and what reads it. Where the reader
// is an io.ReaderAt, the file is read in place. Otherwise a temporary file keeps what was read,
// since the analysis reads a capture twice.
type Input = capture.Stored

// Label is a column of the manifest with its value for this capture, as "build" and "1.4.2".
type Label struct {
	Name, Value string
	// Carried says that the label is only carried on the result. Otherwise it is a part of the keys
	// of the aggregates. A label with a value of its own for each capture should be carried only.
	Carried bool
}

// Options configure Analyze. The zero value selects every default.
type Options struct {
	// Registry lists the protocols; nil means protocols.Default(). DecodeAs are overrides of their
	// detection. Package protocols makes both from the flags of the command line.
	Registry *dissect.Registry
	DecodeAs []analyze.DecodeAs
	Vantage  *machine.Vantage // where the tap stood; nil to infer it
	// Thresholds are the limits of the rules about steady trouble; nil means the default ones.
	Thresholds *analyze.Thresholds
	// Labels are carried on the result, and key its aggregates.
	Labels []Label

	// Memory bounds the state of the analysis, as --memory does, and the rows (default 512 MiB). It
	// does not depend on the machine, so that the rows do not either. Beyond it, flows that were
	// silent longest end early. The rows take a quarter of it at most; further ones are left out.
	Memory int64
	// Packets bounds the frames that are read; 0 for no bound.
	Packets uint64
	// Time bounds the time that the analysis takes, without that in which it waits for a reader; 0
	// for no bound. Where the analysis ends then depends on the machine, and Status.Bound says so.
	Time time.Duration
	// Threads is how many goroutines analyse the capture (default 1). The result is the same for
	// any number.
	Threads int
	// NoDelays omits the histogram of the delays of messages, which takes time.
	NoDelays bool
}

// Row is a row of a table.
type Row struct {
	Flow  UID    // of its flow
	Cells []byte // as export.Schema.AppendRow encodes them; ReadRow reads them back
}

// Result is what is kept of a capture.
type Result struct {
	Status Status
	Labels []Label // Options.Labels, sorted by name
	// Flows are rows of export.Flows, and Findings those of export.Findings. Both have the order of
	// the command line.
	Flows, Findings []Row
	Aggregates      *Aggregates // never nil
}

// Analyze analyses one capture. Several inputs are files of one capture, as a rotating writer makes
// them. They are merged by time. The capture has the given name in the status.
//
// An error says that the bytes did not come (*capture.TransportError), that ctx ended, or that the
// local disk failed. Analyze returns soon after ctx ends, even while a reader blocks: a goroutine
// then waits for that one read. The caller closes the readers.
func Analyze(ctx context.Context, name string, inputs []Input, o Options) (*Result, error) {
	return newRun(ctx, name, inputs, o).analyze(ctx)
}
