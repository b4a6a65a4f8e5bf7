package batch

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/unit"
)

// Job is a capture that a worker analyses.
type Job struct {
	Key     Key
	Capture Capture
	Threads int
}

// Done is what a worker answers. Either the result is in a segment, or there is none, and Error says
// why the bytes of the capture did not come.
type Done struct {
	Segment  string
	At       int64
	Length   int
	State    unit.State
	Packets  uint64
	Flows    uint64
	Findings uint64
	Error    string `json:",omitempty"`
	Failed   string `json:",omitempty"` // why the worker cannot go on, with any capture
}

// Worker analyses captures, one at a time.
type Worker interface {
	// Do analyses a capture. The error is a *DeathError if the worker ended; another worker must then
	// take its place.
	Do(ctx context.Context, job *Job) (*Done, error)
	// Close ends the worker.
	Close() error
}

// DeathError says that the process of a worker ended.
type DeathError struct{ Err error }

// Error says how the process ended.
func (e *DeathError) Error() string { return fmt.Sprintf("the process of a worker ended: %v", e.Err) }

// Unwrap returns the error of the process.
func (e *DeathError) Unwrap() error { return e.Err }

// Analyzer analyses captures in this process, and appends the results to a segment.
type Analyzer struct {
	Options unit.Options
	Segment *Segment
}

// Do implements Worker.
func (a *Analyzer) Do(ctx context.Context, job *Job) (*Done, error) {
	result, err := a.analyze(ctx, job)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return &Done{Error: err.Error()}, nil
	}
	at, length, err := a.Segment.addResult(job.Key, result)
	if err != nil {
		return nil, err
	}
	s := &result.Status
	return &Done{
		Segment: a.Segment.name, At: at, Length: length, State: s.State, Packets: s.Packets, Flows: s.Flows,
		Findings: s.Findings,
	}, nil
}

// analyze opens the files of a capture and analyses them. The error says that the bytes did not come.
func (a *Analyzer) analyze(ctx context.Context, job *Job) (*unit.Result, error) {
	var inputs []unit.Input
	for _, f := range job.Capture.Files {
		file, err := os.Open(f.Path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: expected a file that can be read again", f.Path)
		}
		inputs = append(inputs, unit.Input{Name: f.Name, Size: info.Size(), Reader: file})
	}
	o := a.Options
	o.Labels, o.Threads = job.Capture.Labels, job.Threads
	return unit.Analyze(ctx, job.Capture.Name, inputs, o)
}

// Close implements Worker.
func (a *Analyzer) Close() error { return a.Segment.Close() }

// Serve runs a worker in a process that a Process started. It reads jobs and writes what came of
// them, until the jobs end. If the process that sends them dies, Serve returns at once.
func Serve(in io.Reader, out io.Writer, w Worker) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	jobs := make(chan *Job)
	failed := make(chan error, 1)
	go func() {
		d := json.NewDecoder(in)
		for {
			job := &Job{}
			if err := d.Decode(job); err != nil {
				failed <- err
				cancel()
				return
			}
			jobs <- job
		}
	}()
	to := json.NewEncoder(out)
	if err := to.Encode(&Done{}); err != nil { // says that the worker is ready
		return err
	}
	for {
		select {
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case job := <-jobs:
			done, err := w.Do(ctx, job)
			if err != nil {
				done = &Done{Failed: err.Error()}
			}
			if told := to.Encode(done); err != nil || told != nil {
				return errors.Join(err, told)
			}
		}
	}
}

// Process is a worker in a process of its own, which runs Serve. A capture that ends the process
// does not end the run.
type Process struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
}

// StartProcess starts a worker. The command's standard input and output become those of Serve.
func StartProcess(command *exec.Cmd) (*Process, error) {
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	p := &Process{command, in, json.NewDecoder(bufio.NewReader(out))}
	if err := p.out.Decode(&Done{}); err != nil {
		_ = command.Process.Kill()
		return nil, fmt.Errorf("a worker did not begin: %w", cmp.Or(command.Wait(), err))
	}
	return p, nil
}

// Do implements Worker.
func (p *Process) Do(ctx context.Context, job *Job) (*Done, error) {
	stop := context.AfterFunc(ctx, func() { _ = p.command.Process.Kill() })
	defer stop()
	done := &Done{}
	err := json.NewEncoder(p.in).Encode(job)
	if err == nil {
		err = p.out.Decode(done)
	}
	if err == nil && done.Failed != "" {
		return nil, errors.New(done.Failed)
	}
	if err == nil {
		return done, nil
	}
	_ = p.command.Process.Kill()
	if ended := p.command.Wait(); ended != nil {
		err = ended
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, &DeathError{err}
}

// Close ends the process.
func (p *Process) Close() error {
	_ = p.in.Close()
	return p.command.Wait()
}

// NewAnalyzer returns a worker of this process, for the output folder of a run.
func NewAnalyzer(o *outfile.Outputs, folder string, options unit.Options) (*Analyzer, error) {
	s, err := NewSegment(o, filepath.Join(folder, workFolder))
	if err != nil {
		return nil, err
	}
	return &Analyzer{Options: options, Segment: s}, nil
}
