package capture

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ackscope/ackscope/agenda"
	"github.com/ackscope/ackscope/host"
	"github.com/ackscope/ackscope/machine"
)

// Keep selects the inputs that are kept in temporary files, for Rewind and
// ReadAt.
type Keep uint8

const (
	KeepNothing Keep = iota // only seekable files can be read again, and only plain ones at random
	KeepPipes               // inputs that cannot seek are kept: everything can be read again
	KeepAll                 // compressed files are kept decompressed too: everything can be read at random
)

const (
	defaultMaxRecord  = 256 << 10
	hardMaxRecord     = 64 << 20
	defaultSpoolLimit = 4 << 30
)

// Options say how captures are opened. The zero value selects every default.
type Options struct {
	// MaxRecord is the longest captured length of a frame that ackscope accepts,
	// in bytes (default 256 KiB, at most 64 MiB). A file with a larger snap length
	// raises the limit for itself, up to 64 MiB.
	MaxRecord int
	// Keep selects the inputs that are kept for Rewind and ReadAt.
	Keep Keep
	// SpoolLimit bounds the bytes that are kept of each input (default 4 GiB).
	SpoolLimit int64
	// Threads is how many goroutines may work at a time; 0 and 1 mean the caller's own. With more,
	// a single gzip file is unpacked ahead of the reader.
	Threads int
	// Stdin is the input that "-" names (default os.Stdin).
	Stdin io.Reader
}

// Input reads a list of capture files as one capture. Frames come in the order
// of time, and those of one time in the order of the files. Each file keeps its
// own order. Input is a Source.
//
// A file that ends early or is damaged does not end the others. Next returns
// its error in place of io.EOF when all files have ended; several errors are
// joined.
//
// Next, Rewind and Close belong to one goroutine. The other methods may be
// called on any.
type Input struct {
	files  []*file
	paths  []string
	single *file // the only file, or nil
	host   host.Timeline
	// heads holds the files that have a next frame, by its time.
	heads agenda.Agenda[machine.Instant, *file]
	// returned is set once the first head was returned. That file's next frame is
	// read before the next comparison.
	returned bool
	primed   bool
	end      error
}

// Open opens captures: pcap or pcapng, plain, gzip or zstd, recognised by their
// content. The path "-" is standard input. Open reads the headers, so a file
// that is not a capture fails here, with a *FormatError.
func Open(paths []string, o Options) (*Input, error) {
	for i, path := range paths {
		if path == "-" && slices.Contains(paths[:i], "-") {
			return nil, errors.New(`"-" (standard input) is given twice: expected once at most`)
		}
	}
	return openAll(paths, o, func(i int, o *Options) (*source, error) { return openSource(paths[i], o) })
}

// openAll opens files whose bytes the function of returns.
func openAll(paths []string, o Options, of func(i int, o *Options) (*source, error)) (*Input, error) {
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
	if len(paths) > 1 {
		o.Threads = 1 // each file would need buffers of its own
	}
	in := &Input{paths: paths}
	size := max(min(chunkSize, 16*chunkSize/len(paths)), minChunkSize)
	for i := range paths {
		source, err := of(i, &o)
		if err != nil {
			_ = in.Close()
			return nil, err
		}
		f, err := openFile(source, i, &o, size)
		if err != nil {
			_ = in.Close()
			return nil, err
		}
		f.host = &in.host
		in.files = append(in.files, f)
	}
	if len(in.files) == 1 {
		in.single = in.files[0]
	}
	return in, nil
}

func openFile(source *source, index int, o *Options, size int) (*file, error) {
	f := &file{name: source.name, index: index, options: o, source: source, stream: newStream(source.reader(), size)}
	if err := f.begin(); err != nil {
		_ = source.close()
		return nil, source.blame(err)
	}
	return f, nil
}

// Next returns the next frame. Its Data is valid until the following call of
// Next, or longer: see Lend.
func (in *Input) Next(f *Frame) error {
	if in.single != nil {
		return in.single.next(f)
	}
	return in.nextMerged(f)
}

