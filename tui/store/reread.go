package store

import (
	"io"
	"sync/atomic"

	"github.com/ackscope/ackscope/capture"
)

// reread reads the store's frames again, from the first. It runs beside the run
// that fills the store. It serves readers that need a capture of their own,
// such as a replay.
type reread struct {
	store   *Store
	near    *capture.RangeReader
	end     int // number of entries at the start
	next    int
	places  []place
	buf     []byte
	stop    chan struct{}
	read    atomic.Int64 // frames returned since the start or the last Rewind
	rewound atomic.Bool  // Rewind was called
}

// newReread requires the store's lock.
func newReread(s *Store) *reread {
	a := &reread{store: s, near: s.in.RangeReader(), end: s.Len(), stop: make(chan struct{})}
	a.near.Expect(capture.MostRange)
	return a
}

// Next returns the next frame, which is valid until the following call. It
// returns io.EOF after the last.
func (a *reread) Next(f *capture.Frame) error {
	if a.next >= a.end {
		return io.EOF
	}
	if len(a.places) == 0 {
		select {
		case <-a.stop:
			return errStopped
		case <-a.store.stop:
			return errStopped
		default:
		}
		a.store.Lock()
		a.places = a.places[:0]
		for n := a.next; n < min(a.next+batch, a.end); n++ {
			a.places = append(a.places, a.store.placeOf(n))
		}
		a.store.notify()
		a.store.Unlock()
	}
	p := a.places[0]
	a.places = a.places[1:]
	a.next++
	a.read.Add(1)
	var err error
	a.buf, err = a.near.ReadAt(p.ref, p.offset, f, a.buf)
	return err
}

// Rewind restarts at the first frame.
func (a *reread) Rewind() error {
	a.next, a.places = 0, nil
	a.read.Store(0)
	a.rewound.Store(true)
	return nil
}

// Close does nothing: the input belongs to the store.
func (a *reread) Close() error { return nil }
