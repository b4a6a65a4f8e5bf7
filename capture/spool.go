package capture

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// spool keeps what is read of a pipe in an unlinked temporary file, up to a
// limit, so that it can be read again. Where the file cannot be written, reading
// goes on and what was kept is dropped. Beyond the limit reading goes on too: what
// was kept until then can be read at its places, but not all once more.
type spool struct {
	name  string
	src   io.Reader
	limit int64

	mu     sync.Mutex // guards what follows: ReadAt may be called on any goroutine
	tmp    *os.File   // nil before the first write, and after a failure
	length int64      // kept so far
	at     int64      // where the next Read continues
	lost   error      // why nothing is kept any more
	ended  error      // what src ended with
}

func newSpool(name string, src io.Reader, o *Options) *spool {
	return &spool{name: name, src: src, limit: o.SpoolLimit}
}

// Read returns what is kept beyond the present position, and after it what src
// gives, keeping that.
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
	n, err := s.src.Read(p) // may block: ReadAt must go on meanwhile
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
		// Unlinked at once where the system lets open files go; elsewhere on close.
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
	_ = os.Remove(tmp.Name()) // fails where it is unlinked already
	return err
}

func (s *spool) rewind() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = 0
	return s.lost
}

// ReadAt reads what is kept.
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
