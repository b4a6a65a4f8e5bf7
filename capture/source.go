package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// compression is how a file is compressed, recognised by its first bytes.
type compression uint8

const (
	plain compression = iota
	gzipped
	zstandard
)

func (c compression) String() string {
	return [...]string{"plain", "gzip", "zstd"}[c]
}

func recognise(b []byte) compression {
	if len(b) >= 2 && b[0] == 0x1f && b[1] == 0x8b {
		return gzipped
	}
	if len(b) >= 4 {
		switch magic := binary.LittleEndian.Uint32(b); {
		case magic == 0xfd2fb528, magic&^0xf == 0x184d2a50: // a frame, or a skippable frame before one
			return zstandard
		}
	}
	return plain
}

// zstdWindow is the largest window that is decompressed (zstd --long=27). It
// bounds the memory that a hostile file can make us allocate.
const zstdWindow = 128 << 20

// fileBytes reads an open file, in turn or at any offset.
type fileBytes interface {
	io.Reader
	io.ReaderAt
}

// source is the decompressed bytes of one capture file. It can be read again
// from the start if the file is seekable or was kept in a spool.
type source struct {
	name     string
	file     *os.File // nil if in is not a file
	in       io.Reader
	at       io.ReaderAt // the bytes of a file
	seek     io.Seeker   // moves in; nil unless seekable
	seekable bool
	format   compression
	total    int64        // size of the compressed file; -1 if not known
	count    atomic.Int64 // bytes read of the compressed file in this pass

	transport *transport // of a Stored; otherwise nil
	kept      *spool     // what its reader returned, if that can be read once only; otherwise nil

	packed *bufio.Reader // before decompression; nil for plain seekable files
	gz     *gzip.Reader
	zs     *zstd.Decoder
	spool  *spool // nil if nothing is kept

	threads int
	ahead   *ahead // what unpacks on another goroutine; nil if none does
}

// openSource opens path, or uses stdin for "-".
func openSource(path string, o *Options) (*source, error) {
	s := &source{name: path, total: -1, threads: o.Threads}
	switch {
	case path != "-":
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		b := bytesOf(f)
		s.file, s.in, s.at = f, b, b
	case o.Stdin != nil:
		s.in = o.Stdin
		s.file, _ = o.Stdin.(*os.File)
		s.at = s.file
	default:
		s.file, s.in, s.at = os.Stdin, os.Stdin, os.Stdin
	}
	if path == "-" {
		s.name = "standard input"
	}
	if err := s.recognise(o); err != nil {
		_ = s.close() // the first error is the one to report
		return nil, err
	}
	return s, nil
}

func (s *source) recognise(o *Options) error {
	if s.file != nil {
		info, err := s.file.Stat()
		if err != nil {
			return err
		}
		if info.IsDir() {
			return fmt.Errorf("%s: expected a capture file, found a directory", s.name)
		}
		if info.Mode().IsRegular() {
			if at, err := s.file.Seek(0, io.SeekCurrent); err == nil && at == 0 {
				s.seekable, s.seek, s.total = true, s.file, info.Size()
			}
		}
	}
	var first []byte
	if s.seekable && s.kept == nil {
		b := make([]byte, 4)
		n, err := s.at.ReadAt(b, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		first = b[:n]
	} else {
		s.packed = bufio.NewReaderSize(&counter{s}, 64<<10)
		first, _ = s.packed.Peek(4) // the first Read returns a failure again
	}
	s.format = recognise(first)
	if s.format != plain && s.packed == nil {
		s.packed = bufio.NewReaderSize(&counter{s}, 64<<10)
	}
	if err := s.unpack(); err != nil {
		return err
	}
	if o.Keep == KeepAll && (!s.seekable || s.format != plain) || o.Keep == KeepPipes && !s.seekable {
		s.spool = newSpool(s.name, s.unpacked(), o)
	}
	return nil
}

// unpack starts the decompressor at the current position of the compressed
// file.
func (s *source) unpack() error {
	var err error
	switch {
	case s.format == gzipped && s.gz == nil:
		s.gz, err = gzip.NewReader(s.packed)
	case s.format == gzipped:
		err = s.gz.Reset(s.packed)
	case s.format == zstandard && s.zs == nil:
		s.zs, err = zstd.NewReader(s.packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
	case s.format == zstandard:
		err = s.zs.Reset(s.packed)
	}
	if err != nil {
		return &FormatError{
			File: s.name, Expected: "a " + s.format.String() + " header",
			Found: "something else behind its magic number", Err: err,
		}
	}
	return nil
}

func (s *source) unpacked() io.Reader {
	switch {
	case s.format == gzipped:
		return s.gz
	case s.format == zstandard:
		return s.zs
	case s.packed != nil:
		return s.packed
	}
	return &counter{s}
}

// reader returns the decompressed bytes of this pass. It is called once in a pass.
func (s *source) reader() io.Reader {
	switch {
	case s.spool != nil:
		return s.spool
	case s.threads > 1 && s.seekable && s.format == gzipped: // a pipe may make its reader wait
		s.ahead = startAhead(s.unpacked())
		return s.ahead
	}
	return s.unpacked()
}

// rewind makes reader start again at the first byte.
func (s *source) rewind() error {
	if s.spool != nil {
		return s.spool.rewind()
	}
	if !s.seekable {
		return fmt.Errorf("%s: cannot be read a second time: it is a pipe, and was opened without keeping what is read",
			s.name)
	}
	s.stopAhead()
	if _, err := s.seek.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("%s: going back to its start: %w", s.name, err)
	}
	s.count.Store(0)
	if s.packed != nil {
		s.packed.Reset(&counter{s})
	}
	return s.unpack()
}

// random returns the decompressed bytes for reading at any offset.
func (s *source) random() (io.ReaderAt, error) {
	switch {
	case s.spool != nil:
		return s.spool, nil
	case s.seekable && s.format == plain:
		return s.at, nil
	case s.format != plain:
		return nil, fmt.Errorf(
			"%s: single frames cannot be read: it is packed with %s, and was opened without keeping it unpacked",
			s.name, s.format)
	}
	return nil, fmt.Errorf("%s: single frames cannot be read: it is a pipe, and was opened without keeping what is read",
		s.name)
}

// size returns the length of the file as it is stored. The second result is
// false if it is not known.
func (s *source) size() (int64, bool) { return s.total, s.total >= 0 }

// stopAhead ends the goroutine that unpacks, so that the decompressor is free.
func (s *source) stopAhead() {
	s.ahead.stop()
	s.ahead = nil
}

func (s *source) close() error {
	s.stopAhead()
	if s.zs != nil {
		s.zs.Close()
	}
	var errs []error
	if s.spool != nil {
		errs = append(errs, s.spool.close())
	}
	if s.kept != nil {
		errs = append(errs, s.kept.close())
	}
	if s.file != nil {
		errs = append(errs, s.file.Close())
	}
	return errors.Join(errs...)
}

// counter counts the bytes read of the compressed file.
type counter struct{ s *source }

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.s.in.Read(p)
	c.s.count.Add(int64(n))
	return n, err
}
