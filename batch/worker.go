package batch

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/unit"
)

// Job is a capture that a worker analyses.
type Job struct {
	Key     Key
	Capture Capture
	Threads int
	Timeout time.Duration // bounds the time that the analysis takes; 0 for no bound
}

// Done is what a worker answers. Either the result is in a segment, or there is none. Then Error says
// why the bytes of the capture did not come, or Late that Job.Timeout has passed.
type Done struct {
	Segment  string
	At       int64
	Length   int
	State    unit.State
	Packets  uint64
	Flows    uint64
	Findings uint64
	Error    string `json:",omitempty"`
	Late     bool   `json:",omitempty"`
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

	open func(File) (*input, error)
}

// input is an open file of a capture.
type input struct {
	io.Reader
	io.Closer
	size int64
}

// Do implements Worker. Where the time of the job ends an analysis, nothing of it is kept: how far it
// came would depend on the machine.
func (a *Analyzer) Do(ctx context.Context, job *Job) (*Done, error) {
	within, cancel := bounded(ctx, job.Timeout)
	defer cancel()
	result, err := a.analyze(within, job)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case within.Err() != nil:
		return &Done{Late: true}, nil
	default:
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

// bounded returns a context that ends after a time, or with ctx alone if that is 0.
func bounded(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	if most <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, most)
}

// OpenFile opens a file of a capture on this machine, and returns its size. It looks first what the
// file is: opening a pipe would wait for its writer. An error names the file as its capture does, so
// it is the same however its path was given.
func OpenFile(f File) (*os.File, int64, error) {
	info, err := os.Stat(f.Path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("expected a file that can be read again")
	}
	var file *os.File
	if err == nil {
		file, err = os.Open(f.Path)
	}
	if err == nil {
		if info, err = file.Stat(); err == nil {
			return file, info.Size(), nil
		}
		err = errors.Join(err, file.Close())
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return nil, 0, fmt.Errorf("opening %s: %w", f.Name, err)
}

func openFile(f File) (*input, error) {
	file, size, err := OpenFile(f)
	if err != nil {
		return nil, err
	}
	return &input{file, file, size}, nil
}

// analyze opens the files of a capture and analyses them. The error says that the bytes did not come.
func (a *Analyzer) analyze(ctx context.Context, job *Job) (*unit.Result, error) {
	var inputs []unit.Input
	for _, f := range job.Capture.Files {
		in, err := a.open(f)
		if err != nil {
			return nil, err
		}
		defer func() { _ = in.Close() }() // it was only read
		inputs = append(inputs, unit.Input{Name: f.Name, Size: in.size, Reader: in.Reader})
	}
	o := a.Options
	o.Labels, o.Threads = job.Capture.Labels, job.Threads
	return unit.Analyze(ctx, job.Capture.Name, inputs, o)
}

// Close implements Worker.
func (a *Analyzer) Close() error { return a.Segment.Close() }

// Serve runs a worker in a process that a Process started. It reads jobs and writes what came of
// them, until the jobs end. If the process that sends them dies, Serve returns at once, even while
// the worker hangs.
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
	answers := make(chan answer, 1)
	for {
		select {
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case job := <-jobs: // the next one comes once this one is answered
			go func() {
				done, err := w.Do(ctx, job)
				answers <- answer{done, err}
			}()
		case a := <-answers:
			if a.err != nil {
				a.done = &Done{Failed: a.err.Error()}
			}
			if told := to.Encode(a.done); a.err != nil || told != nil {
				return errors.Join(a.err, told)
			}
		}
	}
}

// answer is what a worker returned for a job.
type answer struct {
	done *Done
	err  error
}

// Process is a worker in a process of its own, which runs Serve. A capture that ends the process
// does not end the run.
type Process struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
	least   time.Duration // leastSilence
}

// A worker that lives says by itself when the time of a job is over. One that says nothing for a part
// of that time, one in silencePart and leastSilence at least, hangs.
// Source: choice, a machine with more work than cores delays an answer by some tenths of a second
const (
	silencePart  = 4
	leastSilence = time.Second
)

// errSilent is how the process of a worker ended that did not answer in time.
var errSilent = errors.New("it hung, and was killed")

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
	p := &Process{command, in, json.NewDecoder(bufio.NewReader(out)), leastSilence}
	if err := p.out.Decode(&Done{}); err != nil {
		_ = command.Process.Kill()
		return nil, fmt.Errorf("a worker did not begin: %w", cmp.Or(command.Wait(), err))
	}
	return p, nil
}

// Do implements Worker. It kills a process that hangs, which is a death like others.
func (p *Process) Do(ctx context.Context, job *Job) (*Done, error) {
	most := job.Timeout
	if most > 0 {
		most += p.silence(most)
	}
	within, cancel := bounded(ctx, most)
	defer cancel()
	answers := make(chan answer, 1)
	go func() { answers <- p.ask(job) }()
	var err error
	select {
	case a := <-answers:
		if a.err == nil && a.done.Failed != "" {
			return nil, errors.New(a.done.Failed)
		}
		if a.err == nil {
			return a.done, nil
		}
		err = a.err
	case <-within.Done():
		err = errSilent
	}
	_ = p.command.Process.Kill()
	ended := p.wait(p.silence(job.Timeout))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if ended != nil && !errors.Is(err, errSilent) {
		err = ended
	}
	return nil, &DeathError{err}
}

// silence is how long a process may be silent behind the time of a job.
func (p *Process) silence(timeout time.Duration) time.Duration {
	return max(p.least, timeout/silencePart)
}

// ask sends a job and waits for the answer.
func (p *Process) ask(job *Job) answer {
	if err := json.NewEncoder(p.in).Encode(job); err != nil {
		return answer{nil, err}
	}
	done := &Done{}
	return answer{done, p.out.Decode(done)}
}

// wait waits for the end of a process that was killed. It gives up after a time: a file system that
// does not answer holds a process even then.
func (p *Process) wait(most time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- p.command.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(most):
		return errSilent
	}
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
	return &Analyzer{Options: options, Segment: s, open: openFile}, nil
}
