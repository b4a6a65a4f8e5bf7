package capture

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/ackscope/ackscope/machine"
)

// recordReader reads the records of one file format off f.stream. next returns
// io.EOF at a clean end; after any error it is not called again.
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
	count   uint64 // frames given in this pass
	number  uint64 // of the last record that has a frame number

	head Frame // the next frame to be merged
	end  error // why no more frames come; nil while they do

	// What the first pass learns, later passes find again in the same places:
	// the tables only grow, and seen tells how far this pass has come. They are
	// written by the reading goroutine alone and read by ReadAt on any, hence
	// the lock around writes and around reads elsewhere.
	mu         sync.RWMutex
	reader     recordReader
	interfaces []Interface
	seen       int
	sections   []section
	opened     int // sections in this pass
	names      []byte
	namesSeen  int
	described  int // bytes of descriptions in this pass
}

// begin recognises the format at the stream's start.
func (f *file) begin() error {
	f.count, f.number, f.seen, f.opened, f.end, f.head = 0, 0, 0, 0, nil, Frame{}
	f.namesSeen, f.described = 0, 0
	s := f.stream
	if !s.need(4) {
		found := "an empty file"
		if s.have() > 0 {
			found = fmt.Sprintf("a file of %d bytes", s.have())
		}
		return &FormatError{File: f.name, Expected: "a pcap or pcapng file, plain, gzip or zstd", Found: found,
			Err: f.failure()}
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
	if (&section{}).u32(h) == blockSection { // reads the same in both byte orders
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

// next returns the file's next frame; at its end the reason, again and again.
func (f *file) next(fr *Frame) error {
	if f.end != nil {
		return f.end
	}
	if err := f.reader.next(f, fr); err != nil {
		f.end = err
		return err
	}
	f.count++
	f.number++
	fr.Ref = machine.MakeRef(f.index, f.number)
	return nil
}

// limit is the longest captured length that is believed where a header gives
// this snap length.
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

// failure is what the source failed with; nil where it just ended.
func (f *file) failure() error {
	if err := f.stream.err; err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// endOrFailure tells why no byte follows the last whole record.
func (f *file) endOrFailure(what string) error {
	if errors.Is(f.stream.err, io.EOF) {
		return io.EOF
	}
	return f.cutAt(f.stream.offset(), what, -1)
}

// cut tells that the record at the stream's position should have n bytes and
// that the source ends before.
func (f *file) cut(what string, n int64) error {
	return f.cutAt(f.stream.offset(), what, n-int64(f.stream.have()))
}

func (f *file) cutAt(offset int64, what string, missing int64) error {
	s := f.stream
	switch failure := f.failure(); {
	case failure == nil:
		return &CutError{File: f.name, What: f.numbered(what), Offset: offset, End: s.base + int64(s.w), Missing: missing,
			Frames: f.count}
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

// damage tells that the record at the stream's position cannot be read.
func (f *file) damage(what, expected, found string) error {
	return f.damageAt(f.stream.offset(), what, expected, found)
}

func (f *file) damageAt(offset int64, what, expected, found string) error {
	lost := int64(-1)
	if size, ok := f.source.size(); ok && f.source.format == plain {
		lost = max(size-offset, 0)
	}
	return &DamageError{File: f.name, What: f.numbered(what), Offset: offset, Expected: expected, Found: found,
		Frames: f.count, Lost: lost}
}

// unreadable turns an error in a file's first record into one that says that
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

// numbered says which frame a packet's record would have been.
func (f *file) numbered(what string) string {
	switch what {
	case "packet record", "the header of packet record", "packet block":
		return fmt.Sprintf("%s %d", what, f.number+1)
	}
	return what
}
