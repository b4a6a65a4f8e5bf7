package batching

import (
	"fmt"
	"sync"
	"time"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
)

// progress prints one line on standard error, as the commands that read captures do.
type progress struct {
	app     *app.App
	begun   time.Time
	mu      sync.Mutex
	shown   time.Time
	visible bool
}

func newProgress(a *app.App) *progress { return &progress{app: a, begun: time.Now()} }

// tell shows how far the run is.
func (p *progress) tell(at batch.Progress) {
	if p.app.Flags.Quiet || !app.IsTerminal(p.app.Err) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.begun) < reader.ProgressAfter || now.Sub(p.shown) < reader.ProgressEvery {
		return
	}
	p.shown, p.visible = now, true
	fmt.Fprintf(p.app.Err, "\r\x1b[Kanalysing captures: %d of %d (%.0f%%)", at.Done, at.Of,
		100*float64(at.Done)/float64(max(1, at.Of)))
}

// done wipes the line.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.visible {
		fmt.Fprint(p.app.Err, "\r\x1b[K")
	}
}
