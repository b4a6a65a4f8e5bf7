package capture

import (
	"fmt"
	"io"

	"github.com/ackscope/ackscope/machine"
)

// RangeReader reads single records again that lie near each other, such as the
// frames of one screen. It reads a large range of the file at a time, so that
// one system call serves many records. It belongs to one goroutine.
type RangeReader struct {
	in    *Input
	ahead int // bytes to read when some are missing
	files []byteRange
}

// byteRange is a range of bytes of one file, and the source of more.
type byteRange struct {
	reader *RangeReader
	src    io.ReaderAt
	at     int64
	data   []byte
}

const (
	// leastRange holds one record of most captures.
	leastRange = 2048
	// MostRange bounds the bytes that are read at a time.
	MostRange = 256 << 10
)

// RangeReader returns a reader for records that lie near each other.
func (in *Input) RangeReader() *RangeReader {
	n := &RangeReader{in: in, ahead: leastRange, files: make([]byteRange, len(in.files))}
	for i := range n.files {
		n.files[i].reader = n
	}
	return n
}

// Expect announces how many bytes from the next record on hold the records that
// will be read. At most MostRange of them are read at a time.
func (n *RangeReader) Expect(bytes int64) { n.ahead = int(min(max(bytes, leastRange), MostRange)) }

// Holds reports whether the bytes at an offset of a file are in memory.
func (n *RangeReader) Holds(file int, offset int64) bool {
	return file < len(n.files) && n.files[file].holds(offset)
}

func (s *byteRange) holds(offset int64) bool {
	return offset >= s.at && offset < s.at+int64(len(s.data))
}

// ReadAt does the same as Input.ReadAt.
func (n *RangeReader) ReadAt(ref machine.Ref, offset int64, f *Frame, buf []byte) ([]byte, error) {
	file := ref.File()
	if file >= len(n.in.files) || offset < 0 {
		return buf, fmt.Errorf("frame %d of file %d at byte %d: expected one of %d files and an offset", ref.Frame(), file+1,
			offset, len(n.in.files))
	}
	buf, err := n.in.files[file].readAt(&n.files[file], offset, f, buf)
	f.Ref, f.Offset = ref, offset
	return buf, err
}

// ReadAt returns bytes of the range. It reads another range if they lie outside.
func (s *byteRange) ReadAt(p []byte, offset int64) (int, error) {
	if s.holds(offset) && offset+int64(len(p)) <= s.at+int64(len(s.data)) {
		return copy(p, s.data[offset-s.at:]), nil
	}
	want := max(s.reader.ahead, len(p))
	if want > MostRange {
		return s.src.ReadAt(p, offset)
	}
	if cap(s.data) < want {
		s.data = make([]byte, want)
	}
	n, err := s.src.ReadAt(s.data[:want], offset)
	s.at, s.data = offset, s.data[:n] // if the file grows, the next call reads more
	if n >= len(p) {
		err = nil
	}
	return copy(p, s.data), err
}
