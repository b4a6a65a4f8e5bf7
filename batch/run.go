package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/unit"
)

// States of captures that have no result of package unit.
const (
	// Unread is a capture whose bytes did not come. The next run tries it again.
	Unread unit.State = "unread"
	// Quarantined is a capture that ended the process of its worker MostDeaths times.
	Quarantined unit.State = "quarantined"
	// TimedOut is a capture whose analysis took longer than Run.Timeout. A run with a longer time tries
	// it again.
	TimedOut unit.State = "timeout"
)

// Analysed reports whether a capture in a state was analysed, whole or in part.
func Analysed(s unit.State) bool {
	x := unit.Status{State: s}
	return x.Read() && s != Unread && s != Quarantined && s != TimedOut
}

// Quarantine returns the status of a capture that is quarantined. bytes are the sizes of its files.
func Quarantine(c *Capture, bytes int64) unit.Status {
	return unit.Status{
		Capture: c.Name, State: Quarantined, Files: len(c.Files), Bytes: bytes,
		Error: fmt.Sprintf("the process that analysed it ended %d times", MostDeaths),
	}
}

// workFolder is the folder below the output that keeps what came of each capture.
const workFolder = ".batch"

// MostDeaths is how many processes a capture may end before it is left alone.
// Source: definition, one may be chance and two bad luck
const MostDeaths = 3

// Run analyses the captures of a plan into a folder.
type Run struct {
	Plan    *Plan
	Folder  string
	Outputs *outfile.Outputs
	Options string // differs for options of the analysis that make other rows
	Parts   int    // of each partition
	Threads int    // workers, and goroutines that write tables
	// Timeout bounds the time of the analysis of a capture; 0 for no bound. It decides which captures
	// have rows, and changes no row.
	Timeout time.Duration
	// Start starts a worker. Each is used by one goroutine.
	Start func() (Worker, error)
	// Progress is told after each capture, by one goroutine at a time. It may be nil.
	Progress func(Progress)

	store  *store
	lock   *outfile.File // nil if the run writes no tables
	deaths map[Key]int   // earlier ones

	mu       sync.Mutex
	segment  *Segment // of this process; nil until it is needed
	progress Progress
}

// Progress is how far a run is.
type Progress struct {
	Done, Of int // captures to analyse
	Kept     int // captures that an earlier run has analysed
	Packets  uint64
}

// Open prepares the folder, and finds what earlier runs have analysed. The caller closes the run.
func (r *Run) Open() error {
	work := filepath.Join(r.Folder, workFolder)
	entries, err := os.ReadDir(r.Folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		if _, err := os.Stat(work); err != nil {
			return fmt.Errorf("%s: holds files of something else: expected a new folder, or one that batch wrote", r.Folder)
		}
	}
	if err := os.MkdirAll(work, 0o777); err != nil {
		return err
	}
	r.Plan.prepare(r.Options)
	byKey := make(map[Key]int32, len(r.Plan.entries))
	for i := range r.Plan.entries {
		byKey[r.Plan.entries[i].key] = int32(i)
	}
	r.deaths = map[Key]int{}
	late := map[place]int32{}
	r.store, err = openStore(work, func(kind byte, key Key, at place) {
		i, ok := byKey[key]
		switch {
		case !ok:
		case kind == kindDeath:
			r.deaths[key]++
		case kind == kindLate:
			late[at] = i
		case kind == kindResult && at.length >= resultHead:
			r.Plan.entries[i].result = at
		}
	})
	for at, i := range late {
		if err == nil {
			err = r.Plan.entries[i].lateAt(r.store, at)
		}
	}
	return err
}

// lateAt notes the time that did not suffice for a capture in an earlier run.
func (e *entry) lateAt(s *store, at place) error {
	limit, err := s.limit(at)
	e.late = max(e.late, limit)
	return err
}

// settled reports whether the run need not analyse a capture.
func (r *Run) settled(e *entry) bool {
	return e.result.segment != 0 || e.failed != nil || r.Timeout > 0 && e.late >= r.Timeout
}

// lockName is the file in the work folder that a run locks which writes tables.
const lockName = "running"

// Reserve refuses an open folder whose tables another run is going to write: each would remove what
// the other one wrote. Close gives it free.
func (r *Run) Reserve() (err error) {
	var own outfile.Outputs // --no-clobber is not about this file
	r.lock, err = own.Stream(filepath.Join(r.Folder, workFolder, lockName), outfile.Text)
	if err != nil {
		return fmt.Errorf("one run at a time writes the tables of a folder: %w", err)
	}
	return nil
}

