package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// save writes frames to a pcapng file, or to a row of them.
type save struct {
	out      io.Writer // where the capture goes when it is no file
	file     *os.File
	w        *capture.Writer
	of       func(file, index int) capture.Interface // describes an interface of the source
	ids      map[[2]int]int                          // (file, interface) to the written id
	last     [2]int                                  // the key of the frame before, and
	lastID   int                                     // its id: mostly there is one interface
	frames   uint64
	rotation *rotation // nil for a single file
	// counts gives the counts of the interfaces so far, for a file that is full;
	// nil where there are none.
	counts func() ([]capture.Statistics, error)
}

// newSave begins a capture file; "-" is standard output.
func (a *app) newSave(path string, of func(file, index int) capture.Interface) (*save, error) {
	s := &save{of: of}
	if path == "-" {
		s.out = a.out
		return s, s.begin(path)
	}
	return s, s.begin(path)
}

// newRotation begins the first of a row of files.
func (a *app) newRotation(r *rotation, of func(file, index int) capture.Interface) (*save, error) {
	s := &save{of: of, rotation: r}
	return s, s.begin(r.next(time.Now()))
}

// begin opens a file and writes its head.
func (s *save) begin(path string) (err error) {
	w := s.out
	if w == nil {
		if s.file, err = os.Create(path); err != nil {
			return fmt.Errorf("-w: %w", err)
		}
		w = s.file
	}
	s.ids = map[[2]int]int{}
	if s.w, err = capture.NewWriter(w, capture.WriterOptions{Application: "ackscope", FlushEvery: time.Second}); err != nil {
		return fmt.Errorf("-w: %w", err)
	}
	return nil
}

func (s *save) write(f *capture.Frame, comments ...string) error {
	if s.rotation != nil && s.rotation.full(s.w.Written(), f.At) {
		if err := s.turn(); err != nil {
			return err
		}
	}
	key := [2]int{f.Ref.File(), f.Interface}
	id, ok := s.lastID, key == s.last && len(s.ids) > 0
	if !ok {
		id, ok = s.ids[key]
	}
	if !ok {
		in := s.of(key[0], key[1])
		in.LinkType = f.LinkType
		var err error
		if id, err = s.w.AddInterface(in); err != nil {
			return fmt.Errorf("-w: %w", err)
		}
		s.ids[key] = id
	}
	s.last, s.lastID = key, id
	copied := *f
	copied.Interface = id
	copied.Ref = machine.Ref(0)
	if err := s.w.WriteFrame(&copied, comments...); err != nil {
		return fmt.Errorf("-w: %w", err)
	}
	s.frames++
	if s.rotation != nil {
		s.rotation.note(f.At)
	}
	return nil
}

// turn ends the file that is full and begins the next.
func (s *save) turn() error {
	var st []capture.Statistics
	if s.counts != nil {
		var err error
		if st, err = s.counts(); err != nil {
			return err
		}
	}
	if err := s.close(st); err != nil {
		return err
	}
	if err := s.begin(s.rotation.next(time.Now())); err != nil {
		return err
	}
	return s.rotation.prune()
}

// flush hands what was written on to the system.
func (s *save) flush() error {
	if err := s.w.Flush(); err != nil {
		return fmt.Errorf("-w: %w", err)
	}
	return nil
}

// close ends the file with the counts of the interfaces of a live capture, where
// there are some.
func (s *save) close(st []capture.Statistics) error {
	for key, id := range s.ids {
		if key[1] < len(st) {
			s.w.SetStatistics(id, st[key[1]])
		}
	}
	err := s.w.Close()
	if s.file != nil {
		if closeErr := s.file.Close(); err == nil {
			err = closeErr
		}
	}
	if err != nil {
		return fmt.Errorf("-w: %w", err)
	}
	return nil
}

// interfacesOf describes the interfaces of opened captures for a save.
func interfacesOf(in *capture.Input) func(file, index int) capture.Interface {
	return func(file, index int) capture.Interface {
		if list := in.Interfaces(file); index < len(list) {
			return list[index]
		}
		return capture.Interface{}
	}
}
