package store

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
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

	Budget
	// Spawn begins what runs in the background: as a goroutine, unless it is set
	// before Start.
	Spawn func(func())
	// OnFault gives the terminal back before a fault is told; nil for nothing.
	OnFault func()

	stop    chan struct{}
	stopped sync.WaitGroup
	// approach is the walk that goes on to a packet far behind a checkpoint; nil for none.
	approach   *approach
	approached int           // walks that came there
	changed    chan struct{} // told after every batch; one waiting is enough
}

// New makes a store over an input that can be read at random (capture.KeepAll).
func New(in *capture.Input, o analyze.Options, growing bool) *Store {
	s := &Store{
		in: in, options: o, growing: growing, timeline: analyze.NewTimeline(in), pass: 1,
		Budget: Budget{Share: shareSteps, Walks: walkAtOnce}, Spawn: func(f func()) { go f() },
		stop: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	s.timeline.Spacing(checkpointBytes, checkpointSpare)
	s.begin(nil)
	return s
}

// Bound sets how many bytes the index may take, with its checkpoints. What comes beyond
// is still read, as a live capture's -w wants it, but neither kept nor analysed. The
// flows are bounded by the analysis' Limits.
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
	s.Work(func() {
		defer s.stopped.Done()
		s.read()
	})
}

// Work runs something in the background. A fault in it gives the terminal back
// before it ends the program: what is told of it must be readable.
func (s *Store) Work(f func()) {
	s.Spawn(func() {
		defer func() {
			if fault := recover(); fault != nil {
				if s.OnFault != nil {
					s.OnFault()
				}
				panic(fault)
			}
		}()
		f()
	})
}

// Parts calls step until it gives false, each time with the lock held, and lets go of
// the lock between. It is for work in the background that is too much for one lock.
// It gives false where the store was stopped before.
func (s *Store) Parts(step func() (more bool)) bool {
	for more := true; more; {
		select {
		case <-s.stop:
			return false
		default:
		}
		s.Lock()
		more = step()
		s.Unlock()
	}
	return true
}

// Yield lets others have the lock at every few hundredth step of a long walk.
func (s *Store) Yield(step int) {
	if step%collectSteps == collectSteps-1 {
		s.Unlock()
		s.Lock()
	}
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

// tell has the screen drawn anew, since more is known.
func (s *Store) tell() {
	s.version++
	s.Poke()
}

// Poke has the screen drawn anew: what is known is the same, what is shown is not.
func (s *Store) Poke() {
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
	s.timeline.Refill(session)
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
		x.traffic[s.stretch(r.Datagram.At)]++
	}
	for i := range r.Messages {
		x.worst = max(x.worst, r.Messages[i].Wait)
	}
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
		s.timeline.Note(&f, &p, session.LastFlow())
	}
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
