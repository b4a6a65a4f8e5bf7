package store

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/gamelog"
	"github.com/ackscope/ackscope/machine"
)

// Store holds a capture for the screens. Its index grows in the background
// while the capture is read. The bytes of packets stay in the file.
//
// A file is read twice:
//
//  1. The first run enters the frames, so that the packets and flows appear at
//     once. It also learns what only the whole capture shows.
//  2. The second run fills in what each frame settled, and leaves checkpoints
//     of the states.
//
// A pipe or an interface may never end, so its first run does both.
//
// A run holds the lock for one batch of frames at a time. Every method except
// Start and Stop requires the caller to hold it.
type Store struct {
	sync.Mutex
	in       *capture.Input
	options  analyze.Options
	growing  bool // a pipe or an interface: the input may never end
	most     int  // bytes that entries and checkpoints may take; 0 for no limit
	beyond   int  // frames read after the limit was reached; they are not shown
	timeline *analyze.Timeline

	session *analyze.Session // the analysis whose flows are shown
	survey  *analyze.Survey  // what the first run learned; nil until then
	first   machine.Instant  // time of the first frame
	last    machine.Instant
	pass    int              // the current run: 1 or 2; 3 when all is read
	end     error            // the error that ended reading; nil for a clean end
	version int              // changes when flows or settled facts may have changed
	figures map[int]*figures // by flow number

	Budget
	// Spawn starts background work. It starts a goroutine unless it was replaced
	// before Start.
	Spawn func(func())
	// OnFault, if set, restores the terminal before a panic is printed.
	OnFault func()

	logs   Logs            // the game's own logs; nil without
	trace  analyze.Sink    // what the logs are aligned with; nil in a run that does not settle packets
	report *gamelog.Report // what the logs say; nil until all is read

	newStudy func() Study // nil if no overview is wanted
	study    Study        // of the run that settles packets; nil without

	stop    chan struct{}
	stopped sync.WaitGroup
	// approach is the running walk to a packet far behind a checkpoint, or nil.
	approach   *approach
	approached int           // number of walks that reached their packets
	changed    chan struct{} // signalled after every batch; one pending signal is enough
}

// New returns a store for an input that allows random reads (capture.KeepAll).
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

// Bound limits the bytes of the index and its checkpoints. Frames over the
// limit are still read, since -w may save them, but they are neither kept nor
// analysed. The Limits of the analysis bound the flows.
func (s *Store) Bound(bytes int) { s.most = bytes }

// isBeyond reports whether the nth frame of a run is over the limit.
func (s *Store) isBeyond(n int) bool {
	switch {
	case s.most == 0:
		return false
	case s.pass == 2:
		return n >= s.timeline.Len() // as many as the first run kept
	}
	return s.beyond > 0 || s.timeline.Size() > s.most
}

// checkpointBytes limits the checkpoints to so many bytes per packet. With the
// 24 bytes of the index this stays below 40. checkpointSpare is allowed in
// addition: in a capture of a million packets a jump then steps some hundred
// datagrams.
const (
	checkpointBytes = 13
	checkpointSpare = 24 << 20
)

// Start starts to read in the background.
func (s *Store) Start() {
	s.stopped.Add(1)
	s.Work(func() {
		defer s.stopped.Done()
		s.read()
	})
}

// Work runs f in the background. If f panics, Work restores the terminal first,
// so that the message is readable.
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

// Parts calls step with the lock held until step returns false. It releases the
// lock between calls. It is for background work that is too long for one lock.
// It returns false if the store was stopped before the end.
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

// Yield releases the lock for a moment at every 512th step of a long walk.
func (s *Store) Yield(step int) {
	if step%collectSteps == collectSteps-1 {
		s.Unlock()
		s.Lock()
	}
}

// Stop stops reading and closes the input. It waits at most 200 ms, since a
// read from a pipe may block.
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

// Changed returns a channel that signals when there is more to show. Pending
// signals are merged.
func (s *Store) Changed() <-chan struct{} { return s.changed }

// notify requests a redraw because more is known.
func (s *Store) notify() {
	s.version++
	s.Redraw()
}

// Redraw requests a redraw because the screen, and not the store, has changed.
func (s *Store) Redraw() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// begin returns the session of a new run.
func (s *Store) begin(survey *analyze.Survey) *analyze.Session {
	o := s.options
	o.Survey = survey
	if survey != nil || s.growing {
		o.Sink = s.record
		s.follow()
		if s.newStudy != nil {
			s.study = s.newStudy()
		}
	}
	if o.Limits != (analyze.Limits{}) {
		o.Gone = func(f *analyze.Flow, why analyze.Reason) {
			if s.study != nil {
				s.study.Forget(f, why)
			}
			s.timeline.Forget(f)
			delete(s.figures, f.ID)
			if s.logs != nil {
				s.logs.Forget(f)
			}
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
	if s.trace != nil {
		s.trace(r)
	}
	if s.study != nil {
		s.study.Take(r)
	}
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

// read makes both runs, and a third where the first read a flow by the wrong profile.
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
	misread := session.Misread()
	session = s.begin(s.survey)
	s.Unlock()
	if errors.Is(s.run(session), errStopped) {
		return
	}
	if misread && s.in.Rewind() == nil {
		// That run was the first to read a flow by the right profile: what it learned serves one more.
		s.Lock()
		s.survey, s.beyond = session.Survey(), 0
		session = s.begin(s.survey)
		s.Unlock()
		if errors.Is(s.run(session), errStopped) {
			return
		}
	}
	s.finish(session, err)
}

func (s *Store) finish(session *analyze.Session, err error) {
	report := s.align(session)
	s.Lock()
	defer s.Unlock()
	s.session, s.end, s.pass, s.report = session, err, 3, report
	s.notify()
}

var errStopped = errors.New("stopped")

// batch is how many frames are read under one lock: about a millisecond of
// work.
const batch = 1024

// run feeds all frames to the session. It returns nil for a clean end.
func (s *Store) run(session *analyze.Session) error {
	decoder := capture.NewDecoder(s.options.Decode)
	var f capture.Frame
	var p capture.Packet
	for n := 0; ; n++ {
		if s.growing || n%batch == 0 {
			if n > 0 {
				s.notify()
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
		err := s.in.Next(&f) // a pipe may block here: the lock is not held
		if s.growing {
			s.Lock()
		}
		if err != nil {
			session.Finish()
			s.notify()
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

// wait waits 50 ms for more frames. It returns false if stop or the store was
// closed.
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
