package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/contrib/batch/apart"
	"github.com/ackscope/ackscope/unit"
)

// AnalyzeCommand is the command of this program that serves as a process of package apart.
const AnalyzeCommand = "analyze"

// entryRow is a row of the table of captures.
type entryRow struct {
	Capture batch.Capture
	Status  unit.Status
}

// analyzeFn analyses chunks of captures.
type analyzeFn struct {
	Job  Job
	pool *apart.Pool
}

// pools are the processes of this worker, by their flags. Several bundles at a time share them.
var pools = struct {
	sync.Mutex
	byFlags map[string]*apart.Pool
}{byFlags: map[string]*apart.Pool{}}

// ClosePools ends the processes that are idle.
func ClosePools() (err error) {
	pools.Lock()
	defer pools.Unlock()
	for flags, p := range pools.byFlags {
		err = errors.Join(err, p.Close())
		delete(pools.byFlags, flags)
	}
	return err
}

// Setup is called by Beam, before the first bundle.
func (f *analyzeFn) Setup() error {
	build, err := Version()
	if err != nil {
		return err
	}
	if build != f.Job.Build {
		return fmt.Errorf("this worker is ackscope-beam %s, and the job is of %s: expected one build", build, f.Job.Build)
	}
	key := fmt.Sprintf("%d %q", f.Job.Threads, f.Job.Flags)
	pools.Lock()
	defer pools.Unlock()
	if pools.byFlags[key] == nil {
		pools.byFlags[key] = apart.NewPool(f.start, threads(f.Job.Threads))
	}
	f.pool = pools.byFlags[key]
	return nil
}

func threads(asked int) int {
	if asked > 0 {
		return asked
	}
	return runtime.GOMAXPROCS(0)
}

// start makes the command of a process: this program.
func (f *analyzeFn) start() (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command(program, append([]string{AnalyzeCommand}, f.Job.Flags...)...)
	// A process analyses one capture. More threads of its collector would only take turns with the
	// other processes.
	command.Env = append(os.Environ(), "GOMAXPROCS=1")
	command.Stderr = os.Stderr
	return command, nil
}

// ProcessElement is called by Beam. An error ends the bundle, and the engine tries it again.
func (f *analyzeFn) ProcessElement(
	ctx context.Context, chunk []byte, rows func(string, Block), entries func(Entry), sums func([]byte),
) error {
	var captures []batch.Capture
	if err := json.Unmarshal(chunk, &captures); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	outcomes := f.outcomes(ctx, cancel, captures)
	var sum batch.Summary
	for x := range outcomes {
		if ctx.Err() == nil {
			if err := f.emit(x, rows, entries); err != nil {
				cancel(err)
			}
			sum.Merge(x.Summary)
			count(ctx, &x.Status)
		}
		x.Release()
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	b, err := json.Marshal(&sum)
	if err != nil {
		return err
	}
	sums(b)
	return nil
}

// outcome is what came of a capture.
type outcome struct {
	*apart.Outcome
	capture *batch.Capture
}

// outcomes analyses captures, several at a time. The first error cancels the others.
func (f *analyzeFn) outcomes(
	ctx context.Context, cancel context.CancelCauseFunc, captures []batch.Capture,
) <-chan outcome {
	next, list := make(chan *batch.Capture), make(chan outcome)
	var wait sync.WaitGroup
	for range min(f.pool.Size(), len(captures)) {
		wait.Go(func() {
			for c := range next {
				o, err := f.analyze(ctx, c)
				if err != nil {
					cancel(err)
					return
				}
				list <- outcome{o, c}
			}
		})
	}
	go func() {
		defer close(list)
		defer wait.Wait()
		defer close(next)
		for i := range captures {
			select {
			case next <- &captures[i]:
			case <-ctx.Done():
				return
			}
		}
	}()
	return list
}

// analyze analyses a capture. Where the job goes on without captures whose bytes do not come, it tries
// as often as a capture may end its process.
func (f *analyzeFn) analyze(ctx context.Context, c *batch.Capture) (o *apart.Outcome, err error) {
	var unread *apart.UnreadError
	for range batch.MostDeaths {
		if o, err = f.pool.Analyze(ctx, c); !f.Job.Unread || !errors.As(err, &unread) {
			return o, err
		}
	}
	return apart.Unread(ctx, c, unread), nil
}

// emit passes what came of a capture to the next steps.
func (f *analyzeFn) emit(x outcome, rows func(string, Block), entries func(Entry)) error {
	c := x.capture
	folder, part := batch.Folder(c.Labels), batch.Part(c.Name, f.Job.Parts)
	number := 0
	err := x.Blocks(func(table int, block []byte) {
		rows(partKey{table, part, folder}.String(), Block{Name: []byte(c.Name), Number: number, Rows: block})
		number++
	})
	if err != nil {
		return err
	}
	row, err := json.Marshal(entryRow{batch.Capture{Name: c.Name, Labels: c.Labels}, x.Status})
	if err != nil {
		return err
	}
	entries(Entry{Name: []byte(c.Name), Row: row})
	return nil
}

// count adds a capture to the engine's counters.
func count(ctx context.Context, s *unit.Status) {
	beam.NewCounter("ackscope", "captures "+string(s.State)).Inc(ctx, 1)
	beam.NewCounter("ackscope", "packets").Inc(ctx, int64(s.Packets))
}

// partKey names a part of a table.
type partKey struct {
	table, part int
	folder      string
}

func (k partKey) String() string { return fmt.Sprintf("%d %d %s", k.table, k.part, k.folder) }

// parsePartKey reads what String returns.
func parsePartKey(text string) (k partKey, err error) {
	numbers, folder, ok := strings.Cut(text, " ")
	if ok {
		var part string
		part, folder, _ = strings.Cut(folder, " ")
		_, err = fmt.Sscan(numbers, &k.table)
		if err == nil {
			_, err = fmt.Sscan(part, &k.part)
		}
	}
	if k.folder = folder; !ok || err != nil || k.table < 0 || k.table >= len(batch.Tables()) {
		return k, fmt.Errorf("part %q: expected its table, number and folder", text)
	}
	return k, nil
}
