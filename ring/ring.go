// Package ring keeps the newest frames of a capture on the disk, in a bounded row of pcapng files.
// It cuts the frames of a time span out of them:
//
//	frames → file 8 ┐
//	         file 7 ├→ Cut(from, to, pair) → one pcapng capture, and what it lacks
//	         file 6 ┘
//	         file 5 removed, since it was the oldest that no Pin holds
//
// For example, a sensor writes every frame. When a rule fires, it pins the time around the
// finding. Then it cuts the frames of that flow:
//
//	r, err := ring.Open("/var/lib/sensor/ring", ring.Options{Bytes: 1 << 30, Interface: describe})
//	err = r.Write(&frame)
//	pin := r.Pin(from, to)
//	cut, err := r.Cut(ctx, w, ring.Span{From: from, To: to, Pair: ring.Pair{A: a, B: b}})
//	pin.Release()
//
// A file is written in place. If the program is killed, the file is read up to its last whole
// record, and a cut says where it ends. The next Open takes over the files that it finds.
//
// Row names and counts the files of any row, and Shelf decides which of them go first. Package
// capture/paths recognises rows that rotating programs wrote.
package ring

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/host"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
)

// Options are the bounds of a ring, and what describes its frames.
type Options struct {
	// Bytes bounds all files together, with the room that the newest one may still need. It must
	// be at least four times FileBytes.
	Bytes int64
	// Files bounds the number of files; 0 means no bound.
	Files int
	// Age removes a file so long after it was ended; 0 means never.
	Age time.Duration
	// PinnedBytes bounds the files that pins hold (default: half of Bytes, which is the most).
	// Beyond it the oldest pin is given up.
	PinnedBytes int64

	// FileBytes ends a file (default: 16 MiB). A frame that is larger is not written.
	FileBytes int64
	// FileAge ends a file so long after its first frame, by the capture's clock (default: a
	// minute). A clock that steps back ends a file too.
	FileAge time.Duration

	// Interface describes an interface of the frames: the file and the index that they name. It
	// must be set.
	Interface func(file, index int) capture.Interface
	// Counts returns the counts of the interfaces since the capture began, by index. Each file of
	// the ring has the part of them that belongs to it. It may be nil.
	Counts func() ([]capture.Statistics, error)
	// Outputs opens the files. It may be nil.
	Outputs *outfile.Outputs
	// Now is the clock that names files and measures Age (default: time.Now).
	Now func() time.Time
}

// Ring is a folder with a bounded row of files. All methods are safe for concurrent use. Only one
// Ring at a time opens a folder.
type Ring struct {
	folder  string
	options Options
	run     string        // a number of this run that never comes again
	lock    *outfile.File // held while the ring is open

	surveys sync.Mutex // held while files of an earlier run are read for their times

	mu     sync.Mutex
	row    Row
	shelf  Shelf
	files  []*file // as on the shelf
	pins   []*Pin  // the oldest first
	open   *writing
	base   map[int]capture.Statistics // of an interface: what the files so far have of its counts
	status Status
	closed bool
}

// file is a file of the ring.
type file struct {
	Kept
	path   string
	number uint64
	ended  time.Time // when its last frame was written; zero while it is open
	told
}

// told is what is known of the frames in a file.
type told struct {
	known       bool   // it was written by this run, or surveyed
	run         string // that wrote it
	frames      uint64
	first, last machine.Instant // lowest and highest time of its frames
	err         error           // of reading it; nil if it is whole
}

// add counts a frame.
func (t *told) add(at machine.Instant) {
	if t.frames == 0 {
		t.first, t.last = at, at
	}
	t.frames++
	t.first, t.last = min(t.first, at), max(t.last, at)
}

// overlaps reports whether the file may have frames of a span.
func (t *told) overlaps(from, to machine.Instant) bool {
	return !t.known || t.frames > 0 && t.first <= to && t.last >= from
}

const (
	usualFileBytes = 16 << 20    // Source: choice, some ten seconds of a busy server: a cut reads little beside its span
	usualFileAge   = time.Minute // Source: choice, so that an idle server's ring loses its oldest minute, not hours
	leastFiles     = 4           // Source: choice, pins hold up to a half, and beside them frames still have room
	leastFileBytes = 4 << 10     // Source: choice, the head of a file and a few frames of Ethernet

	// flushEvery is how often frames are passed to the system, by the capture's clock.
	flushEvery = time.Second
	// stepBack is how far the time of a frame may lie behind the newest one of its file.
	// Source: choice, four times the 250 ms in which dumpcap polls its interfaces (CAP_READ_TIMEOUT)
	stepBack = time.Second
)

const (
	prefix   = "ring.pcapng" // the row's name: ring_00001_20261121130500.pcapng, …
	lockName = "ring.lock"
)

var (
	errClosed = errors.New("ring: it is closed")
	errBounds = errors.New("ring: expected Bytes of at least four times FileBytes, FileBytes of at least 4096, " +
		"no bound below 0, and Interface")
)

