package capture

import (
	"io"
)

// stream reads a file in large chunks and lends out parts of the chunk, so that
// records need no copy. It never allocates what a record merely claims. The
// buffer doubles only when it is full of bytes that were really read.
type stream struct {
	src  io.Reader
	buf  []byte
	r, w int                      // buf[r:w] is read and not yet consumed
	base int64                    // offset in the file of buf[0]
	err  error                    // the error that src ended with; io.EOF at a clean end
	swap func(full []byte) []byte // see Input.Lend; nil unless lent parts stay valid
}

const (
	chunkSize    = 256 << 10
	minChunkSize = 64 << 10
	emptyReads   = 100 // of a source in a row that end the reading
)

func newStream(src io.Reader, size int) *stream {
	return &stream{src: src, buf: make([]byte, size)}
}

// reset restarts at offset 0 of src.
func (s *stream) reset(src io.Reader) {
	s.src, s.r, s.w, s.base, s.err = src, 0, 0, 0, nil
}

// offset returns the offset of the next byte.
func (s *stream) offset() int64 { return s.base + int64(s.r) }

// have returns how many bytes are available without reading.
func (s *stream) have() int { return s.w - s.r }

// need reads until buf[r:] holds n bytes. It returns false if the source ends
// or fails before; err says which. It overwrites what was lent out before, unless swap is set.
func (s *stream) need(n int) bool {
	if s.w-s.r >= n {
		return true
	}
	if s.r > 0 {
		rest := s.buf[s.r:s.w]
		if s.swap != nil {
			s.buf = s.swap(s.buf)
		}
		copy(s.buf, rest)
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

// read does one Read. It does not wait to fill the chunk, so that a live pipe
// is followed frame by frame.
func (s *stream) read(into []byte) {
	for range emptyReads {
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

// skip skips n bytes, whether read already or not. It returns how many there
// were.
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
