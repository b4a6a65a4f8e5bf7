package capture

import (
	"io"
)

// stream reads a file in large chunks and lends out stretches of the chunk, so
// that records need no copy. It never allocates by what a record claims: the
// buffer doubles only when it is full of bytes that were really there.
type stream struct {
	src  io.Reader
	buf  []byte
	r, w int   // buf[r:w] is read and not yet consumed
	base int64 // offset in the file of buf[0]
	err  error // what src ended with; io.EOF at a clean end
}

const (
	chunkSize    = 256 << 10
	minChunkSize = 64 << 10
)

func newStream(src io.Reader, size int) *stream {
	return &stream{src: src, buf: make([]byte, size)}
}

// reset begins anew at offset 0 of src.
func (s *stream) reset(src io.Reader) {
	s.src, s.r, s.w, s.base, s.err = src, 0, 0, 0, nil
}

// offset is that of the next byte.
func (s *stream) offset() int64 { return s.base + int64(s.r) }

// have is how many bytes can be had without reading.
func (s *stream) have() int { return s.w - s.r }

// need makes the next n bytes present in buf[r:]; false where the source ends
// or fails before (err says which). What was lent out before is overwritten.
func (s *stream) need(n int) bool {
	if s.w-s.r >= n {
		return true
	}
	if s.r > 0 {
		copy(s.buf, s.buf[s.r:s.w])
		s.base += int64(s.r)
		s.w -= s.r
		s.r = 0
	}
	for s.w < n {
		if s.err != nil {
			return false
		}
		if s.w == len(s.buf) {
			s.buf = append(s.buf, make([]byte, len(s.buf))...)
		}
		s.read(s.buf[s.w:])
	}
	return true
}

// read takes in what one Read gives: no waiting to fill the chunk, so that
// a live pipe is followed frame by frame.
func (s *stream) read(into []byte) {
	for range 100 {
		n, err := s.src.Read(into)
		s.w += n
		if err != nil {
			s.err = err
		}
		if n > 0 || err != nil {
			return
		}
	}
	s.err = io.ErrNoProgress
}

// skip passes over n bytes, present or not; it gives how many there were.
func (s *stream) skip(n int64) (skipped int64) {
	for skipped < n {
		if s.r == s.w && !s.need(1) {
			return skipped
		}
		step := min(int64(s.w-s.r), n-skipped)
		s.r += int(step)
		skipped += step
	}
	return skipped
}