// Open opens the ring in a folder, which must exist. It takes over the files that an earlier run
// left. Other files in the folder are neither read nor removed.
func Open(folder string, o Options) (*Ring, error) {
	if o.FileBytes == 0 {
		o.FileBytes = usualFileBytes
	}
	if o.FileAge == 0 {
		o.FileAge = usualFileAge
	}
	if o.PinnedBytes == 0 || o.PinnedBytes > o.Bytes/2 {
		o.PinnedBytes = o.Bytes / 2
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Outputs == nil {
		o.Outputs = &outfile.Outputs{}
	}
	if o.FileBytes < leastFileBytes || o.Bytes/leastFiles < o.FileBytes || o.Interface == nil ||
		o.PinnedBytes < 0 || o.Files < 0 || o.Age < 0 || o.FileAge < 0 {
		return nil, errBounds
	}
	var number [8]byte
	_, _ = rand.Read(number[:]) // never fails: crypto/rand ends the program instead
	r := &Ring{
		folder: folder, options: o, run: hex.EncodeToString(number[:]), base: map[int]capture.Statistics{},
		row:   Row{Path: filepath.Join(folder, prefix), Bytes: o.FileBytes, Duration: o.FileAge},
		shelf: Shelf{Files: o.Files, Bytes: o.Bytes},
	}
	var err error
	if r.lock, err = o.Outputs.Stream(filepath.Join(folder, lockName), outfile.Text); err != nil {
		return nil, fmt.Errorf("ring: %w", err)
	}
	if err = r.adopt(); err == nil {
		err = r.prune()
	}
	if err != nil {
		return nil, errors.Join(err, r.lock.Commit())
	}
	return r, nil
}

// Write adds a frame, and removes the oldest files where a bound asks for it.
func (r *Ring) Write(f *capture.Frame) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	size := frameBytes(f)
	if size > r.options.FileBytes-headBytes-interfaceBytes {
		r.status.Oversized++
		return nil
	}
	if x := r.open; x != nil && (r.row.Full(x.out.Written()+x.tail()+size, f.At) ||
		x.file.frames > 0 && x.file.last.Sub(f.At) > stepBack) {
		if err := r.end(); err != nil {
			return err
		}
	}
	if r.open == nil {
		if err := r.begin(); err != nil {
			return err
		}
	}
	if err := r.open.write(r, f); err != nil {
		return errors.Join(err, r.end())
	}
	r.row.Note(f.At)
	r.status.Frames++
	return nil
}

// WriteHost adds a sample of the capturing host. Before the first frame of a file, and where the
// file is full, it leaves the sample out.
func (r *Ring) WriteHost(s *host.Sample) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.open
	if x == nil || x.out.Written()+x.tail()+sampleBytes(s) > r.options.FileBytes {
		return nil
	}
	return x.out.WriteHost(s)
}

// Flush passes the frames so far to the operating system. A capture calls it before it waits.
func (r *Ring) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flush()
}

func (r *Ring) flush() error {
	if r.open == nil {
		return nil
	}
	return r.open.out.Flush()
}

// Tick does what is due by the clock: it flushes, and removes files that are too old. The caller
// calls it every second or so, since an idle interface writes no frames.
func (r *Ring) Tick() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	if x := r.open; x != nil && r.options.Now().Sub(x.began) >= max(r.options.FileAge, flushEvery) {
		return errors.Join(r.end(), r.prune())
	}
	return errors.Join(r.flush(), r.prune())
}

// Close ends the newest file and gives the folder free. Files and pins stay as they are.
func (r *Ring) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	return errors.Join(r.end(), r.lock.Commit())
}

// prune removes files beyond the bounds, and gives up pins where that is needed.
func (r *Ring) prune() error {
	for now := r.options.Now(); ; {
		old := r.shelf.Excess()
		if old == nil {
			old = r.aged(now)
		}
		switch {
		case old != nil:
			if err := old.Remove(); err != nil {
				r.shelf.kept = slices.Insert(r.shelf.kept, 0, old)
				r.shelf.bytes += old.Bytes
				return fmt.Errorf("ring: %w", err)
			}
			r.files = slices.DeleteFunc(r.files, func(f *file) bool { return &f.Kept == old })
			r.status.Removed++
		case r.shelf.over() || r.pinned() > r.options.PinnedBytes:
			r.giveUp()
		default:
			return nil
		}
	}
}

// aged takes a file from the shelf that is older than Options.Age.
func (r *Ring) aged(now time.Time) *Kept {
	if r.options.Age == 0 {
		return nil
	}
	for _, f := range r.files {
		if f.held == 0 && !f.ended.IsZero() && now.Sub(f.ended) > r.options.Age {
			r.shelf.take(slices.Index(r.shelf.kept, &f.Kept))
			return &f.Kept
		}
	}
	return nil
}

// Status is the state of a ring.
type Status struct {
	Files     int
	Bytes     int64 // of all files
	Pinned    int64 // bytes of files that pins hold
	Oldest    machine.Instant
	Newest    machine.Instant // of the frames in the ring; both 0 if it has none
	Frames    uint64          // written by this run
	Removed   int             // files that this run removed to keep the bounds
	Oversized uint64          // frames larger than Options.FileBytes, which are not in the ring
	GivenUp   int             // pins that Options.PinnedBytes gave up
	Foreign   int             // files in the folder that are not of the ring
}

// Status returns the state now. The times are those of files of this run and of those that a cut
// has read.
func (r *Ring) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, first := r.status, true
	s.Files, s.Pinned = len(r.files), r.pinned()
	for _, f := range r.files {
		if f.ended.IsZero() {
			s.Bytes += r.open.out.Written()
		} else {
			s.Bytes += f.Bytes
		}
		switch {
		case f.frames == 0:
		case first:
			s.Oldest, s.Newest, first = f.first, f.last, false
		default:
			s.Oldest, s.Newest = min(s.Oldest, f.first), max(s.Newest, f.last)
		}
	}
	return s
}