// Lend makes frames stay valid longer. The input then never overwrites what Next returned. It calls
// swap with a buffer that is full, and reads on in the one that swap returns. That one is at least as
// long, and free for that. A nil swap ends this. Lend returns false for several files, whose
// buffers would take much memory: then nothing changes.
func (in *Input) Lend(swap func(full []byte) []byte) bool {
	if in.single == nil {
		return false
	}
	in.single.stream.swap = swap
	return true
}

func (in *Input) nextMerged(f *Frame) error {
	if !in.primed {
		in.primed = true
		for _, file := range in.files {
			if file.next(&file.head) == nil {
				in.heads.Add(file.head.At, file)
			}
		}
	} else if in.returned {
		if file := *in.heads.First(); file.next(&file.head) == nil {
			in.heads.Advance(file.head.At)
		} else {
			in.heads.Take()
		}
	}
	first := in.heads.First()
	if in.returned = first != nil; !in.returned {
		return in.ends()
	}
	*f = (*first).head
	return nil
}

// ends returns the errors of all files, joined, or io.EOF if all files ended
// cleanly.
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

// Rewind restarts the input at its first frame. It fails if an input is a pipe
// that was not kept, or one that outgrew the limit. The input is then of no
// further use.
func (in *Input) Rewind() error {
	for _, f := range in.files {
		if err := f.source.rewind(); err != nil {
			return f.source.blame(err)
		}
		f.stream.reset(f.source.reader())
		if err := f.begin(); err != nil {
			return f.source.blame(err)
		}
	}
	in.heads.Clear()
	in.returned, in.primed, in.end = false, false, nil
	return nil
}

// Close closes the files and removes their temporary copies.
func (in *Input) Close() error {
	var errs []error
	for _, f := range in.files {
		errs = append(errs, f.source.close())
	}
	return errors.Join(errs...)
}

// Files returns the number of files.
func (in *Input) Files() int { return len(in.files) }

// FileName returns the path of the i-th file as Open received it: "-" for
// standard input.
func (in *Input) FileName(i int) string { return in.paths[i] }

// Interfaces returns the interfaces that the i-th file has described so far, in
// the order of Frame.Interface.
func (in *Input) Interfaces(i int) []Interface {
	f := in.files[i]
	f.mu.RLock()
	defer f.mu.RUnlock()
	return append([]Interface(nil), f.interfaces...)
}

// Dropped returns how many packets the captures lack, according to the
// interface statistics read so far. It adds what the capturing system dropped
// and what the interfaces dropped.
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

// Counted reports whether the statistics read so far say for every interface
// how many packets were dropped. If so, the captures lack exactly the packets
// that Dropped counts.
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

// Progress returns how many bytes this pass has read, and of how many. total is
// -1 if it is not known. Both count bytes as stored, before decompression.
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

// ReadAt reads a frame again: the one with reference ref that begins at offset
// (Frame.Offset). It reads into buf if that is large enough. It returns the
// buffer for the next call; f.Data and f.Options alias it. Any goroutine may
// call it, for frames that Next has returned. At of an untimed frame is zero.
func (in *Input) ReadAt(ref machine.Ref, offset int64, f *Frame, buf []byte) ([]byte, error) {
	if ref.File() >= len(in.files) || offset < 0 {
		return buf, fmt.Errorf("frame %d of file %d at byte %d: expected one of %d files and an offset", ref.Frame(),
			ref.File()+1, offset, len(in.files))
	}
	buf, err := in.files[ref.File()].readAt(nil, offset, f, buf)
	f.Ref, f.Offset = ref, offset
	return buf, err
}

// Regular reports whether all files are regular files on a disk, which never make a reader wait.
func (in *Input) Regular() bool {
	return !slices.ContainsFunc(in.files, func(f *file) bool { return !f.source.seekable })
}
