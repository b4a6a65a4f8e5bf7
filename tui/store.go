package tui

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/scale"
	"github.com/ackscope/ackscope/show"
)

// Store is the capture as the screens ask for it: an index that grows in the
// background while it is being read. Packet bytes stay in the file.
//
// A file is read twice. The first run enters the frames and learns what only
// the whole capture teaches, so the list and the flows are there at once; the
// second fills in what each frame settled, and checkpoints of the states. What
// comes from a pipe or an interface may never end, so its first run does both.
//
// The lock is held for a batch of frames at a time. Every method but Start and
// Stop wants it held by the caller.
type Store struct {
	sync.Mutex
	in       *capture.Input
	options  analyze.Options
	growing  bool // a pipe or an interface: it may never end
	most     int  // bytes that entries and checkpoints may take; 0 for any number
	beyond   int  // frames that came when they were taken up: they are not shown
	timeline *analyze.Timeline

	session *analyze.Session // whose flows are shown
	survey  *analyze.Survey  // what the first run learned; nil before
	first   machine.Instant  // of the first frame
	last    machine.Instant
	pass    int              // the run that goes on: 1 or 2; 3 when all is read
	end     error            // how reading ended; nil for a clean end
	version int              // changes when flows or settled facts may read otherwise
	figures map[int]*figures // by flow

	stop    chan struct{}
	stopped sync.WaitGroup
	restore func() // gives the terminal back before a fault is told; nil for none
	walks   int    // datagrams that are stepped over at once to tell a state
	// approach is the walk that goes on to a packet far behind a checkpoint; nil for none.
	approach   *approach
	approached int           // walks that came there
	share      int           // steps that a key or a drawing may take
	spent      int           // of them, so far
	spawn      func(func())  // begins what runs in the background, as a goroutine
	changed    chan struct{} // told after every batch; one waiting is enough
}

// sparkCells is how many stretches of time a flow's small graph has.
const sparkCells = 24

// figures is what the screens tell of a flow beyond its summary.
type figures struct {
	worst time.Duration // longest that a message lay complete and was held back
	spark [sparkCells]uint32
}

// NewStore makes a store over an input that can be read at random (capture.KeepAll).
func NewStore(in *capture.Input, o analyze.Options, growing bool) *Store {
	s := &Store{in: in, options: o, growing: growing, timeline: analyze.NewTimeline(in), stop: make(chan struct{}), changed: make(chan struct{}, 1), pass: 1, share: shareSteps, walks: walkAtOnce, spawn: func(f func()) { go f() }}
	s.timeline.Spacing(checkpointBytes, checkpointSpare)
	s.begin(nil)
	return s
}

// Bound sets how many bytes the index may take, with its checkpoints. What comes beyond is still read, as a live capture's -w wants it,
// but neither kept nor analysed. The flows are bounded by the analysis' Limits.
func (s *Store) Bound(bytes int) { s.most = bytes }

// isBeyond reports whether the nth frame of a run is beyond the bound.
func (s *Store) isBeyond(n int) bool {
	switch {
	case s.most == 0:
		return false
	case s.pass == 2:
		return n >= s.timeline.Len() // what the first run kept
	}
	return s.beyond > 0 || s.timeline.Size() > s.most
}

// checkpointBytes is what checkpoints may take for each packet: with the 24 of
// the index it stays below 40. checkpointSpare is what they may take besides,
// which brings a capture of a million packets to some hundred datagrams a jump.
const (
	checkpointBytes = 13
	checkpointSpare = 24 << 20
)

// Start begins to read.
func (s *Store) Start() {
	s.stopped.Add(1)
	s.work(func() {
		defer s.stopped.Done()
		s.read()
	})
}

// work runs something in the background. A fault in it gives the terminal back
// before it ends the program: what is told of it must be readable.
func (s *Store) work(f func()) {
	s.spawn(func() {
		defer func() {
			if fault := recover(); fault != nil {
				if s.restore != nil {
					s.restore()
				}
				panic(fault)
			}
		}()
		f()
	})
}

// Stop ends reading and closes the input. A reader that waits for a pipe is not
// waited for.
func (s *Store) Stop() error {
	close(s.stop)
	done := make(chan struct{})
	go func() { s.stopped.Wait(); close(done) }()
	select {
	case <-done:
		return s.in.Close()
	case <-time.After(200 * time.Millisecond):
		return nil
	}
}

// Changed tells, coalesced, that there is more to show.
func (s *Store) Changed() <-chan struct{} { return s.changed }

func (s *Store) tell() {
	s.version++
	s.poke()
}

// poke has the screen drawn anew: what is known is the same, what is shown is not.
func (s *Store) poke() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// begin prepares the session of a run.
func (s *Store) begin(survey *analyze.Survey) *analyze.Session {
	o := s.options
	o.Survey = survey
	if survey != nil || s.growing {
		o.Sink = s.record
	}
	if o.Limits != (analyze.Limits{}) {
		o.Gone = func(f *analyze.Flow, _ analyze.Reason) {
			s.timeline.Forget(f)
			delete(s.figures, f.ID)
		}
	}
	session := analyze.NewSession(o)
	if survey == nil {
		s.session = session
	}
	s.timeline.Again(session)
	s.figures = map[int]*figures{}
	return session
}

