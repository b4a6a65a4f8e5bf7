package main

import (
	"fmt"
	"os"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// save writes frames to a pcapng file.
type save struct {
	file   *os.File
	w      *capture.Writer
	of     func(file, index int) capture.Interface // describes an interface of the source
	ids    map[[2]int]int                          // (file, interface) to the written id
	frames uint64
}

// newSave begins a capture file; "-" is standard output.
func (a *app) newSave(path string, of func(file, index int) capture.Interface) (*save, error) {
	s := &save{of: of, ids: map[[2]int]int{}}
	var err error
	options := capture.WriterOptions{Application: "ackscope", FlushEvery: time.Second}
	if path == "-" {
		s.w, err = capture.NewWriter(a.out, options)
		return s, err
	}
	if s.file, err = os.Create(path); err != nil {
		return nil, fmt.Errorf("-w: %w", err)
	}
	s.w, err = capture.NewWriter(s.file, options)
	return s, err
}

func (s *save) write(f *capture.Frame) error {
	key := [2]int{f.Ref.File(), f.Interface}
	id, ok := s.ids[key]
	if !ok {
		in := s.of(key[0], key[1])
		in.LinkType = f.LinkType
		var err error
		if id, err = s.w.AddInterface(in); err != nil {
			return fmt.Errorf("-w: %w", err)
		}
		s.ids[key] = id
	}
	copied := *f
	copied.Interface = id
	copied.Ref = machine.Ref(0)
	if err := s.w.WriteFrame(&copied); err != nil {
		return fmt.Errorf("-w: %w", err)
	}
	s.frames++
	return nil
}

// close ends the file with the counts of the interface, where there are some.
func (s *save) close(st *capture.Statistics) error {
	if st != nil {
		for _, id := range s.ids {
			s.w.SetStatistics(id, *st)
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
