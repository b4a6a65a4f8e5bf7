package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
)

// Stored is a capture file that is read through a reader, such as an object of a store.
type Stored struct {
	Name string // as Input.FileName returns it
	// Size is how many bytes the file has, as it is stored. A reader that ends before is a failed
	// transport. Size is negative if it is not known: any end then counts as that of the file.
	Size int64
	// Reader returns the bytes from the first one on. A reader that also is an io.ReaderAt is read
	// at offsets, by one goroutine at a time, and no further than Size.
	Reader io.Reader
}

// TransportError says that the bytes of a file did not come, whatever the file holds. Another try
// may succeed.
type TransportError struct {
	File   string
	Offset int64 // how many bytes came
	Size   int64 // the stated size; negative if it is not known
	Err    error // of the reader
}

func (e *TransportError) Error() string {
	of := ""
	if e.Size >= 0 {
		of = fmt.Sprintf(" of %d", e.Size)
	}
	return fmt.Sprintf("%s: reading failed after %d%s bytes: %v", e.File, e.Offset, of, e.Err)
}

// Unwrap returns the error of the reader.
func (e *TransportError) Unwrap() error { return e.Err }

// OpenStored is Open for files that readers return. It closes none of the readers. Where one fails,
// OpenStored, Next or Rewind returns a *TransportError, and never a *CutError. The files can be read
// again; at random only the plain ones.
func OpenStored(files []Stored, o Options) (*Input, error) {
	var names []string
	for i := range files {
		names = append(names, files[i].Name)
	}
	return openAll(names, o, func(i int, o *Options) (*source, error) { return openStored(&files[i], o) })
}

func openStored(x *Stored, o *Options) (*source, error) {
	t := &transport{name: x.Name, size: x.Size, reader: x.Reader}
	s := &source{name: x.Name, total: max(x.Size, -1), seekable: true, transport: t}
	if at, ok := x.Reader.(io.ReaderAt); ok && x.Size >= 0 && inPlace(x.Reader) {
		section := io.NewSectionReader(&transportAt{t, at}, 0, x.Size)
		s.in, s.at, s.seek = section, section, section
	} else {
		limit := *o
		if x.Size >= 0 {
			limit.SpoolLimit = x.Size
		}
		s.kept = newSpool(x.Name, t, &limit)
		s.in, s.at, s.seek = s.kept, s.kept, s.kept
	}
	if err := s.recognise(o); err != nil {
		_ = s.close() // the first error is the one to report
		return nil, s.blame(err)
	}
	return s, nil
}

// inPlace reports whether a reader that has ReadAt can use it. A pipe has it as a file, but cannot.
func inPlace(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return true
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// blame returns the error of the transport, if it failed, in place of what came of it.
func (s *source) blame(err error) error {
	if s.transport != nil {
		if failed := s.transport.failed.Load(); failed != nil {
			return failed
		}
	}
	return err
}

// mostEmpty is how often in a row a reader may return neither bytes nor an error.
// Source: package bufio, maxConsecutiveEmptyReads
const mostEmpty = 100

// transport reads a Stored in order. It notices where bytes are missing. After a failure it returns
// the same error for ever.
type transport struct {
	name   string
	size   int64
	reader io.Reader
	read   int64
	ended  bool
	failed atomic.Pointer[TransportError]
}

// fail records the first failure.
func (t *transport) fail(at int64, err error) error {
	if errors.Is(err, io.EOF) { // nothing may take a failure for an end
		err = errors.New(err.Error())
	}
	t.failed.CompareAndSwap(nil, &TransportError{File: t.name, Offset: at, Size: t.size, Err: err})
	return t.failed.Load()
}

// Read implements io.Reader.
func (t *transport) Read(p []byte) (int, error) {
	if failed := t.failed.Load(); failed != nil {
		return 0, failed
	}
	if t.ended || len(p) == 0 {
		return 0, endIf(t.ended)
	}
	var beyond [1]byte
	if t.size >= 0 && t.read == t.size {
		p = beyond[:] // it must end here
	} else if t.size >= 0 {
		p = p[:min(int64(len(p)), t.size-t.read)]
	}
	n, err := t.some(p)
	whole := t.size < 0 || t.read+int64(n) == t.size
	switch {
	case n > 0 && &p[0] == &beyond[0]:
		return 0, t.fail(t.read, errors.New("more bytes came than its size"))
	case err == io.EOF && whole: //nolint:errorlint // a reader ends with io.EOF itself
		t.ended = true
	case err == io.EOF: //nolint:errorlint // the same
		err = t.fail(t.read+int64(n), io.ErrUnexpectedEOF)
	case err != nil:
		err = t.fail(t.read+int64(n), err)
	}
	t.read += int64(n)
	return n, err
}

// endIf returns io.EOF at the end.
func endIf(ended bool) error {
	if ended {
		return io.EOF
	}
	return nil
}

// some reads at least one byte, or returns an error. Neither a panic of the reader nor a wrong
// count leaves it.
func (t *transport) some(p []byte) (n int, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			n, err = 0, fmt.Errorf("the reader panicked: %v", fault)
		}
	}()
	for range mostEmpty {
		n, err = t.reader.Read(p)
		switch {
		case n < 0 || n > len(p):
			return 0, fmt.Errorf("the reader returned %d of %d bytes", n, len(p))
		case n > 0 || err != nil:
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// transportAt reads a Stored at offsets below its size.
type transportAt struct {
	*transport
	at io.ReaderAt
}

// ReadAt implements io.ReaderAt.
func (t *transportAt) ReadAt(p []byte, offset int64) (n int, err error) {
	if failed := t.failed.Load(); failed != nil {
		return 0, failed
	}
	defer func() {
		if fault := recover(); fault != nil {
			n, err = 0, t.fail(offset, fmt.Errorf("the reader panicked: %v", fault))
		}
	}()
	n, err = t.at.ReadAt(p, offset)
	switch {
	case n < 0 || n > len(p):
		return 0, t.fail(offset, fmt.Errorf("the reader returned %d of %d bytes", n, len(p)))
	case n == len(p):
		return n, nil
	case err == nil || err == io.EOF: //nolint:errorlint // a reader ends with io.EOF itself
		err = io.ErrUnexpectedEOF
	}
	return n, t.fail(offset+int64(n), err)
}
