package apart

import (
	"context"
	"io"
	"os"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/contrib/batch/place"
	"github.com/ackscope/ackscope/unit"
)

// Analyzer analyses captures in this process, for batch.Serve.
type Analyzer struct {
	options unit.Options
	result  *os.File // has what came of one capture
}

var _ batch.Worker = (*Analyzer)(nil)

// NewAnalyzer returns the worker of a process that a Pool has started.
func NewAnalyzer(o unit.Options) *Analyzer {
	return &Analyzer{options: o, result: os.NewFile(resultFile, "results")}
}

// Do implements batch.Worker.
func (a *Analyzer) Do(ctx context.Context, job *batch.Job) (*batch.Done, error) {
	result, err := a.analyze(ctx, job)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return &batch.Done{Error: err.Error()}, nil
	}
	if err := a.result.Truncate(0); err != nil {
		return nil, err
	}
	if _, err := a.result.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if err := writeResult(a.result, &job.Capture, result); err != nil {
		return nil, err
	}
	length, err := a.result.Seek(0, io.SeekCurrent)
	return &batch.Done{Length: int(length), State: result.Status.State}, err
}

// analyze opens the files of a capture and analyses them. The error says that the bytes did not come.
func (a *Analyzer) analyze(ctx context.Context, job *batch.Job) (*unit.Result, error) {
	var inputs []unit.Input
	for _, f := range job.Capture.Files {
		r, size, err := open(ctx, f)
		if err != nil {
			return nil, err
		}
		defer func() { _ = r.Close() }() // it was read
		inputs = append(inputs, unit.Input{Name: f.Name, Size: size, Reader: r})
	}
	o := a.options
	o.Labels, o.Threads = job.Capture.Labels, job.Threads
	return unit.Analyze(ctx, job.Capture.Name, inputs, o)
}

// open opens a file of a capture: of this machine as `ackscope batch` does, or of an object store.
func open(ctx context.Context, f batch.File) (io.ReadCloser, int64, error) {
	if batch.IsAddress(f.Path) {
		return place.Open(ctx, f.Path)
	}
	return batch.OpenFile(f)
}

// Close implements batch.Worker.
func (a *Analyzer) Close() error { return a.result.Close() }