func (s *Store) record(r *analyze.Record) {
	s.timeline.Record(r)
	f := r.Flow
	if f == nil {
		return
	}
	x := s.figuresOf(f.ID)
	if r.Frame != nil && !r.More {
		x.spark[s.stretch(r.Datagram.At)]++
	}
	for i := range r.Messages {
		x.worst = max(x.worst, r.Messages[i].Wait)
	}
}

func (s *Store) figuresOf(flow int) *figures {
	x := s.figures[flow]
	if x == nil {
		x = &figures{}
		s.figures[flow] = x
	}
	return x
}

// stretch says in which part of the capture an instant lies.
func (s *Store) stretch(at machine.Instant) int {
	return scale.Position(at, s.first, s.last, sparkCells)
}

// read does both runs.
func (s *Store) read() {
	s.Lock()
	session := s.session
	s.Unlock()
	err := s.run(session)
	var cut *capture.CutError
	var damaged *capture.DamageError
	if err != nil && !errors.As(err, &cut) && !errors.As(err, &damaged) {
		s.finish(session, err)
		return
	}
	if rewind := s.in.Rewind(); rewind != nil {
		s.finish(session, errors.Join(err, rewind))
		return
	}
	s.Lock()
	s.survey, s.end, s.pass, s.beyond = session.Survey(), err, 2, 0
	session = s.begin(s.survey)
	s.Unlock()
	if !errors.Is(s.run(session), errStopped) {
		s.finish(session, err)
	}
}

func (s *Store) finish(session *analyze.Session, err error) {
	s.Lock()
	defer s.Unlock()
	s.session, s.end, s.pass = session, err, 3
	s.tell()
}

var errStopped = errors.New("stopped")

// batch is how many frames are taken under one lock: about a millisecond.
const batch = 1024

// run feeds the session all frames; nil for a clean end.
func (s *Store) run(session *analyze.Session) error {
	decoder := capture.NewDecoder(s.options.Decode)
	var f capture.Frame
	var p capture.Packet
	for n := 0; ; n++ {
		if s.growing || n%batch == 0 {
			if n > 0 {
				s.tell()
				s.Unlock()
			}
			select {
			case <-s.stop:
				return errStopped
			default:
			}
			if !s.growing {
				s.Lock()
			}
		}
		err := s.in.Next(&f) // of a pipe: outside of the lock
		if s.growing {
			s.Lock()
		}
		if err != nil {
			session.Finish()
			s.tell()
			s.Unlock()
			if err == io.EOF { //nolint:errorlint // a clean end is io.EOF itself; a cut may wrap one
				err = nil
			}
			return err
		}
		if s.isBeyond(n) {
			s.beyond++
			continue
		}
		if s.pass == 1 {
			if n == 0 {
				s.first = f.At
			}
			s.last = max(s.last, f.At)
		}
		decoder.Decode(&f, &p)
		session.Feed(&f, &p)
		s.timeline.Note(&f, &p, session.Landed())
	}
}

// Len is how many frames there are so far.
func (s *Store) Len() int { return s.timeline.Len() }

// Flows lists the flows so far.
func (s *Store) Flows() []*analyze.Flow { return s.session.Flows() }

// FlowOf gives the flow of an entry; nil for none.
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

// Frame names a frame for people: with its file where there are several.
func (s *Store) Frame(ref machine.Ref) string {
	if s.in.Files() > 1 {
		return fmt.Sprintf("%d:%d", ref.File()+1, ref.Frame())
	}
	return fmt.Sprint(ref.Frame())
}

// reading prepares what turns records into those of filters.
func (s *Store) reading() *filter.Reading {
	return &filter.Reading{Start: s.first, Previous: s.first, FileName: s.in.FileName}
}

// StateAt draws both sides of a flow at an entry.
func (s *Store) StateAt(f *analyze.Flow, n int, views *[2]machine.View) error {
	if f.Protocol == nil {
		return fmt.Errorf("flow %d has no state: %s", f.ID, f.Verdict.Reason)
	}
	if f.Protocol.NewTracker == nil {
		return fmt.Errorf("flow %d has no state: %s is decoded, what its sides knew is not followed", f.ID, f.Protocol.Title)
	}
	tracker, err := s.timeline.StateAt(f, s.timeline.At(n).Ref)
	if err != nil {
		return err
	}
	for side := range views {
		views[side].Reset()
		tracker.Inspect(machine.Side(side), &views[side])
	}
	return nil
}

// placeOf says where an entry is read again.
func (s *Store) placeOf(n int) place {
	ref, offset := s.timeline.Where(n)
	return place{entry: n, ref: ref, offset: offset, flow: s.timeline.FlowID(n)}
}

// wait lets time pass for more frames to come; false where stop was told.
func (s *Store) wait(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return false
	case <-s.stop:
		return false
	case <-time.After(50 * time.Millisecond):
		return true
	}
}

// timeAt gives when an entry's frame passed the tap; the first frame's time
// where there is none.
func (s *Store) timeAt(n int) machine.Instant {
	if n < 0 || n >= s.Len() {
		return s.first
	}
	s.spend(readSteps)
	r, err := s.timeline.Read(n)
	if err != nil {
		return s.first
	}
	return r.Datagram.At
}
