package capture

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/ackscope/ackscope/host"
	"github.com/ackscope/ackscope/machine"
)

// recordReader reads the records of one file format from f.stream. next returns
// io.EOF at a clean end. It is not called again after an error.
type recordReader interface {
	next(f *file, fr *Frame) error
}

// file is one opened capture file.
type file struct {
	name    string // for people: "standard input" for "-"
	index   int
	options *Options
	source  *source
	stream  *stream
	count   uint64 // frames returned in this pass
	number  uint64 // of the last record that has a frame number

	head Frame // the next frame to be merged
	end  error // why no more frames come; nil as long as they do

	// The first pass fills these tables; later passes find the same entries in the
	// same places. The tables only grow, and seen counts the entries that this
	// pass has reached. Only the reading goroutine writes them. ReadAt reads them
	// on any goroutine, so writes and the reads of other goroutines take the lock.
	mu         sync.RWMutex
	reader     recordReader
	interfaces []Interface
	seen       int
	sections   []section
	opened     int // sections in this pass
	names      []byte
	namesSeen  int
	described  int // bytes of descriptions in this pass

	host *host.Timeline // of the input; set after the file was opened
}

// Begins reports whether an uncompressed capture begins with head.
func Begins(head [4]byte) bool {
	_, _, ok := pcapMagic(head[:])
	return ok || isSection(head[:])
}

// isSection reports whether a file begins with the block of a pcapng section.
func isSection(b []byte) bool {
	return (&section{}).u32(b) == blockSection // it reads the same in both byte orders
}

// begin recognises the format from the first bytes of the stream.
func (f *file) begin() error {
	f.count, f.number, f.seen, f.opened, f.end, f.head = 0, 0, 0, 0, nil, Frame{}
	f.namesSeen, f.described = 0, 0
	s := f.stream
	if !s.need(4) {
		found := "an empty file"
		if s.have() > 0 {
			found = fmt.Sprintf("a file of %d bytes", s.have())
		}
		return &FormatError{
			File: f.name, Expected: "a pcap or pcapng file, plain, gzip or zstd", Found: found,
			Err: f.failure(),
		}
	}
	h := s.buf[s.r:s.w]
	if _, _, ok := pcapMagic(h); ok {
		r, err := openPcap(f)
		if err != nil {
			return err
		}
		f.setReader(r)
		return nil
	}
	if isSection(h) {
		r, err := openPcapng(f)
		if err != nil {
			return err
		}
		f.setReader(r)
		return nil
	}
	return &FormatError{
		File: f.name, Expected: "the magic number of pcap or pcapng, plain, gzip or zstd",
		Found: fmt.Sprintf("% x", h[:4]),
	}
}

func (f *file) setReader(r recordReader) {
	f.mu.Lock()
	f.reader = r
	f.mu.Unlock()
}

// next returns the file's next frame. After the last one every call returns the
// same error.
func (f *file) next(fr *Frame) error {
	if f.end != nil {
		return f.end
	}
	if err := f.reader.next(f, fr); err != nil {
		f.end = f.source.blame(err)
		return f.end
	}
	f.count++
	f.number++
	fr.Ref = machine.MakeRef(f.index, f.number)
	return nil
}

// limit returns the longest captured length that ackscope accepts from a file
// with this snap length.
func (f *file) limit(snap uint32) uint32 {
	limit := uint32(f.options.MaxRecord)
	if snap > limit {
		limit = min(snap, hardMaxRecord)
	}
	return limit
}

func (f *file) addInterface(in Interface) {
	if in.limit == 0 {
		in.limit = f.limit(in.SnapLength)
	}
	f.mu.Lock()
	if f.seen == len(f.interfaces) {
		f.interfaces = append(f.interfaces, in)
	}
	f.mu.Unlock()
	f.seen++
}

func (f *file) addSection(s section) {
	f.mu.Lock()
	if f.opened == len(f.sections) {
		f.sections = append(f.sections, s)
	}
	f.mu.Unlock()
	f.opened++
}

func (f *file) setStatistics(i int, st *Statistics) {
	f.mu.Lock()
	f.interfaces[i].Statistics = st
	f.mu.Unlock()
}

// failure returns the error of the source, or nil if the source just ended.
func (f *file) failure() error {
	if err := f.stream.err; err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// endOrFailure returns the reason why no byte follows the last whole record.
func (f *file) endOrFailure(what string) error {
	if errors.Is(f.stream.err, io.EOF) {
		return io.EOF
	}
	return f.cutAt(f.stream.offset(), what, -1)
}

// cut returns the error for a source that ends inside the record at the
// stream's position, which should have n bytes.
func (f *file) cut(what string, n int64) error {
	return f.cutAt(f.stream.offset(), what, n-int64(f.stream.have()))
}

func (f *file) cutAt(offset int64, what string, missing int64) error {
	s := f.stream
	switch failure := f.failure(); {
	case failure == nil:
		return &CutError{
			File: f.name, What: f.numbered(what), Offset: offset, End: s.base + int64(s.w), Missing: missing,
			Frames: f.count,
		}
	case errors.Is(failure, io.ErrUnexpectedEOF):
		return &CutError{
			File: f.name, What: f.numbered(what), Offset: offset, End: s.base + int64(s.w), Missing: -1, Frames: f.count,
			Err: fmt.Errorf("the %s stream ends early", f.source.format),
		}
	case f.source.format != plain && !errors.As(failure, new(*fs.PathError)):
		return &DamageError{
			File: f.name, What: f.numbered(what), Offset: offset, Frames: f.count, Lost: -1,
			Expected: "sound " + f.source.format.String() + " data", Found: "an error of the decompressor", Err: failure,
		}
	default:
		return fmt.Errorf("%s: reading at byte %d after %s: %w", f.name, s.base+int64(s.w), frames(f.count), failure)
	}
}

// damage returns the error for a record at the stream's position that cannot be
// read.
func (f *file) damage(what, expected, found string) error {
	return f.damageAt(f.stream.offset(), what, expected, found)
}

func (f *file) damageAt(offset int64, what, expected, found string) error {
	lost := int64(-1)
	if size, ok := f.source.size(); ok && f.source.format == plain {
		lost = max(size-offset, 0)
	}
	return &DamageError{
		File: f.name, What: f.numbered(what), Offset: offset, Expected: expected, Found: found,
		Frames: f.count, Lost: lost,
	}
}

// unreadable converts an error in a file's first record to one that says that
// nothing could be read.
func (f *file) unreadable(err error) error {
	var cut *CutError
	var damage *DamageError
	switch {
	case errors.As(err, &cut):
		return &FormatError{
			File: f.name, Offset: cut.Offset, Expected: "a whole " + cut.What,
			Found: fmt.Sprintf("the end of the file at byte %d", cut.End), Err: cut.Err,
		}
	case errors.As(err, &damage):
		return &FormatError{
			File: f.name, Offset: damage.Offset, Expected: "a " + damage.What + " with " + damage.Expected,
			Found: damage.Found, Err: damage.Err,
		}
	}
	return err
}

// numbered adds to what the frame number that the record would have had.
func (f *file) numbered(what string) string {
	switch what {
	case "packet record", "the header of packet record", "packet block":
		return fmt.Sprintf("%s %d", what, f.number+1)
	}
	return what
}
