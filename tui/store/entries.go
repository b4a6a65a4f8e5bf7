package store

import (
	"fmt"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Len returns the number of frames so far.
func (s *Store) Len() int { return s.timeline.Len() }

// Flows returns the flows so far.
func (s *Store) Flows() []*analyze.Flow { return s.session.Flows() }

// FlowOf returns the flow of an entry, or nil.
func (s *Store) FlowOf(n int) *analyze.Flow {
	return s.session.Flow(s.timeline.FlowID(n))
}

// Settled reports whether the whole capture has been read and analysed.
func (s *Store) Settled() bool { return s.pass == 3 }

// Progress describes the state of reading in a few words. It returns "" at the
// end.
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

// Flow returns the flow with a number, or nil.
func (s *Store) Flow(id int) *analyze.Flow { return s.session.Flow(id) }

// FlowID returns the number of an entry's flow, or 0.
func (s *Store) FlowID(n int) int { return s.timeline.FlowID(n) }

// Entry returns what the index holds for an entry, counted from 0.
func (s *Store) Entry(n int) analyze.Entry { return s.timeline.At(n) }

// Find returns the entry of a frame. It returns false if the index does not
// hold it.
func (s *Store) Find(ref machine.Ref) (int, bool) { return s.timeline.Find(ref) }

// LastOf returns the last entry of a flow so far. It returns false if there is
// none.
func (s *Store) LastOf(f *analyze.Flow) (int, bool) { return s.timeline.Last(f) }

// Previous returns the entry of the same flow before entry n. It returns false
// if there is none.
func (s *Store) Previous(n int) (int, bool) { return s.timeline.Previous(n) }

// Read reads an entry's packet from the file. The record is valid until the
// next Read.
func (s *Store) Read(n int) (*analyze.Record, error) { return s.timeline.Read(n) }

// Walk steps a flow, starting from the last checkpoint before an entry.
func (s *Store) Walk(f *analyze.Flow, n int) (*analyze.Walk, error) { return s.timeline.Walk(f, n) }

// First returns the time of the first frame.
func (s *Store) First() machine.Instant { return s.first }

// Last returns the latest time of all frames so far.
func (s *Store) Last() machine.Instant { return s.last }

// Session returns the analysis whose flows are shown. The second run over a
// file replaces them.
func (s *Store) Session() *analyze.Session { return s.session }

// Behaviours returns the names of the behaviours of every registered protocol.
func (s *Store) Behaviours() (names []string) {
	for _, p := range s.options.Registry.Protocols() {
		for _, b := range p.Behaviours {
			names = append(names, b.Name)
		}
	}
	return names
}

// Input returns the input, for code that saves its frames.
func (s *Store) Input() *capture.Input { return s.in }

// FileName returns the name of a file of the input, counted from 0.
func (s *Store) FileName(file int) string { return s.in.FileName(file) }

// Several reports whether the input has several files. A frame's number alone
// is then ambiguous.
func (s *Store) Several() bool { return s.in.Files() > 1 }

// Growing reports whether the input may never end: a pipe or an interface.
func (s *Store) Growing() bool { return s.growing }

// Learning reports whether the first run over a file is still running. What
// only the whole capture shows is not known until then.
func (s *Store) Learning() bool { return s.pass == 1 && !s.growing }

// Pass returns the current run: 1 or 2, and 3 when reading has ended. A run can
// change what earlier ones said about a packet.
func (s *Store) Pass() int { return s.pass }

// Version changes whenever flows or settled facts may have changed.
func (s *Store) Version() int { return s.version }

// Err returns the error that ended reading, or nil.
func (s *Store) Err() error { return s.end }

// Frame formats a frame's number. It includes the file's number if there are
// several.
func (s *Store) Frame(ref machine.Ref) string {
	if s.in.Files() > 1 {
		return fmt.Sprintf("%d:%d", ref.File()+1, ref.Frame())
	}
	return fmt.Sprint(ref.Frame())
}

// FrameAt formats the frame number of an entry.
func (s *Store) FrameAt(n int) string { return s.Frame(s.timeline.At(n).Ref) }

// TimeAt returns when an entry's frame passed the tap. It returns the first
// frame's time if there is no such entry.
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

// placeOf returns where an entry's frame can be read.
func (s *Store) placeOf(n int) place {
	ref, offset := s.timeline.Where(n)
	return place{entry: n, ref: ref, offset: offset, flow: s.timeline.FlowID(n)}
}
