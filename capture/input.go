package capture

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ackscope/ackscope/agenda"
	"github.com/ackscope/ackscope/machine"
)

// Keep says which inputs are kept in temporary files, for Rewind and ReadAt.
type Keep uint8

const (
	KeepNothing Keep = iota // only seekable files can be read again; of those, plain ones at random
	KeepPipes               // what cannot be sought is kept: everything can be read again
	KeepAll                 // compressed files are kept unpacked too: everything can be read at random
)

const (
	defaultMaxRecord  = 256 << 10
	hardMaxRecord     = 64 << 20
	defaultSpoolLimit = 4 << 30
)

// Options are how captures are opened. The zero value has every default.
type Options struct {
	// MaxRecord is the longest captured length of a frame that is believed, in
	// bytes (default 256 KiB, at most 64 MiB); a file whose snap length is larger
	// raises it for itself, up to 64 MiB.
	MaxRecord int
	// Keep says what is kept for Rewind and ReadAt.
	Keep Keep
	// SpoolLimit bounds what is kept of each input, in bytes (default 4 GiB).
	SpoolLimit int64
	// Stdin is what "-" names (default os.Stdin).
	Stdin io.Reader
}

// Input is a list of opened capture files, read as one: frames come in the
// order of time, those of one time in the order of the files, and each file's
// own order is kept. It is a Source.
//
// A file that ends early or is damaged does not end the others: its error comes
// in place of io.EOF when all are at their ends (joined, where there are
// several).
//
// Next, Rewind and Close belong to one goroutine; the other methods may be
// called on any.
type Input struct {
	files  []*file
	paths  []string
	single *file                                 // the only file, or nil
	heads  agenda.Agenda[machine.Instant, *file] // files that have a head, by its time
	given  bool                                  // the first head has been given: advance it before the next comparison
	primed bool
	end    error
}

// Open opens captures: pcap or pcapng, plain, gzip or zstd, told apart by their
// content; "-" is standard input. It reads their headers, so that a file that is
// no capture fails here, with a *FormatError.
func Open(paths []string, o Options) (*Input, error) {
	if len(paths) == 0 {
		return nil, errors.New("no capture given: expected at least one file")
	}
	if o.MaxRecord <= 0 {
		o.MaxRecord = defaultMaxRecord
	}
	o.MaxRecord = min(o.MaxRecord, hardMaxRecord)
	if o.SpoolLimit <= 0 {
		o.SpoolLimit = defaultSpoolLimit
	}
	in := &Input{paths: paths}
	size := max(min(chunkSize, 16*chunkSize/len(paths)), minChunkSize)
	for i, path := range paths {
		if path == "-" && slices.Contains(paths[:i], "-") {
			_ = in.Close()
			return nil, errors.New(`"-" (standard input) is given twice: expected once at most`)
		}
		f, err := openFile(path, i, &o, size)
		if err != nil {
			_ = in.Close()
			return nil, err
		}
		in.files = append(in.files, f)
	}
	if len(in.files) == 1 {
		in.single = in.files[0]
	}
	return in, nil
}

func openFile(path string, index int, o *Options, size int) (*file, error) {
	source, err := openSource(path, o)
	if err != nil {
		return nil, err
	}
	f := &file{name: source.name, index: index, options: o, source: source, stream: newStream(source.reader(), size)}
	if err := f.begin(); err != nil {
		_ = source.close()
		return nil, err
	}
	return f, nil
}

// Next returns the next frame. Its Data is valid until the Next after it.
func (in *Input) Next(f *Frame) error {
	if in.single != nil {
		return in.single.next(f)
	}
	return in.nextMerged(f)
}

func (in *Input) nextMerged(f *Frame) error {
	if !in.primed {
		in.primed = true
		for _, file := range in.files {
			if file.next(&file.head) == nil {
				in.heads.Add(file.head.At, file)
			}
		}
	} else if in.given {
		if file := *in.heads.First(); file.next(&file.head) == nil {
			in.heads.Advance(file.head.At)
		} else {
			in.heads.Take()
		}
	}
	first := in.heads.First()
	if in.given = first != nil; !in.given {
		return in.ends()
	}
	*f = (*first).head
	return nil
}

