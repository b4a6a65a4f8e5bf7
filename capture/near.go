package capture

import (
	"fmt"
	"io"

	"github.com/ackscope/ackscope/machine"
)

// Near reads single records again, such as lie near each other: it reads a
// stretch of the file at a time, so that one system call serves many records. It
// is for one goroutine.
type Near struct {
	in    *Input
	ahead int // bytes to read where some are missing
	files []stretch
}

// stretch is bytes of one file, and the way to more of them.
type stretch struct {
	near *Near
	src  io.ReaderAt
	at   int64
	data []byte
}

const (
	// leastStretch serves one record of most captures.
	leastStretch = 2048
	// MostStretch bounds what is read at a time.
	MostStretch = 256 << 10
)

// Near makes a reader of records that lie near each other.
func (in *Input) Near() *Near {
	n := &Near{in: in, ahead: leastStretch, files: make([]stretch, len(in.files))}
	for i := range n.files {
		n.files[i].near = n
	}
	return n
}

// Expect says how many bytes from the next record on hold records that will be
// asked for; more than MostStretch are not read at a time.
func (n *Near) Expect(bytes int64) { n.ahead = int(min(max(bytes, leastStretch), MostStretch)) }

// Holds reports whether the bytes at an offset of a file are there already.
func (n *Near) Holds(file int, offset int64) bool {
	return file < len(n.files) && n.files[file].holds(offset)
}

func (s *stretch) holds(offset int64) bool {
	return offset >= s.at && offset < s.at+int64(len(s.data))
}

// ReadAt is Input.ReadAt.
func (n *Near) ReadAt(ref machine.Ref, offset int64, f *Frame, buf []byte) ([]byte, error) {
	file := ref.File()
	if file >= len(n.in.files) || offset < 0 {
		return buf, fmt.Errorf("frame %d of file %d at byte %d: expected one of %d files and an offset", ref.Frame(), file+1,
			offset, len(n.in.files))
	}
	buf, err := n.in.files[file].readAt(&n.files[file], offset, f, buf)
	f.Ref, f.Offset = ref, offset
	return buf, err
}

// ReadAt returns bytes of the stretch, and reads another one where they lie outside.
func (s *stretch) ReadAt(p []byte, offset int64) (int, error) {
	if s.holds(offset) && offset+int64(len(p)) <= s.at+int64(len(s.data)) {
		return copy(p, s.data[offset-s.at:]), nil
	}
	want := max(s.near.ahead, len(p))
	if want > MostStretch {
		return s.src.ReadAt(p, offset)
	}
	if cap(s.data) < want {
		s.data = make([]byte, want)
	}
	n, err := s.src.ReadAt(s.data[:want], offset)
	s.at, s.data = offset, s.data[:n] // of a file that grows, more is there when it is asked again
	if n >= len(p) {
		err = nil
	}
	return copy(p, s.data), err
}
