package screens

import (
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cause"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// commonCause compares the flows in the background: a hundred thousand take seconds. A capture
// that grows is compared again and again, and one from a file at its end.
type commonCause struct {
	session *analyze.Session // of the last comparison
	version int              // of the store at that time
	begun   time.Time
	running bool
	report  *cause.Report
	text    string // what the flows have in common; empty if too few were compared
	found   bool   // there is a cause
}

// due reports whether a new comparison may begin.
func (c *commonCause) due(s *store.Store, now time.Time) bool {
	switch {
	case c.running || !s.Settled() && !s.Growing():
		return false
	case c.session != s.Session():
		return true
	}
	return c.version != s.Version() && (s.Settled() || now.Sub(c.begun) >= cause.Again)
}

// settle begins a comparison if one is due.
func (c *commonCause) settle(s *store.Store) {
	now := time.Now()
	if !c.due(s, now) {
		return
	}
	c.session, c.version, c.begun, c.running = s.Session(), s.Version(), now, true
	g := cause.Gather(s.Session())
	s.Work(func() {
		if !s.Parts(func() bool { return g.Take(store.FlowsAtOnce) }) {
			return
		}
		r := g.Compare()
		s.Lock()
		defer s.Unlock()
		c.running, c.report = false, r
		c.text, c.found = strings.Join(r.Sentences(), " "), len(r.Verdicts) > 0
		s.Redraw()
	})
}

// causeShare is how much of the screen the common cause takes at most: one line in five. In a
// terminal of 24 lines that is four.
const causeShare = 5

// drawCause draws what the troubles of the flows have in common below the table. It returns the
// rest of the canvas.
func (t *FlowTable) drawCause(br *browser.Browser, c draw.Canvas) draw.Canvas {
	t.cause.settle(br.Store)
	most := c.H / causeShare
	if t.cause.text == "" || most == 0 {
		return c
	}
	lines := draw.WrapLine(t.cause.text, c.W-2)
	if len(lines) > most {
		lines = lines[:most]
		lines[most-1] = draw.Cut(lines[most-1], c.W-4) + " …"
	}
	role := draw.Dim
	if t.cause.found {
		role = draw.Warn
	}
	for y, line := range lines {
		c.Text(1, c.H-len(lines)+y, role, line)
	}
	return c.Part(0, 0, c.W, c.H-len(lines))
}
