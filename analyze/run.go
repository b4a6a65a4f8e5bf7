package analyze

import (
	"errors"
	"io"

	"github.com/ackscope/ackscope/capture"
)

// Run reads a source to its end through a new session. The error is how the
// source ended, nil for a clean end: a *capture.CutError or *capture.DamageError
// leaves a session that holds everything up to there.
func Run(src capture.Source, o Options) (*Session, error) {
	s := NewSession(o)
	err := s.Drive(src, capture.NewDecoder(o.Decode))
	s.Finish()
	return s, err
}

// Drive feeds the session all that a source gives. The error is Run's.
func (s *Session) Drive(src capture.Source, d *capture.Decoder) error {
	var f capture.Frame
	var p capture.Packet
	for {
		if err := src.Next(&f); err != nil {
			if x, ok := src.(Dropper); ok {
				s.CaptureDropped(x.Dropped())
				s.counted = x.Counted()
			}
			if err == io.EOF { //nolint:errorlint // a clean end is io.EOF itself; a cut may wrap one
				err = nil
			}
			return err
		}
		d.Decode(&f, &p)
		s.Feed(&f, &p)
		if s.options.Fed != nil {
			s.options.Fed(&f, &p, s.landed)
		}
	}
}

// Dropper is a source that knows how many packets the capture lacks, at its end
// for certain, and whether all that it lacks was counted; capture.Input is one.
type Dropper interface {
	Dropped() uint64
	Counted() bool
}

// Rewinder is a source that can be read again; capture.Input is one.
type Rewinder interface {
	capture.Source
	Rewind() error
}

// Until returns a source that is read until stop gives an error, which is then how it
// ends: for a sink that has had enough.
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

// Dropped and Counted make it a Dropper where the source is one.
func (u *until) Dropped() uint64 {
	d, ok := u.Rewinder.(Dropper)
	if !ok {
		return 0
	}
	return d.Dropped()
}

func (u *until) Counted() bool {
	d, ok := u.Rewinder.(Dropper)
	return ok && d.Counted()
}

// RunTwice reads a source once to learn what only the whole capture teaches,
// and again with that known: every flow has its protocol from its first packet
// on, and every event its final grade. The options' sink sees the second run.
func RunTwice(src Rewinder, o Options) (*Session, error) {
	s, err := Learn(src, o)
	if err != nil {
		return s, err
	}
	o.Survey = s.Survey()
	return Run(src, o)
}

// Learn is the first run of RunTwice, for those who want to know the flows before
// the second: it leaves the source at its begin. A capture that is cut or damaged
// is no error here, since the second run meets the same.
func Learn(src Rewinder, o Options) (*Session, error) {
	o.Sink, o.Survey, o.Fed, o.Gone = nil, nil, nil, nil
	s, err := Run(src, o)
	var cut *capture.CutError
	var damaged *capture.DamageError
	if err != nil && !errors.As(err, &cut) && !errors.As(err, &damaged) {
		return s, err
	}
	return s, src.Rewind()
}