// Close closes the files of the run.
func (r *Run) Close() error {
	var err error
	if r.lock != nil {
		err = r.lock.Commit()
	}
	if r.segment != nil {
		err = errors.Join(err, r.segment.Close())
	}
	if r.store != nil {
		err = errors.Join(err, r.store.Close())
	}
	return err
}

// Done returns how far the run came.
func (r *Run) Done() Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress
}

// errNotYet says why a capture has no result where none is analysed.
var errNotYet = errors.New("was not analysed yet")

// Skip leaves captures without a result as they are: Write names them.
func (r *Run) Skip() {
	for i := range r.Plan.entries {
		if e := &r.Plan.entries[i]; e.result.segment == 0 && e.late == 0 {
			e.failed = errNotYet
		} else {
			r.progress.Kept++
		}
	}
}

// Analyze analyses all captures that no earlier run has. An error of one capture does not end it.
func (r *Run) Analyze(ctx context.Context) error {
	var pending []int
	for i := range r.Plan.entries {
		if !r.settled(&r.Plan.entries[i]) {
			pending = append(pending, i)
		}
	}
	// The largest go first, so that none is left over at the end for one worker.
	entries := r.Plan.entries
	slices.SortStableFunc(pending, func(x, y int) int { return cmp.Compare(entries[y].size, entries[x].size) })
	r.progress = Progress{Of: len(pending), Kept: len(r.Plan.entries) - len(pending)}
	workers := min(r.Threads, len(pending))
	if workers == 0 {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			if err := r.work(ctx, next, r.Threads/len(pending)); err != nil {
				cancel(err)
			}
		})
	}
send:
	for _, i := range pending {
		select {
		case next <- i:
		case <-ctx.Done():
			break send
		}
	}
	close(next)
	wait.Wait()
	return context.Cause(ctx)
}

// work analyses captures with a worker, until there are no more.
func (r *Run) work(ctx context.Context, next <-chan int, threads int) (err error) {
	var w Worker
	defer func() {
		if w != nil {
			if closed := w.Close(); err == nil {
				err = closed
			}
		}
	}()
	for i := range next {
		c, e := &r.Plan.Captures[i], &r.Plan.entries[i]
		job := &Job{Key: e.key, Capture: *c, Threads: max(1, threads), Timeout: r.Timeout}
		for !r.settled(e) {
			if r.died(e.key, 0) >= MostDeaths {
				if err := r.quarantine(c, e); err != nil {
					return err
				}
				break
			}
			if w == nil {
				if w, err = r.Start(); err != nil {
					return err
				}
			}
			done, err := w.Do(ctx, job)
			var death *DeathError
			if errors.As(err, &death) {
				w = nil
				if err := r.recordDeath(e.key); err != nil {
					return err
				}
				continue
			}
			if err != nil {
				return err
			}
			if err := r.take(e, done); err != nil {
				return err
			}
		}
		r.told()
	}
	return nil
}

// take keeps where the result of a capture is, or why there is none.
func (r *Run) take(e *entry, done *Done) (err error) {
	if done.Late {
		return r.recordLate(e)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if done.Error != "" {
		e.failed = errors.New(done.Error)
		return nil
	}
	r.progress.Packets += done.Packets
	e.result, err = r.store.place(done.Segment, done.At, done.Length)
	return err
}

// told counts a capture that has ended.
func (r *Run) told() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress.Done++
	if r.Progress != nil {
		r.Progress(r.progress)
	}
}

// died adds to the deaths of a capture, and returns how many there are.
func (r *Run) died(key Key, more int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if more > 0 {
		r.deaths[key] += more
	}
	return r.deaths[key]
}

// recordDeath notes that a capture ended the process of its worker, for later runs too.
func (r *Run) recordDeath(key Key) error {
	s, err := r.own()
	if err != nil {
		return err
	}
	_, _, err = s.add(kindDeath, key)
	r.died(key, 1)
	return err
}

// recordLate notes that the time did not suffice for a capture, for later runs too.
func (r *Run) recordLate(e *entry) error {
	s, err := r.own()
	if err != nil {
		return err
	}
	e.late = r.Timeout
	return s.addLimit(e.key, r.Timeout)
}

// quarantine keeps a status in place of the result of a capture.
func (r *Run) quarantine(c *Capture, e *entry) error {
	s, err := r.own()
	if err != nil {
		return err
	}
	at, length, err := s.addResult(e.key, &unit.Result{Status: Quarantine(c, e.size)})
	if err != nil {
		return err
	}
	return r.take(e, &Done{Segment: s.name, At: at, Length: length, State: Quarantined})
}

// own returns the segment of this process.
func (r *Run) own() (_ *Segment, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.segment == nil {
		r.segment, err = NewSegment(r.Outputs, filepath.Join(r.Folder, workFolder))
	}
	return r.segment, err
}
