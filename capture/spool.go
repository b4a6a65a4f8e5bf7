package capture

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// spool keeps the bytes read from a pipe in an unlinked temporary file, up to a
// limit, so that they can be read again.
//
//   - If the file cannot be written, reading continues, and the kept bytes are
//     dropped.
//   - Beyond the limit, reading continues too. The bytes kept until then can be
//     read at their offsets, but the whole pipe cannot be read again.
type spool struct {
	name  string
	src   io.Reader
	limit int64

	mu     sync.Mutex // guards what follows: ReadAt may be called on any goroutine
	tmp    *os.File   // nil before the first write, and after a failure
	length int64      // kept so far
	at     int64      // where the next Read continues
	lost   error      // why nothing more is kept
	ended  error      // the error that src ended with
}

func newSpool(name string, src io.Reader, o *Options) *spool {
	return &spool{name: name, src: src, limit: o.SpoolLimit}
}

// Read returns the kept bytes beyond the current position. After them it reads
// from src, and keeps what it reads.
func (s *spool) Read(p []byte) (int, error) {
	s.mu.Lock()
	if s.lost == nil && s.at < s.length {
		defer s.mu.Unlock()
		n, err := s.tmp.ReadAt(p[:min(int64(len(p)), s.length-s.at)], s.at)
		s.at += int64(n)
		return n, err
	}
	ended := s.ended
	s.mu.Unlock()
	if ended != nil {
		return 0, ended
	}
	n, err := s.src.Read(p) // may block: ReadAt must work meanwhile
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = err
	if s.lost == nil && n > 0 {
		s.keep(p[:n])
	}
	return n, err
}

func (s *spool) keep(p []byte) {
	if s.length+int64(len(p)) > s.limit {
		s.lost = s.unkept(fmt.Errorf("more than %d bytes came: the limit of what is kept", s.limit))
		return
	}
	if s.tmp == nil {
		tmp, err := os.CreateTemp("", "ackscope-*.spool")
		if err != nil {
			s.drop(err)
			return
		}
		s.tmp = tmp
		// Unlink it at once if the system allows that for open files; otherwise close
		// removes it.
		_ = os.Remove(tmp.Name())
	}
	if _, err := s.tmp.Write(p); err != nil {
		s.drop(err)
		return
	}
	s.length += int64(len(p))
	s.at = s.length
}

func (s *spool) drop(why error) {
	s.lost = s.unkept(why)
	_ = s.remove()
	s.length = 0
}

func (s *spool) unkept(why error) error {
	return fmt.Errorf("%s: cannot be read a second time: it is not a seekable file, and could not be kept: %w", s.name,
		why)
}

func (s *spool) remove() error {
	if s.tmp == nil {
		return nil
	}
	tmp := s.tmp
	s.tmp = nil
	err := tmp.Close()
	_ = os.Remove(tmp.Name()) // fails if it is unlinked already
	return err
}

func (s *spool) rewind() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = 0
	return s.lost
}

// Seek implements io.Seeker for the start alone.
func (s *spool) Seek(int64, int) (int64, error) { return 0, s.rewind() }

// ReadAt reads kept bytes.
func (s *spool) ReadAt(p []byte, offset int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil && offset >= s.length {
		return 0, s.lost
	}
	if offset < 0 || offset >= s.length {
		return 0, io.EOF
	}
	n, err := s.tmp.ReadAt(p[:min(int64(len(p)), s.length-offset)], offset)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (s *spool) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove()
}
