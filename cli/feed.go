package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// feed stands between a source and the analysis: it can end the reading, copies
// frames to a file, and knows what the listing needs of the frames around one.
type feed struct {
	source   capture.Source
	copyTo   *save
	most     uint64 // frames to give; 0 for all
	progress *progress

	frames   uint64
	start    machine.Instant // of the first frame
	previous machine.Instant // of the frame before the last one given
	latest   machine.Instant
	stopped  bool
	copyErr  error
	lost     func(error) // told when copying fails, where the reading is to go on
}

// Next gives the next frame; io.EOF once stopped.
func (f *feed) Next(fr *capture.Frame) error {
	if f.stopped || f.most > 0 && f.frames == f.most {
		return io.EOF
	}
	if err := f.source.Next(fr); err != nil {
		return err
	}
	f.previous = f.latest
	f.latest = fr.At
	if f.frames == 0 {
		f.start, f.previous = fr.At, fr.At
	}
	f.frames++
	if f.copyTo != nil && f.copyErr == nil {
		if err := f.copyTo.write(fr); err != nil {
			return f.fail(err)
		}
	}
	if f.progress != nil && f.frames&(1<<12-1) == 0 {
		f.progress.tick()
	}
	return nil
}

// flush hands on what was copied so far.
func (f *feed) flush() {
	if f.copyTo != nil && f.copyErr == nil {
		if err := f.copyTo.flush(); err != nil {
			_ = f.fail(err) // kept in copyErr
		}
	}
}

// fail notes that copying failed; the error where that ends the reading.
func (f *feed) fail(err error) error {
	f.copyErr = err
	if f.lost == nil {
		return err
	}
	f.lost(err)
	return nil
}

// Rewind begins anew.
func (f *feed) Rewind() error {
	f.frames, f.stopped = 0, false
	if f.progress != nil {
		f.progress.pass++
	}
	return f.source.(interface{ Rewind() error }).Rewind()
}

// Dropped gives how many packets the source is known to lack.
func (f *feed) Dropped() uint64 {
	if d, ok := f.source.(analyze.Dropper); ok {
		return d.Dropped()
	}
	return 0
}

// Counted reports whether the source knows all that it lacks.
func (f *feed) Counted() bool {
	d, ok := f.source.(analyze.Dropper)
	return ok && d.Counted()
}

// Close closes the source.
func (f *feed) Close() error { return f.source.Close() }

// stop makes the next frame the end.
func (f *feed) stop() { f.stopped = true }

// progress writes one line to standard error while a long reading goes on.
type progress struct {
	w       io.Writer
	in      *capture.Input
	pass    int // 0: the first of passes
	passes  int
	begun   time.Time
	shown   time.Time
	visible bool
}

const (
	progressAfter = 700 * time.Millisecond
	progressEvery = 200 * time.Millisecond
)

// newProgress gives a progress line for a reading in so many passes; nil where
// nobody would see it or where it would stand in the way of the output.
func (a *app) newProgress(in *capture.Input, passes int) *progress {
	if a.flags.quiet || !isTerminal(a.err) {
		return nil
	}
	return &progress{w: a.err, in: in, passes: passes, begun: time.Now()}
}

func (p *progress) tick() {
	now := time.Now()
	if now.Sub(p.begun) < progressAfter || now.Sub(p.shown) < progressEvery {
		return
	}
	p.shown = now
	read, total := p.in.Progress()
	p.visible = true
	if total > 0 {
		share := (float64(p.pass) + float64(read)/float64(total)) / float64(max(p.passes, p.pass+1))
		fmt.Fprintf(p.w, "\r\x1b[Kreading %.0f%%", 100*share)
		return
	}
	fmt.Fprintf(p.w, "\r\x1b[Kreading %.1f MB", float64(read)/1e6)
}

// done wipes the line.
func (p *progress) done() {
	if p != nil && p.visible {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.visible = false
	}
}
