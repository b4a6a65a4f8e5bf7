package screens

import (
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/store"
)

// Autopsy shows how a connection ended.
type Autopsy struct {
	describe AutopsyFunc
	page     *autopsyPage // on screen, or being written; nil for none
	lines
}

// AutopsyFunc describes how a connection ended, in lines of text. It calls each
// to receive the connection's records. It returns no lines for a connection
// that had not ended by the instant end.
type AutopsyFunc = func(f *analyze.Flow, end machine.Instant, each func(analyze.Sink)) []string

// Enter does nothing: a page has nothing to open.
func (*Autopsy) Enter(*browser.Browser) {}

// Draw draws the page of the flow in focus.
func (a *Autopsy) Draw(br *browser.Browser, c draw.Canvas) {
	f := br.Focus()
	title := "autopsy"
	if f != nil {
		title = fmt.Sprintf("autopsy of flow %d", f.ID)
	}
	c.Rule(0, title, true)
	br.Text.Lines = nil
	for _, line := range a.text(br) {
		br.Text.Lines = append(br.Text.Lines, draw.WrapLine(line, c.W-2)...)
	}
	br.Text.Draw(c.Part(1, 1, c.W-1, c.H-1))
}

// autopsyPage is the page of one flow. It is written in the background, and
// kept until another flow or run replaces it.
type autopsyPage struct {
	flow  int
	pass  int
	lines []string
	done  bool
	stop  bool // another page has replaced it
}

// autopsyMost limits the packets that are stepped over for a page.
const autopsyMost = 2_000_000

// write writes the page. It releases the lock after each batch of the walk.
func (p *autopsyPage) write(s *store.Store, f *analyze.Flow, describe AutopsyFunc) {
	s.Lock()
	defer s.Unlock()
	lines := describe(f, s.Last(), func(sink analyze.Sink) {
		w, err := s.Walk(f, 0)
		if err != nil {
			return
		}
		for n := range autopsyMost {
			s.Yield(n)
			r := w.Next()
			if r == nil || p.stop {
				break
			}
			sink(r)
		}
		if r := w.Finish(); r != nil {
			sink(r)
		}
	})
	if len(lines) == 0 {
		lines = append([]string{"the connection had not ended when the capture did, or its protocol tells no end", ""},
			p.lastSeen(s, f)...)
	}
	p.lines, p.done = lines, true
	s.Redraw()
}

// text returns the page of the flow in focus.
func (a *Autopsy) text(br *browser.Browser) []string {
	f := br.Focus()
	switch {
	case f == nil:
		return []string{"\x1b[2mno flow here\x1b[0m"}
	case a.describe == nil || f.Protocol == nil || f.Protocol.NewTracker == nil:
		return []string{"\x1b[2mnothing is known of how connections of this flow's protocol end\x1b[0m"}
	case !br.Store.Settled() && !br.Store.Growing():
		return []string{"\x1b[2mthe capture is being read: " + br.Store.Progress() + "\x1b[0m"}
	}
	p := a.page
	if p == nil || p.flow != f.ID || p.pass != br.Store.Pass() {
		if p != nil {
			p.stop = true
		}
		p = &autopsyPage{flow: f.ID, pass: br.Store.Pass()}
		a.page = p
		br.Store.Work(func() { p.write(br.Store, f, a.describe) })
	}
	if !p.done {
		return []string{"\x1b[2mlooking through the connection …\x1b[0m"}
	}
	return p.lines
}

// lastSeen says when each side was last seen, for a flow without a page. It
// releases the lock from time to time: a side may have been silent for most of
// the capture.
func (p *autopsyPage) lastSeen(s *store.Store, f *analyze.Flow) (out []string) {
	for _, side := range []machine.Side{machine.A, machine.B} {
		n, ok := s.LastOf(f)
		for i := 1; ok && !p.stop && s.Entry(n).Marks.From() != side; i++ {
			n, ok = s.Previous(n)
			s.Yield(i)
		}
		if ok {
			out = append(out, strings.ToUpper(side.String())+"  last seen in frame "+s.Frame(s.Entry(n).Ref)+", "+
				show.Wait(s.Last().Sub(s.TimeAt(n)))+" before the capture's end")
		}
	}
	return out
}
