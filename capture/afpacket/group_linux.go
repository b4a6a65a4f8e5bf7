package afpacket

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// group implements Group over several sources. One goroutine reads all rings.
// It copies no frame, and returns the oldest of those that have arrived.
type group struct {
	sources  []*source
	heads    []head
	polls    []unix.PollFd
	wake     int // an eventfd that ends the wait
	idle     func()
	frames   uint64
	stopped  atomic.Bool
	stopping atomic.Bool // Stop was called, though not every source may have been stopped yet

	reading sync.Mutex
	mu      sync.Mutex
	closed  atomic.Bool
}

// head is the next frame of a source.
type head struct {
	frame     capture.Frame
	has, over bool
}

// OpenGroup opens all interfaces, or returns an error and opens none.
func OpenGroup(list []Options) (Group, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	g := &group{wake: wake, heads: make([]head, len(list))}
	for _, o := range list {
		s, err := openSource(o)
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.sources, g.idle = append(g.sources, s), o.Idle
		err = s.raw.Control(func(fd uintptr) {
			g.polls = append(g.polls, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		})
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	g.polls = append(g.polls, unix.PollFd{Fd: int32(wake), Events: unix.POLLIN})
	return g, nil
}

// Interfaces implements Group.
func (g *group) Interfaces() (list []capture.Interface) {
	for _, s := range g.sources {
		list = append(list, s.Interface())
	}
	return list
}

// Statistics implements Group.
func (g *group) Statistics() (list []capture.Statistics, err error) {
	for _, s := range g.sources {
		st, one := s.Statistics()
		list, err = append(list, st), errors.Join(err, one)
	}
	return list, err
}

// Freezes implements Group.
func (g *group) Freezes() (list []uint64) {
	for _, s := range g.sources {
		s.mu.Lock()
		list = append(list, s.freezes)
		s.mu.Unlock()
	}
	return list
}

// Next implements Source. It returns the oldest of the frames that have
// arrived.
func (g *group) Next(f *capture.Frame) error {
	if len(g.sources) == 1 {
		return g.sources[0].Next(f)
	}
	g.reading.Lock()
	defer g.reading.Unlock()
	for {
		if g.closed.Load() {
			return io.EOF
		}
		oldest, over := -1, 0
		for i := range g.heads {
			h := &g.heads[i]
			if !h.has && !h.over {
				var err error // io.EOF
				h.has, err = g.sources[i].take(&h.frame)
				h.over = err != nil
			}
			switch {
			case h.has && (oldest < 0 || h.frame.At < g.heads[oldest].frame.At):
				oldest = i
			case h.over:
				over++
			}
		}
		if oldest >= 0 {
			*f = g.heads[oldest].frame
			g.heads[oldest].has = false
			g.frames++
			f.Interface, f.Ref = oldest, machine.MakeRef(0, g.frames)
			return nil
		}
		if over == len(g.heads) {
			return g.reason()
		}
		if g.idle != nil {
			g.idle()
		}
		if err := g.wait(); err != nil {
			return err
		}
	}
}

// reason returns why there are no more frames: io.EOF after Stop, otherwise an
// error that says that every interface was removed.
func (g *group) reason() error {
	if g.stopping.Load() {
		return io.EOF
	}
	var all error
	for _, s := range g.sources {
		all = errors.Join(all, s.ending)
	}
	return all
}

// wait returns when a ring may have frames, or when Stop or Close was called.
// It also returns when it is time to check an interface that is down.
func (g *group) wait() error {
	timeout := -1
	polls := g.polls
	for i, s := range g.sources {
		switch {
		case g.heads[i].over:
		case s.until.Load() != noEnd: // the kernel hands over the block with the last frames when its time is up
			timeout = retireMilliseconds
			s.awaited++
		case s.down && timeout < 0:
			timeout = int(checkEvery.Milliseconds())
		}
	}
	if g.stopped.Load() { // the event is never read, so it would wake each wait
		polls = polls[:len(polls)-1]
	}
	if _, err := unix.Poll(polls, timeout); err != nil && !errors.Is(err, unix.EINTR) {
		return os.NewSyscallError("poll", err)
	}
	for i, s := range g.sources {
		if polls[i].Revents&unix.POLLERR != 0 {
			s.ready(uintptr(polls[i].Fd))
			if err := s.handleFailure(); err != nil {
				return err
			}
		} else if s.down && s.until.Load() == noEnd {
			s.checkInterface()
		}
		if s.ending != nil && !s.reported {
			s.reported = true
			s.say("was removed")
		}
	}
	return nil
}

// Stop implements Group.
func (g *group) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed.Load() {
		return
	}
	g.stopping.Store(true)
	for _, s := range g.sources {
		s.Stop()
	}
	g.stopped.Store(true)
	g.signal()
}

func (g *group) signal() {
	one := [8]byte{1}
	_, _ = unix.Write(g.wake, one[:]) // fails only if it is signalled already
}

// Close implements Source. It wakes a waiting Next.
func (g *group) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed.Swap(true) {
		return nil
	}
	var err error
	if len(g.sources) > 1 {
		g.signal()
		g.reading.Lock() // until Next, now awake, has returned
		defer g.reading.Unlock()
	}
	for _, s := range g.sources {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, os.NewSyscallError("close", unix.Close(g.wake)))
}
