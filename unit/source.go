package unit

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ackscope/ackscope/capture"
)

// source is the capture within the bounds of the analysis.
type source struct {
	*capture.Input
	run    *run
	most   uint64        // frames to return; 0 for all
	until  time.Duration // when a run ends, counted from the begin of the analysis; 0 for never
	frames uint64        // returned in this run
	bound  Bound         // that ended this run
}

// clockEvery is after how many frames the clock is read.
// Source: bound, the cost of reading the clock
const clockEvery = 256

// Next returns the next frame, or io.EOF where a bound is reached.
func (s *source) Next(f *capture.Frame) error {
	if s.run.stopped.Load() {
		return context.Canceled
	}
	if s.until > 0 && s.frames%clockEvery == 0 && s.run.worked() > s.until {
		s.bound = BoundTime
		s.run.reach(BoundTime)
		return io.EOF
	}
	if s.most > 0 && s.frames == s.most {
		return s.beyond()
	}
	if err := s.Input.Next(f); err != nil {
		return err
	}
	s.frames++
	return nil
}

// beyond ends a run at the bound of packets, unless the capture ends there too.
func (s *source) beyond() error {
	if s.bound != NoBound {
		return io.EOF
	}
	var f capture.Frame
	if err := s.Input.Next(&f); err != nil {
		return err
	}
	s.bound = BoundPackets
	s.run.reach(BoundPackets)
	return io.EOF
}

// Rewind restarts at the first frame.
func (s *source) Rewind() error {
	s.frames, s.bound = 0, NoBound
	return s.Input.Rewind()
}

// MayReadAhead implements analyze.ReadAhead.
func (s *source) MayReadAhead() bool { return true }

// worked returns how long the analysis runs, without the time in which it waited for readers.
func (r *run) worked() time.Duration {
	return time.Since(r.began) - time.Duration(r.waited.Load())
}

// patient returns a reader that ends with ctx, even while the given one blocks. Regular files do
// not block, and stay as they are.
func (r *run) patient(ctx context.Context, from io.Reader) io.Reader {
	p := &patient{ctx: ctx, run: r, from: from}
	if f, ok := from.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return from
		}
		return p
	}
	if at, ok := from.(io.ReaderAt); ok {
		return &patientAt{p, at}
	}
	return p
}

// patient waits for a reader on another goroutine, until ctx ends. It reads into a buffer of its
// own, since a read that is given up may still write to it.
type patient struct {
	ctx    context.Context //nolint:containedctx // it lives as long as the call of Analyze
	run    *run
	from   io.Reader
	buffer []byte
}

// mostAtOnce bounds the buffer of a reader.
// Source: bound, the memory of an input
const mostAtOnce = 256 << 10

// Read implements io.Reader.
func (p *patient) Read(to []byte) (int, error) {
	return p.wait(to, p.from.Read)
}

type answer struct {
	n   int
	err error
}

// wait calls read. After ctx has ended it returns at once, and never calls it again.
func (p *patient) wait(to []byte, read func([]byte) (int, error)) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	began := time.Now()
	defer func() { p.run.waited.Add(int64(time.Since(began))) }()
	if n := min(len(to), mostAtOnce); len(p.buffer) < n {
		p.buffer = make([]byte, n)
	}
	buffer := p.buffer[:min(len(to), mostAtOnce)]
	answers := make(chan answer, 1)
	go func() {
		defer func() {
			if fault := recover(); fault != nil {
				answers <- answer{0, fmt.Errorf("the reader panicked: %v", fault)}
			}
		}()
		n, err := read(buffer)
		answers <- answer{n, err}
	}()
	select {
	case a := <-answers:
		if a.n >= 0 && a.n <= len(buffer) { // the caller refuses other counts
			copy(to, buffer[:a.n])
		}
		return a.n, a.err
	case <-p.ctx.Done():
		return 0, p.ctx.Err()
	}
}

// patientAt is patient for a reader that is read at offsets.
type patientAt struct {
	*patient
	at io.ReaderAt
}

// ReadAt implements io.ReaderAt.
func (p *patientAt) ReadAt(to []byte, offset int64) (done int, err error) {
	for done < len(to) && err == nil {
		var n int
		n, err = p.wait(to[done:], func(b []byte) (int, error) { return p.at.ReadAt(b, offset+int64(done)) })
		switch {
		case n < 0 || n > len(to)-done: // the caller refuses such counts
			return n, err
		case n == 0 && err == nil:
			return done, io.ErrNoProgress
		}
		done += n
	}
	return done, err
}
