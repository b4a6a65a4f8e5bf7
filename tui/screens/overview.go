package screens

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cause"
	"github.com/ackscope/ackscope/overview"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// Overview says what is wrong in the capture, and where. The cursor moves between the titles of
// flows and the troubles; Enter goes there.
type Overview struct {
	flows  *FlowTable   // finds what the flows have in common
	replay *ReplayTable // compares them with the references

	list  draw.List // lines; the cursor is at a target, if there is one
	lines []string
	goals []goal // in the order of their lines

	// What the lines were made of.
	session *analyze.Session
	version int
	settled bool
	width   int
	judged  *store.Replay
	cause   *cause.Report
	made    time.Time
}

// goal is a line that Enter opens.
type goal struct {
	line int
	mark overview.Mark
}

// Limits of what is done without being asked. Both take about a second.
const (
	flowsJudged   = 20_000  // flows of an overview: they are ranked while the screen waits
	packetsJudged = 200_000 // packets that are replayed for it
)

// overviewAgain is how long the page of a live capture stays. It can be read meanwhile, and making
// it takes milliseconds.
const overviewAgain = 2 * time.Second

// settle makes the page anew when more is known.
func (o *Overview) settle(br *browser.Browser, width int) {
	s := br.Store
	if !s.Settled() && !s.Growing() {
		return
	}
	o.flows.cause.settle(s)
	judged := o.judge(br)
	report := o.flows.cause.report
	now := time.Now()
	known := o.session == s.Session() && o.judged == judged && o.cause == report && o.width == width &&
		o.settled == s.Settled()
	if o.lines != nil && known && (o.version == s.Version() || now.Sub(o.made) < overviewAgain) {
		return
	}
	if report == nil && o.lines == nil && !s.Growing() {
		return // it is on its way
	}
	o.session, o.version, o.settled, o.width = s.Session(), s.Version(), s.Settled(), width
	o.judged, o.cause, o.made = judged, report, now
	o.goals = o.goals[:0]
	if n := len(s.Flows()); n > flowsJudged {
		o.lines = strings.Split(show.Wrap(fmt.Sprintf("%s: too many for an overview here. The command ackscope FILE "+
			"prints one. Tab lists the flows, F the findings.", show.Plural(n, "flow")), "", width), "\n")
		return
	}
	in := s.Overview()
	in.Name, in.Cause = filepath.Base(s.FileName(0)), report
	switch {
	case s.Several():
		in.Name = show.Plural(s.Input().Files(), "file")
	case in.Name == "-":
		in.Name = "standard input"
	}
	if judged != nil {
		in.Replay = overview.NewVerdicts(judged.File)
	}
	text, marks := overview.New(in, overview.FlowsShown).Text(&overview.Page{Paint: true, Width: width})
	o.lines = strings.Split(strings.TrimRight(text, "\n"), "\n")
	line, at := 0, 0
	for _, m := range marks {
		line += strings.Count(text[at:m.At], "\n")
		at = m.At
		o.goals = append(o.goals, goal{line, m})
	}
	if len(o.goals) > 0 && !o.atGoal() {
		o.list.Cursor = o.goals[0].line
	}
}

// judge returns a finished replay of the flows, or nil. It begins one where that takes a second.
func (o *Overview) judge(br *browser.Browser) *store.Replay {
	s := br.Store
	if !s.Settled() {
		return nil
	}
	if o.replay.work == nil && s.Len() <= packetsJudged {
		o.replay.ensure(br)
	}
	if w := o.replay.work; w != nil && w.Done() && w.File != nil && w.Behaviour == "" && !w.Matrix {
		return w
	}
	return o.judged
}

func (o *Overview) atGoal() bool { _, ok := o.goal(); return ok }

// goal returns the goal at the cursor.
func (o *Overview) goal() (overview.Mark, bool) {
	for _, g := range o.goals {
		if g.line == o.list.Cursor {
			return g.mark, true
		}
	}
	return overview.Mark{}, false
}

// Area implements Table.
func (o *Overview) Area() (rows *draw.List, line, width int) { return &o.list, 2, 0 }

// Move moves the cursor by goals. Beyond the last one, and without any, it moves by lines.
func (o *Overview) Move(_ *browser.Browser, by int) {
	at := o.list.Cursor
	for ; by > 0; by-- {
		next := at
		for _, g := range o.goals {
			if g.line > at {
				next = g.line
				break
			}
		}
		if next == at {
			at += by
			break
		}
		at = next
	}
	for ; by < 0; by++ {
		next := at
		for _, g := range o.goals {
			if g.line < at {
				next = g.line
			}
		}
		if next == at {
			at += by
			break
		}
		at = next
	}
	o.list.Cursor = min(max(at, 0), max(len(o.lines)-1, 0))
}

// Enter opens the packets of the flow at the cursor, or the packet that shows the trouble. Without
// either, it opens the list of flows.
func (o *Overview) Enter(br *browser.Browser) {
	m, ok := o.goal()
	switch {
	case !ok:
		br.Show(browser.Flows)
	case m.Frame == 0:
		br.Open(m.Flow.ID)
	default:
		br.JumpRef(m.Frame)
		if br.View == browser.Packets && br.Store.FlowID(br.Selected) == m.Flow.ID {
			br.OpenFlow(m.Flow.ID)
		}
	}
}

// Matches searches the lines.
func (o *Overview) Matches(_ *browser.Browser, s *Search) (rows, at int, has func(row int) bool) {
	return len(o.lines), o.list.Cursor, func(row int) bool { return s.finds(draw.StripStyles(o.lines[row])) }
}

// GoTo implements scroller: the cursor may be at any line that a search finds.
func (o *Overview) GoTo(_ *browser.Browser, row int) { o.list.Cursor = row }

// End implements scroller.
func (o *Overview) End(br *browser.Browser, way int) { o.Move(br, way*len(o.lines)) }

// Page implements scroller.
func (o *Overview) Page(*browser.Browser) int { return max(o.list.Height/4, 1) }

// Copy returns the page.
func (o *Overview) Copy(*browser.Browser) string { return plainText(o.lines) }

// About implements Screen.
func (o *Overview) About(br *browser.Browser) Subject {
	m, ok := o.goal()
	if !ok {
		return Subject{Entry: -1}
	}
	return Subject{Entry: entryOf(br, m.Frame), Flow: m.Flow}
}

// Draw draws the page. Long pages have the worst flows only, so it is one or two screens.
func (o *Overview) Draw(br *browser.Browser, c draw.Canvas) {
	o.settle(br, c.W-2)
	if o.lines == nil {
		c.Text(2, 1, draw.Dim, "reading the capture: "+br.Store.Progress())
		c.Text(2, 2, draw.Dim, "Tab lists the flows that are found so far")
		return
	}
	o.list.Fit(len(o.lines), c.H)
	for y := range c.H {
		i := o.list.Top + y
		if i >= len(o.lines) {
			break
		}
		over := draw.Text
		if i == o.list.Cursor && len(o.goals) > 0 {
			over = draw.Selected
			c.Fill(y, over)
			c.Text(0, y, over, "▶")
		}
		c.SGR(1, y, over, o.lines[i])
	}
	if more := len(o.lines) - o.list.Top - c.H; more > 0 {
		c.Right(c.W-1, c.H-1, draw.Dim, fmt.Sprintf(" %d more ▾", more))
	}
}
