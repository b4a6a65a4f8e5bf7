package store

import (
	"io"
	"sync/atomic"

	"github.com/ackscope/ackscope/capture"
)

// reread reads the frames of the store from the first on, beside the run that
// fills it and without its lock: for readers that want a capture of their own.
type reread struct {
	store   *Store
	near    *capture.RangeReader
	end     int // entries that there were at the beginning
	next    int
	places  []place
	buf     []byte
	stop    chan struct{}
	read    atomic.Int64 // frames given since the beginning, or since it began anew
	rewound atomic.Bool  // it has begun anew
}

// newReread wants the store's lock held.
func newReread(s *Store) *reread {
	a := &reread{store: s, near: s.in.RangeReader(), end: s.Len(), stop: make(chan struct{})}
	a.near.Expect(capture.MostRange)
	return a
}

// Next returns the next frame, valid until the one after it; io.EOF behind the last.
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
		a.store.tell()
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

// Rewind begins anew.
func (a *reread) Rewind() error {
	a.next, a.places = 0, nil
	a.read.Store(0)
	a.rewound.Store(true)
	return nil
}

// Close does nothing: the input is the store's.
func (a *reread) Close() error { return nil }
