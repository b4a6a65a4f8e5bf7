package capture

import (
	"io"
	"sync"
)

const (
	// aheadParts are how many parts of a file may be unpacked ahead, and aheadBytes
	// how long each is. They fit the cache of a core beside the states of the flows.
	// Source: bound, half a megabyte
	aheadParts = 4
	aheadBytes = 128 << 10
)

// ahead unpacks a gzip file on a goroutine of its own, a few parts ahead of its reader. The bytes
// and the error are those of the decompressor, in its order. A panic of the decompressor becomes
// one of the reader. It does not serve zstd, which takes a third of the time: two threads gained
// nothing.
type ahead struct {
	src   io.Reader
	full  chan aheadPart
	free  chan []byte
	quit  chan struct{}
	group sync.WaitGroup
	rest  []byte    // of last, not yet returned
	last  aheadPart // the newest part that the reader took
}

// aheadPart is a run of unpacked bytes, and what followed them: nil if that was the next part.
type aheadPart struct {
	bytes []byte
	err   error
	panic any
}

// startAhead starts to unpack. The caller ends it with stop, and leaves src alone until then.
func startAhead(src io.Reader) *ahead {
	a := &ahead{
		src: src, full: make(chan aheadPart, aheadParts), free: make(chan []byte, aheadParts),
		quit: make(chan struct{}),
	}
	for range aheadParts {
		a.free <- nil
	}
	a.group.Go(a.unpack)
	return a
}

// stop ends the goroutine and waits for its end. It may be called on nil.
func (a *ahead) stop() {
	if a != nil {
		close(a.quit)
		a.group.Wait()
	}
}

// unpack fills parts until the source ends or stop is called.
func (a *ahead) unpack() {
	for {
		var b []byte
		select {
		case b = <-a.free:
		case <-a.quit:
			return
		}
		if b == nil {
			b = make([]byte, aheadBytes)
		}
		part := a.fill(b)
		a.full <- part // there are no more parts than it has room for
		if part.err != nil || part.panic != nil {
			return
		}
	}
}

// fill reads until a part is full or the source ends.
func (a *ahead) fill(b []byte) (part aheadPart) {
	n := 0
	defer func() {
		part.bytes, part.panic = b[:n], recover()
	}()
	for empty := 0; n < len(b) && part.err == nil; {
		var got int
		got, part.err = a.src.Read(b[n:])
		n += got
		if got > 0 {
			empty = 0
		} else if empty++; empty == emptyReads && part.err == nil {
			part.err = io.ErrNoProgress
		}
	}
	return part
}

// Read implements io.Reader.
func (a *ahead) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.last.panic != nil {
			panic(a.last.panic)
		}
		if a.last.err != nil {
			return 0, a.last.err
		}
		if cap(a.last.bytes) > 0 {
			a.free <- a.last.bytes[:cap(a.last.bytes)]
		}
		a.last = <-a.full
		a.rest = a.last.bytes
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}
