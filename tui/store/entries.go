package store

import (
	"fmt"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Len is how many frames there are so far.
func (s *Store) Len() int { return s.timeline.Len() }

// Flows lists the flows so far.
func (s *Store) Flows() []*analyze.Flow { return s.session.Flows() }

// FlowOf returns the flow of an entry; nil for none.
func (s *Store) FlowOf(n int) *analyze.Flow {
	return s.session.Flow(s.timeline.FlowID(n))
}

// Settled reports whether everything is known that can be.
func (s *Store) Settled() bool { return s.pass == 3 }

// Progress says in a few words how far reading is; empty when it is over.
func (s *Store) Progress() string {
	if s.beyond > 0 {
		return "full (--memory): " + show.Grouped(s.beyond) + " more not kept"
	}
	if s.pass == 3 {
		return ""
	}
	word := [...]string{1: "reading", 2: "settling"}[s.pass]
	if s.growing && s.pass == 1 {
		return "following"
	}
	if read, total := s.in.Progress(); total > 0 {
		return fmt.Sprintf("%s %d%%", word, 100*read/total)
	}
	return word
}

// Flow returns a flow by its number; nil for none.
func (s *Store) Flow(id int) *analyze.Flow { return s.session.Flow(id) }

// FlowID returns the number of an entry's flow; 0 for none.
func (s *Store) FlowID(n int) int { return s.timeline.FlowID(n) }

// Entry returns what the index holds of an entry, from 0.
func (s *Store) Entry(n int) analyze.Entry { return s.timeline.At(n) }

// Find returns the entry of a frame; false where the index does not hold it.
func (s *Store) Find(ref machine.Ref) (int, bool) { return s.timeline.Find(ref) }

// LastOf returns the last entry of a flow so far; false where it has none.
func (s *Store) LastOf(f *analyze.Flow) (int, bool) { return s.timeline.Last(f) }

// Previous returns the entry before one of the same flow; false for none.
func (s *Store) Previous(n int) (int, bool) { return s.timeline.Previous(n) }

// Read reads an entry's packet from the file. It is valid until the next one is read.
func (s *Store) Read(n int) (*analyze.Record, error) { return s.timeline.Read(n) }

// Walk steps a flow, from the last checkpoint before an entry on.
func (s *Store) Walk(f *analyze.Flow, n int) (*analyze.Walk, error) { return s.timeline.Walk(f, n) }

// First returns the time of the first frame, and Last the latest of all so far.
func (s *Store) First() machine.Instant { return s.first }

// Last returns the latest time of all frames so far.
func (s *Store) Last() machine.Instant { return s.last }

// Session returns the analysis whose flows are shown. The second run has flows of its own.
func (s *Store) Session() *analyze.Session { return s.session }

// Behaviours lists those of the protocols of the capture.
func (s *Store) Behaviours() (names []string) {
	for _, p := range s.options.Registry.Protocols() {
		for _, b := range p.Behaviours {
			names = append(names, b.Name)
		}
	}
	return names
}

// Input returns what is read, for who saves frames of it.
func (s *Store) Input() *capture.Input { return s.in }

// FileName names a file of the input, from 0.
func (s *Store) FileName(file int) string { return s.in.FileName(file) }

// Several reports whether the input is of several files, so that a frame's number
// alone does not name it.
func (s *Store) Several() bool { return s.in.Files() > 1 }

// Growing reports whether more may come without an end: from a pipe or an interface.
func (s *Store) Growing() bool { return s.growing }

// Learning reports whether the first run over a file goes on: what only the whole
// capture teaches is not known yet.
func (s *Store) Learning() bool { return s.pass == 1 && !s.growing }

// Pass is the run that goes on: 1 or 2; 3 when all is read. What is told of a packet
// may differ between them.
func (s *Store) Pass() int { return s.pass }

// Version changes when flows or settled facts may read otherwise.
func (s *Store) Version() int { return s.version }

// Err says how reading ended before the capture's end; nil where it has not.
func (s *Store) Err() error { return s.end }

// Frame names a frame for people: with its file where there are several.
func (s *Store) Frame(ref machine.Ref) string {
	if s.in.Files() > 1 {
		return fmt.Sprintf("%d:%d", ref.File()+1, ref.Frame())
	}
	return fmt.Sprint(ref.Frame())
}

// FrameAt names an entry's frame for people.
func (s *Store) FrameAt(n int) string { return s.Frame(s.timeline.At(n).Ref) }

// TimeAt returns when an entry's frame passed the tap; the first frame's time
// where there is none.
func (s *Store) TimeAt(n int) machine.Instant {
	if n < 0 || n >= s.Len() {
		return s.first
	}
	s.Spend(ReadSteps)
	r, err := s.timeline.Read(n)
	if err != nil {
		return s.first
	}
	return r.Datagram.At
}

// placeOf says where an entry is read again.
func (s *Store) placeOf(n int) place {
	ref, offset := s.timeline.Where(n)
	return place{entry: n, ref: ref, offset: offset, flow: s.timeline.FlowID(n)}
}
