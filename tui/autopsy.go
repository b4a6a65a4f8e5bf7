package tui

import (
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/tui/store"
)

// autopsyPage is the page of one flow. It is written in the background and kept
// while nothing changes it.
type autopsyPage struct {
	flow  int
	pass  int
	lines []string
	done  bool
	stop  bool // nobody waits for it any more
}

// autopsyMost bounds the packets that are walked for a page.
const autopsyMost = 2_000_000

// write makes the page. The lock is let go between stretches of the walk.
func (p *autopsyPage) write(m *Model, f *analyze.Flow) {
	s := m.store
	s.Lock()
	defer s.Unlock()
	lines := m.o.Autopsy(f, s.Last(), func(sink analyze.Sink) {
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
		lines = append([]string{"the connection had not ended when the capture did, or its protocol tells no end", ""}, p.lastWords(s, f)...)
	}
	p.lines, p.done = lines, true
	s.Poke()
}

// autopsy gives the page of the flow in focus.
func (m *Model) autopsy() []string {
	f := m.focus()
	switch {
	case f == nil:
		return []string{"\x1b[2mno flow here\x1b[0m"}
	case m.o.Autopsy == nil || f.Protocol == nil || f.Protocol.NewTracker == nil:
		return []string{"\x1b[2mnothing is known of how connections of this flow's protocol end\x1b[0m"}
	case !m.store.Settled() && !m.store.Growing():
		return []string{"\x1b[2mthe capture is being read: " + m.store.Progress() + "\x1b[0m"}
	}
	p := m.ended
	if p == nil || p.flow != f.ID || p.pass != m.store.Pass() {
		if p != nil {
			p.stop = true
		}
		p = &autopsyPage{flow: f.ID, pass: m.store.Pass()}
		m.ended = p
		m.store.Work(func() { p.write(m, f) })
	}
	if !p.done {
		return []string{"\x1b[2mlooking through the connection …\x1b[0m"}
	}
	return p.lines
}

// lastWords says when each side was last seen, for a flow without a page. The lock
// is let go now and then: a side may have been silent for most of the capture.
func (p *autopsyPage) lastWords(s *store.Store, f *analyze.Flow) (out []string) {
	for _, side := range []machine.Side{machine.A, machine.B} {
		n, ok := s.LastOf(f)
		for i := 1; ok && !p.stop && s.Entry(n).Marks.From() != side; i++ {
			n, ok = s.Previous(n)
			s.Yield(i)
		}
		if ok {
			out = append(out, strings.ToUpper(side.String())+"  last seen in frame "+s.Frame(s.Entry(n).Ref)+", "+waitText(s.Last().Sub(s.TimeAt(n)))+" before the capture's end")
		}
	}
	return out
}
