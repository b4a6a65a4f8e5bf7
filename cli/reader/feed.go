package reader

import (
	"fmt"
	"io"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/machine"
)

// Feed stands between a source and the analysis: it can end the reading, copies
// frames to a file, and knows what the listing needs of the frames around one.
type Feed struct {
	Source   capture.Source
	CopyTo   *Save
	Most     uint64 // frames to give; 0 for all
	Progress *progress

	Frames   uint64
	Start    machine.Instant // of the first frame
	Previous machine.Instant // of the frame before the last one given
	latest   machine.Instant
	stopped  bool
	CopyErr  error
	Lost     func(error) // told when copying fails, where the reading is to go on
}

// Next gives the next frame; io.EOF once stopped.
func (f *Feed) Next(fr *capture.Frame) error {
	if f.stopped || f.Most > 0 && f.Frames == f.Most {
		return io.EOF
	}
	if err := f.Source.Next(fr); err != nil {
		return err
	}
	f.Previous = f.latest
	f.latest = fr.At
	if f.Frames == 0 {
		f.Start, f.Previous = fr.At, fr.At
	}
	f.Frames++
	if f.CopyTo != nil && f.CopyErr == nil {
		if err := f.CopyTo.Write(fr); err != nil {
			return f.fail(err)
		}
	}
	if f.Progress != nil && f.Frames&(1<<12-1) == 0 {
		f.Progress.tick()
	}
	return nil
}

// Flush hands on what was copied so far.
func (f *Feed) Flush() {
	if f.CopyTo != nil && f.CopyErr == nil {
		if err := f.CopyTo.flush(); err != nil {
			_ = f.fail(err) // kept in copyErr
		}
	}
}

// fail notes that copying failed; the error where that ends the reading.
func (f *Feed) fail(err error) error {
	f.CopyErr = err
	if f.Lost == nil {
		return err
	}
	f.Lost(err)
	return nil
}

// Rewind begins anew.
func (f *Feed) Rewind() error {
	f.Frames, f.stopped = 0, false
	if f.Progress != nil {
		f.Progress.pass++
	}
	return f.Source.(interface{ Rewind() error }).Rewind()
}

// Dropped gives how many packets the source is known to lack.
func (f *Feed) Dropped() uint64 {
	if d, ok := f.Source.(analyze.Dropper); ok {
		return d.Dropped()
	}
	return 0
}

// Counted reports whether the source knows all that it lacks.
func (f *Feed) Counted() bool {
	d, ok := f.Source.(analyze.Dropper)
	return ok && d.Counted()
}

// Close closes the source.
func (f *Feed) Close() error { return f.Source.Close() }

// Stop makes the next frame the end.
func (f *Feed) Stop() { f.stopped = true }

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
	ProgressAfter = 700 * time.Millisecond
	ProgressEvery = 200 * time.Millisecond
)

// NewProgress gives a progress line for a reading in so many passes; nil where
// nobody would see it or where it would stand in the way of the output.
func NewProgress(a *app.App, in *capture.Input, passes int) *progress {
	if a.Flags.Quiet || !app.IsTerminal(a.Err) {
		return nil
	}
	return &progress{w: a.Err, in: in, passes: passes, begun: time.Now()}
}

func (p *progress) tick() {
	now := time.Now()
	if now.Sub(p.begun) < ProgressAfter || now.Sub(p.shown) < ProgressEvery {
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

// Done wipes the line.
func (p *progress) Done() {
	if p != nil && p.visible {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.visible = false
	}
}
