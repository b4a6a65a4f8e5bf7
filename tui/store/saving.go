package store

import (
	"errors"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// Saver writes frames to a capture file.
type Saver interface {
	// Abort gives the file up. It replaces Close, and leaves an older file as it
	// was.
	Abort() error
	Write(*capture.Frame) error
	Close() error
}

// Saving is a background job that writes packets to a capture file. Its readers
// hold the store's lock.
type Saving struct {
	Total   int
	Written int
	Err     error // set when Done
	Done    bool
}

// Save starts to write the packets that a filter job has found. A nil job
// writes all packets.
func (s *Store) Save(out Saver, job *FilterJob) *Saving {
	x := &Saving{Total: s.Len()}
	if job != nil {
		x.Total = job.Rows()
	}
	s.Work(func() {
		err := x.write(s, job, out)
		if err == nil {
			err = out.Close()
		} else {
			err = errors.Join(err, out.Abort())
		}
		s.Lock()
		defer s.Unlock()
		x.Err, x.Done = err, true
		s.notify()
	})
	return x
}

// write copies the packets, batch by batch.
func (x *Saving) write(s *Store, job *FilterJob, out Saver) error {
	near := s.in.RangeReader()
	near.Expect(capture.MostRange)
	var frame capture.Frame
	var buf []byte
	type at struct {
		ref    machine.Ref
		offset int64
	}
	list := make([]at, 0, batch)
	for row := 0; row < x.Total; {
		list = list[:0]
		s.Lock()
		for ; row < x.Total && len(list) < batch; row++ {
			n, ok := row, true
			if job != nil {
				n, ok = job.Entry(row)
			}
			if !ok {
				x.Total = row
				break
			}
			ref, offset := s.timeline.Where(n)
			list = append(list, at{ref, offset})
		}
		x.Written = row
		s.notify()
		s.Unlock()
		for _, p := range list {
			var err error
			if buf, err = near.ReadAt(p.ref, p.offset, &frame, buf); err != nil {
				return err
			}
			if err := out.Write(&frame); err != nil {
				return err
			}
		}
	}
	return nil
}
