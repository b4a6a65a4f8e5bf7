package tui

import (
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
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
	lines := m.o.Autopsy(f, s.last, func(sink analyze.Sink) {
		w, err := s.timeline.Walk(f, 0)
		if err != nil {
			return
		}
		for n := range autopsyMost {
			if n%collectSteps == collectSteps-1 {
				s.Unlock()
				s.Lock()
			}
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
	s.poke()
}

// autopsy gives the page of the flow in focus.
func (m *Model) autopsy() []string {
	f := m.focus()
	switch {
	case f == nil:
		return []string{"\x1b[2mno flow here\x1b[0m"}
	case m.o.Autopsy == nil || f.Protocol == nil || f.Protocol.NewTracker == nil:
		return []string{"\x1b[2mnothing is known of how connections of this flow's protocol end\x1b[0m"}
	case !m.store.Settled() && !m.store.growing:
		return []string{"\x1b[2mthe capture is being read: " + m.store.Progress() + "\x1b[0m"}
	}
	p := m.ended
	if p == nil || p.flow != f.ID || p.pass != m.store.pass {
		if p != nil {
			p.stop = true
		}
		p = &autopsyPage{flow: f.ID, pass: m.store.pass}
		m.ended = p
		m.store.work(func() { p.write(m, f) })
	}
	if !p.done {
		return []string{"\x1b[2mlooking through the connection …\x1b[0m"}
	}
	return p.lines
}

// lastWords says when each side was last seen, for a flow without a page. The lock
// is let go now and then: a side may have been silent for most of the capture.
func (p *autopsyPage) lastWords(s *Store, f *analyze.Flow) (out []string) {
	for _, side := range []machine.Side{machine.A, machine.B} {
		n, ok := s.timeline.Last(f)
		for i := 1; ok && !p.stop && s.timeline.At(n).Marks.From() != side; i++ {
			if n, ok = s.timeline.Previous(n); i%shareSteps == 0 {
				s.Unlock()
				s.Lock()
			}
		}
		if ok {
			out = append(out, strings.ToUpper(side.String())+"  last seen in frame "+s.Frame(s.timeline.At(n).Ref)+", "+waitText(s.last.Sub(s.timeAt(n)))+" before the capture's end")
		}
	}
	return out
}
