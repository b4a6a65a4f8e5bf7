package reader

import (
	"fmt"
	"io"
	"sync"
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
	among   string // "capture 12 of 340, " for one of several recordings
	begun   time.Time
	shown   time.Time
	mu      sync.Mutex // files are read ahead
	visible bool
}

// A line of progress appears after ProgressAfter, and changes every
// ProgressEvery.
const (
	ProgressAfter = 700 * time.Millisecond
	ProgressEvery = 200 * time.Millisecond
)

// newProgress returns the progress line of a reading in several passes. It
// returns nil with -q, and if standard error is not a terminal. For one of
// several recordings, the line names its position and appears at once if the
// command has taken long.
func newProgress(a *app.App, from *Recording, in *capture.Input, passes int) *progress {
	if a.Flags.Quiet || !app.IsTerminal(a.Err) {
		return nil
	}
	p := &progress{w: a.Err, in: in, passes: passes, begun: time.Now()}
	if from.of > 1 {
		p.among, p.begun = fmt.Sprintf("capture %d of %d, ", from.number, from.of), from.begun
		p.tick()
	}
	return p
}

func (p *progress) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.begun) < ProgressAfter || now.Sub(p.shown) < ProgressEvery {
		return
	}
	p.shown = now
	read, total := p.in.Progress()
	p.visible = true
	if total > 0 {
		share := (float64(p.pass) + float64(read)/float64(total)) / float64(max(p.passes, p.pass+1))
		fmt.Fprintf(p.w, "\r\x1b[Kreading %s%.0f%%", p.among, 100*share)
		return
	}
	fmt.Fprintf(p.w, "\r\x1b[Kreading %s%.1f MB", p.among, float64(read)/1e6)
}

// done wipes the line.
func (p *progress) done() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.visible {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.visible = false
	}
}
