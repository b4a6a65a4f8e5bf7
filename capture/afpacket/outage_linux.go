package afpacket

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// checkEvery is the interval at which an interface that is down is checked. The
	// kernel reports that it went down, but not that it is up again or was
	// removed.
	checkEvery = 250 * time.Millisecond
	// maxWaits is how many block timeouts Next waits for the last frames.
	maxWaits = 50
)

// handleFailure handles an error that the socket has reported. An interface that
// went down may come up again. The kernel then continues to pass its frames to
// the socket.
func (s *source) handleFailure() error {
	failure := s.failure
	s.failure = nil
	switch {
	case errors.Is(failure, unix.ENETDOWN):
		s.checkInterface()
	case failure != nil:
		return fmt.Errorf("capturing on %s: %w", s.name, failure)
	}
	return nil
}

// checkInterface checks an interface that went down. If it was removed, Next
// returns the frames from before, and then ends.
func (s *source) checkInterface() {
	now, err := net.InterfaceByIndex(s.index)
	switch {
	case err != nil && s.removed():
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed.Load() && s.until.Load() == noEnd {
			s.ending = fmt.Errorf("capturing on %s: the interface was removed", s.name)
			s.end()
		}
	case err == nil && now.Flags&net.FlagUp != 0:
		if s.down {
			s.down = false
			s.say("is up again")
		}
		s.wake(time.Time{})
	default:
		if !s.down {
			s.down = true
			s.say("went down; the capture goes on once it is up again")
		}
		s.wake(time.Now().Add(checkEvery))
	}
}

// removed reports whether the kernel has detached the socket from its interface
// for good.
func (s *source) removed() (gone bool) {
	err := s.raw.Control(func(fd uintptr) {
		bound, err := unix.Getsockname(int(fd))
		address, ok := bound.(*unix.SockaddrLinklayer)
		gone = err == nil && ok && address.Ifindex == -1
	})
	return err == nil && gone
}

// wake sets the time at which Next checks again, unless Stop has already woken
// it.
func (s *source) wake(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed.Load() && s.until.Load() == noEnd {
		_ = s.file.SetReadDeadline(at) // fails only if it is closed already
	}
}

func (s *source) say(text string) {
	if s.notice != nil {
		s.notice(fmt.Sprintf("capturing on %s: the interface %s", s.name, text))
	}
}

// reason returns the error that Next returns at the end.
func (s *source) reason(err error) error {
	if errors.Is(err, io.EOF) && s.ending != nil && !s.closed.Load() {
		return s.ending
	}
	return err
}
