package analyze

import (
	"errors"
	"io"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/host"
)

// Run reads a source to its end through a new session. The error is that of the
// source, or nil for a clean end. After a *capture.CutError or
// *capture.DamageError the session holds everything before that point.
func Run(src capture.Source, o Options) (*Session, error) {
	list, err := runAll(src, []Options{o})
	return list[0], err
}

// RunBeside reads a source to its end through two new sessions at a time, so that each frame is
// read and decoded once. The sessions know nothing of each other. The error is that of Run.
func RunBeside(src capture.Source, first, second Options) ([2]*Session, error) {
	list, err := runAll(src, []Options{first, second})
	return [2]*Session(list), err
}

// Drive feeds the session all frames of a source. The error is that of Run.
func (s *Session) Drive(src capture.Source, d *capture.Decoder) error {
	return drive(src, d, []*Session{s})
}

func drive(src capture.Source, d *capture.Decoder, sessions []*Session) error {
	for _, s := range sessions {
		s.attend(src)
	}
	var f capture.Frame
	var p capture.Packet
	for {
		if err := src.Next(&f); err != nil {
			for _, s := range sessions {
				s.noteFragments(d)
			}
			if x, ok := src.(Dropper); ok {
				for _, s := range sessions {
					s.CaptureDropped(x.Dropped())
					s.counted = x.Counted()
				}
			}
			if err == io.EOF { //nolint:errorlint // a clean end is io.EOF itself; a cut may wrap one
				err = nil
			}
			return err
		}
		d.Decode(&f, &p)
		for _, s := range sessions {
			s.Feed(&f, &p)
			if s.options.Fed != nil {
				s.options.Fed(&f, &p, s.lastFlow)
			}
		}
	}
}

// noteFragments notes whether a decoder had room for all fragments.
func (s *Session) noteFragments(d *capture.Decoder) {
	s.crammed = s.crammed || d.FragmentStats().Evicted > 0
}

// Dropper is a source that knows how many packets the capture lacks, and
// whether it counted all of them. The answers are final at the end of the
// source. capture.Input is a Dropper.
type Dropper interface {
	Dropped() uint64
	Counted() bool
}

// Rewinder is a source that can be read again. capture.Input is a Rewinder.
type Rewinder interface {
	capture.Source
	Rewind() error
}

// Until returns a source that ends with the error of stop, as soon as stop
// returns one. It serves a sink that needs no more records.
func Until(src Rewinder, stop func() error) Rewinder { return &until{src, stop} }

type until struct {
	Rewinder
	stop func() error
}

func (u *until) Next(f *capture.Frame) error {
	if err := u.stop(); err != nil {
		return err
	}
	return u.Rewinder.Next(f)
}

// Dropped and Counted make it a Dropper if the source is one.
func (u *until) Dropped() uint64 {
	d, ok := u.Rewinder.(Dropper)
	if !ok {
		return 0
	}
	return d.Dropped()
}

// Host and InterfaceName make it Hosted if the source is.
func (u *until) Host() *host.Timeline {
	if h, ok := u.Rewinder.(Hosted); ok {
		return h.Host()
	}
	return nil
}

func (u *until) InterfaceName(file, index int) string {
	return u.Rewinder.(Hosted).InterfaceName(file, index) // asked only where Host returned samples
}

func (u *until) Counted() bool {
	d, ok := u.Rewinder.(Dropper)
	return ok && d.Counted()
}

// RunTwice reads a source twice. The first run learns what only the whole
// capture shows. The second run starts with it: every flow has its protocol
// from its first packet on, and every event its final grade. The sink of o
// receives the second run.
func RunTwice(src Rewinder, o Options) (*Session, error) {
	s, err := Learn(src, o)
	if err != nil {
		return s, err
	}
	o.Survey = s.Survey()
	return Run(src, o)
}

// Learn does the first run of RunTwice, for callers that need the flows before
// the second. If that run shows that a flow is read by the wrong profile, Learn
// reads the source once more. It rewinds the source. It returns no error for a
// capture that is cut or damaged, because the second run returns the same one.
// The findings about relayed messages are missing: see LearnFindings.
func Learn(src Rewinder, o Options) (*Session, error) {
	o.NoRelays = true
	return LearnFindings(src, o)
}

// LearnFindings is Learn for a caller that reads the findings of the first run too.
func LearnFindings(src Rewinder, o Options) (*Session, error) {
	o.Sink, o.Split, o.Survey, o.Fed, o.Gone = nil, nil, nil, nil, nil
	s, err := Run(src, o)
	for again := true; ; again = false {
		if err != nil && !endsEarly(err) {
			return s, err
		}
		if err := src.Rewind(); err != nil {
			return s, err
		}
		if !again || !s.Misread() {
			return s, nil
		}
		o.Survey, o.Untracked = s.Survey(), false
		s, err = Run(src, o)
	}
}

// endsEarly reports whether a source ended in the middle of a capture, after frames that count.
func endsEarly(err error) bool {
	var cut *capture.CutError
	var damaged *capture.DamageError
	return errors.As(err, &cut) || errors.As(err, &damaged)
}
