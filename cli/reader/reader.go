package reader

import (
	"io"
	"runtime"
	"sync/atomic"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/live"
	"github.com/ackscope/ackscope/machine"
)

// Reader reads the capture of a command: the files of a recording, a pipe, or
// interfaces. It is the capture.Source of the analysis. In addition it
//
//   - ends at Stop or at the limit Most,
//   - copies the frames to the file of -w (Save),
//   - shows progress while files take long,
//   - knows the times of the frames around the last one.
type Reader struct {
	In    *capture.Input // the open files; nil for interfaces
	Live  *Session       // the open interfaces; nil for files
	Probe *live.Probe    // samples the capturing host; nil if nothing is sampled, or an analysis does so
	Most  uint64         // frames to return; 0 for all

	Frames   uint64          // returned since the start or the last Rewind
	Start    machine.Instant // time of the first frame
	Previous machine.Instant // time of the frame before the last one returned
	latest   machine.Instant
	stopped  atomic.Bool

	Save    *Save       // copies the frames; nil for no copy
	SaveErr error       // the error that ended the copying
	Lost    func(error) // called when copying fails, and reading continues; if nil, reading ends

	app      *app.App
	source   capture.Source // In, or Live.Group
	progress *progress
}

// InputError is an error of opening or reading captures. Other captures can be
// read nevertheless.
type InputError struct{ Err error }

// Error returns the text of the error itself.
func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the error itself.
func (e *InputError) Unwrap() error { return e.Err }

// Options say how files are opened.
type Options struct {
	Keep   capture.Keep // what must be readable again
	Passes int          // how often they are read, for the progress line; 0 for no line
}

// Open opens the files of a recording. The caller closes the reader.
func Open(a *app.App, from *Recording, o Options) (*Reader, error) {
	in, err := capture.Open(from.Paths, capture.Options{
		Keep: o.Keep, Stdin: a.In, Threads: runtime.GOMAXPROCS(0),
	})
	if err != nil {
		return nil, &InputError{err}
	}
	r := &Reader{app: a, In: in, source: in}
	if o.Passes > 0 {
		r.progress = newProgress(a, from, in, o.Passes)
	}
	return r, nil
}

// Study analyses a recording twice, so that the sink sees every fact with its
// final grade. The reader is nil if nothing could be opened; otherwise the
// caller closes it. The error is a failure, or how the capture ended.
func Study(a *app.App, from *Recording, sink analyze.Sink) (*analyze.Session, *Reader, error) {
	return StudyLess(a, from, sink, nil)
}

// StudyLess is Study for a sink that may need little of the second run. The function less can
// reduce the options of that run by what the first one learned. It may be nil.
func StudyLess(a *app.App, from *Recording, sink analyze.Sink, less func(*analyze.Options, *analyze.Session)) (
	*analyze.Session, *Reader, error,
) {
	o, err := a.Options()
	if err != nil {
		return nil, nil, err
	}
	r, err := Open(a, from, Options{Keep: capture.KeepPipes, Passes: 2})
	if err != nil {
		return nil, nil, err
	}
	o.Sink = sink
	s, err := r.study(o, less)
	return s, r, err
}

// Study runs the analysis twice, and wipes the progress line.
func (r *Reader) Study(o analyze.Options) (*analyze.Session, error) { return r.study(o, nil) }

func (r *Reader) study(o analyze.Options, less func(*analyze.Options, *analyze.Session)) (*analyze.Session, error) {
	defer r.progress.done()
	if less == nil {
		return analyze.RunTwice(r, o)
	}
	first, err := analyze.Learn(r, o)
	if err != nil {
		return first, err
	}
	o.Survey = first.Survey()
	less(&o, first)
	return analyze.Run(r, o)
}

// Next returns the next frame. It returns io.EOF after Stop or Most.
func (r *Reader) Next(f *capture.Frame) error {
	if r.stopped.Load() || r.Most > 0 && r.Frames == r.Most {
		return r.lastSample(io.EOF)
	}
	if err := r.source.Next(f); err != nil {
		err = r.lastSample(err)
		if err == io.EOF { //nolint:errorlint // a clean end is io.EOF itself; a cut may wrap one
			return err
		}
		return &InputError{err}
	}
	r.Previous = r.latest
	r.latest = f.At
	if r.Frames == 0 {
		r.Start, r.Previous = f.At, f.At
	}
	r.Frames++
	if r.Save != nil && r.SaveErr == nil {
		if err := r.Save.Write(f); err != nil {
			return r.fail(err)
		}
	}
	if r.Probe != nil {
		if err := r.sample(f); err != nil {
			return err
		}
	}
	if r.progress != nil && r.Frames&(1<<12-1) == 0 {
		r.progress.tick()
	}
	return nil
}

// Flush writes the frames copied so far.
func (r *Reader) Flush() {
	if r.Save != nil && r.SaveErr == nil {
		if err := r.Save.flush(); err != nil {
			_ = r.fail(err) // SaveErr has it
		}
	}
}

// fail records that copying failed. It returns the error if that ends the
// reading.
func (r *Reader) fail(err error) error {
	r.SaveErr = err
	if r.Lost == nil {
		return err
	}
	r.Lost(err)
	return nil
}

// Rewind restarts at the first frame.
func (r *Reader) Rewind() error {
	r.Frames = 0
	r.stopped.Store(false)
	if r.progress != nil {
		r.progress.pass++
	}
	if err := r.source.(interface{ Rewind() error }).Rewind(); err != nil {
		return &InputError{err}
	}
	return nil
}

// Dropped returns how many packets the source is known to lack.
func (r *Reader) Dropped() uint64 {
	if d, ok := r.source.(analyze.Dropper); ok {
		return d.Dropped()
	}
	return 0
}

// Counted reports whether the source knows the number of all missing packets.
func (r *Reader) Counted() bool {
	d, ok := r.source.(analyze.Dropper)
	return ok && d.Counted()
}

// Stop ends the reading before the next frame.
func (r *Reader) Stop() { r.stopped.Store(true) }

// Lend implements analyze.Lender.
func (r *Reader) Lend(swap func(full []byte) []byte) bool { return r.In != nil && r.In.Lend(swap) }

// MayReadAhead implements analyze.ReadAhead: files may be read ahead, unless the frames that are
// read are also written or counted, or the capture grows.
func (r *Reader) MayReadAhead() bool {
	return r.Live == nil && r.Probe == nil && r.Save == nil && r.Most == 0 && r.In.Regular()
}

// Done wipes the progress line before other output.
func (r *Reader) Done() { r.progress.done() }

// Close wipes the progress line and closes the source.
func (r *Reader) Close() error {
	r.progress.done()
	return r.source.Close()
}
