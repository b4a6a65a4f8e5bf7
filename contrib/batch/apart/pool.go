package apart

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/contrib/batch/place"
	"github.com/ackscope/ackscope/unit"
)

// resultFile is the number of the file descriptor that a process writes its results to.
// Source: definition, the first of exec.Cmd.ExtraFiles
const resultFile = 3

// Pool starts processes, and shares them among the bundles of this worker.
type Pool struct {
	start func() (*exec.Cmd, error)
	slots chan struct{}

	mu   sync.Mutex
	idle []*process
}

// process is one process, with the file of its results.
type process struct {
	*batch.Process
	result *os.File
}

// NewPool returns a pool of so many processes at most. start makes the command of one. It must run
// batch.Serve with an Analyzer.
func NewPool(start func() (*exec.Cmd, error), most int) *Pool {
	return &Pool{start: start, slots: make(chan struct{}, max(1, most))}
}

// Size returns the bound of processes.
func (p *Pool) Size() int { return cap(p.slots) }

// Close ends the processes that are idle.
func (p *Pool) Close() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.idle {
		err = errors.Join(err, x.Close(), x.result.Close())
	}
	p.idle = nil
	return err
}

// take returns an idle process, or starts one.
func (p *Pool) take() (*process, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		x := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return x, nil
	}
	p.mu.Unlock()
	command, err := p.start()
	if err != nil {
		return nil, err
	}
	result, err := place.Temporary()
	if err != nil {
		return nil, err
	}
	command.ExtraFiles = []*os.File{result}
	started, err := batch.StartProcess(command)
	if err != nil {
		return nil, errors.Join(err, result.Close())
	}
	return &process{started, result}, nil
}

// Outcome is what came of a capture. The caller releases it.
type Outcome struct {
	Status  unit.Status
	Summary *batch.Summary // of the capture alone

	pool    *Pool
	process *process // nil without rows
	rows    *bufio.Reader
}

// Analyze analyses a capture. The error is an *UnreadError, or says that this machine failed.
// A capture that ends its process batch.MostDeaths times is quarantined.
func (p *Pool) Analyze(ctx context.Context, c *batch.Capture) (*Outcome, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	o, err := p.analyze(ctx, c)
	if err != nil {
		<-p.slots
		if !strings.HasPrefix(err.Error(), c.Name+": ") {
			err = fmt.Errorf("%s: %w", c.Name, err)
		}
		return nil, err
	}
	return o, nil
}

func (p *Pool) analyze(ctx context.Context, c *batch.Capture) (*Outcome, error) {
	for range batch.MostDeaths {
		x, err := p.take()
		if err != nil {
			return nil, err
		}
		done, err := x.Do(ctx, &batch.Job{Capture: *c, Threads: 1})
		var death *batch.DeathError
		switch {
		case errors.As(err, &death):
			_ = x.result.Close() // what it holds is of no use
		case err != nil: // the process has ended, or cannot go on
			return nil, errors.Join(err, x.end(ctx), x.result.Close())
		case done.Error != "":
			p.giveBack(x)
			return nil, &UnreadError{done.Error}
		default:
			o := &Outcome{pool: p, process: x}
			if err := o.read(done.Length); err != nil {
				return nil, errors.Join(err, x.Close(), x.result.Close())
			}
			return o, nil
		}
	}
	return p.quarantine(ctx, c), nil
}

// end ends a process that could not go on. After the end of ctx it has ended.
func (x *process) end(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return x.Close()
	}
}

// quarantine returns what comes of a capture that ended its processes.
func (p *Pool) quarantine(ctx context.Context, c *batch.Capture) *Outcome {
	o := &Outcome{Status: batch.Quarantine(c, sizes(ctx, c)), Summary: &batch.Summary{}, pool: p}
	o.Summary.Add(c, &o.Status, &unit.Aggregates{})
	return o
}

// read reads what precedes the rows.
func (o *Outcome) read(length int) error {
	o.rows = bufio.NewReaderSize(io.NewSectionReader(o.process.result, 0, int64(length)), 64<<10)
	o.Summary = &batch.Summary{}
	for _, x := range []struct {
		kind byte
		to   any
	}{{kindStatus, &o.Status}, {kindSummary, o.Summary}} {
		kind, body, err := readSection(o.rows)
		if err != nil {
			return err
		}
		if kind != x.kind {
			return errDamaged
		}
		if err := json.Unmarshal(body, x.to); err != nil {
			return err
		}
	}
	return nil
}

// Blocks passes the rows in blocks, in their order: of each the number of its table in
// batch.Tables. It can be called once.
func (o *Outcome) Blocks(pass func(table int, block []byte)) error {
	if o.process == nil {
		return nil
	}
	for {
		kind, body, err := readSection(o.rows)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		table := int(kind) - kindRows
		if table < 0 || table >= len(batch.Tables()) {
			return errDamaged
		}
		pass(table, body)
	}
}

// Release lets another capture have the process.
func (o *Outcome) Release() {
	if o.process != nil {
		o.pool.giveBack(o.process)
		o.process = nil
	}
	if o.pool != nil {
		<-o.pool.slots
	}
}

// UnreadError says that the bytes of a capture did not come. Another try may succeed.
type UnreadError struct{ Text string }

// Error implements error.
func (e *UnreadError) Error() string { return e.Text }

// Unread returns what comes of a capture that is given up, as its bytes did not come.
func Unread(ctx context.Context, c *batch.Capture, e *UnreadError) *Outcome {
	o := &Outcome{Summary: &batch.Summary{}, Status: unit.Status{
		Capture: c.Name, State: batch.Unread, Error: e.Text, Files: len(c.Files), Bytes: sizes(ctx, c),
	}}
	o.Summary.Add(c, &o.Status, &unit.Aggregates{})
	return o
}

// sizes returns the size of a capture's files, as far as it is known.
func sizes(ctx context.Context, c *batch.Capture) (bytes int64) {
	for _, f := range c.Files {
		bytes += place.Size(ctx, f.Path)
	}
	return bytes
}

// giveBack makes a process idle.
func (p *Pool) giveBack(x *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, x)
}