// ends joins the files' errors; io.EOF where all ended cleanly.
func (in *Input) ends() error {
	if in.end == nil {
		var errs []error
		for _, file := range in.files {
			if !errors.Is(file.end, io.EOF) {
				errs = append(errs, file.end)
			}
		}
		switch len(errs) {
		case 0:
			in.end = io.EOF
		case 1:
			in.end = errs[0]
		default:
			in.end = errors.Join(errs...)
		}
	}
	return in.end
}

// Rewind makes the next frame the first one again. It fails where an input is
// a pipe that was not kept, or outgrew what may be kept; the input is then of
// no further use.
func (in *Input) Rewind() error {
	for _, f := range in.files {
		if err := f.source.rewind(); err != nil {
			return err
		}
		f.stream.reset(f.source.reader())
		if err := f.begin(); err != nil {
			return err
		}
	}
	in.heads.Clear()
	in.given, in.primed, in.end = false, false, nil
	return nil
}

// Close closes the files and removes what was kept.
func (in *Input) Close() error {
	var errs []error
	for _, f := range in.files {
		errs = append(errs, f.source.close())
	}
	return errors.Join(errs...)
}

// Files is how many files there are.
func (in *Input) Files() int { return len(in.files) }

// FileName returns the path of the i-th file as it was given; "-" for standard input.
func (in *Input) FileName(i int) string { return in.paths[i] }

// Interfaces returns what the i-th file has said so far of its interfaces, in the
// order of Frame.Interface.
func (in *Input) Interfaces(i int) []Interface {
	f := in.files[i]
	f.mu.RLock()
	defer f.mu.RUnlock()
	return append([]Interface(nil), f.interfaces...)
}

// Dropped returns how many packets the captures lack, as the statistics of their
// interfaces say that were read so far: dropped by the capturing system, or by
// the interface itself.
func (in *Input) Dropped() (n uint64) {
	for i := range in.files {
		for _, x := range in.Interfaces(i) {
			if x.Statistics != nil {
				n += x.Statistics.OSDropped + x.Statistics.Dropped
			}
		}
	}
	return n
}

// Counted reports whether the statistics of every interface that were read so far
// say how many packets were dropped: then none is missing but those.
func (in *Input) Counted() bool {
	for i := range in.files {
		for _, x := range in.Interfaces(i) {
			if x.Statistics == nil || x.Statistics.Known&(KnownOSDropped|KnownDropped) == 0 {
				return false
			}
		}
	}
	return true
}

// Progress tells how many bytes have been read in this pass, of how many; total
// is -1 where that is not known. Both count stored, not unpacked bytes.
func (in *Input) Progress() (read, total int64) {
	for _, f := range in.files {
		read += f.source.count.Load()
		if size, ok := f.source.size(); ok && total >= 0 {
			total += size
		} else {
			total = -1
		}
	}
	return read, total
}

// ReadAt reads the frame ref that begins at offset (Frame.Offset) once more,
// into buf where that is large enough; it gives the buffer for the next call,
// which f.Data and f.Options alias. It can be called on any goroutine, for
// frames that Next has given. At of an untimed frame is zero.
func (in *Input) ReadAt(ref machine.Ref, offset int64, f *Frame, buf []byte) ([]byte, error) {
	if ref.File() >= len(in.files) || offset < 0 {
		return buf, fmt.Errorf("frame %d of file %d at byte %d: expected one of %d files and an offset", ref.Frame(),
			ref.File()+1, offset, len(in.files))
	}
	buf, err := in.files[ref.File()].readAt(nil, offset, f, buf)
	f.Ref, f.Offset = ref, offset
	return buf, err
}
