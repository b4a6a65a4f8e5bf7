package reader

import (
	"fmt"
	"io"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
)

// progress prints one line on standard error during a long reading.
type progress struct {
	w       io.Writer
	in      *capture.Input
	pass    int // from 0
	passes  int
	begun   time.Time
	shown   time.Time
	visible bool
}

// A line of progress appears after ProgressAfter, and changes every
// ProgressEvery.
const (
	ProgressAfter = 700 * time.Millisecond
	ProgressEvery = 200 * time.Millisecond
)

// newProgress returns the progress line of a reading in several passes. It
// returns nil with -q, and if standard error is not a terminal.
func newProgress(a *app.App, in *capture.Input, passes int) *progress {
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

// done wipes the line.
func (p *progress) done() {
	if p != nil && p.visible {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.visible = false
	}
}
