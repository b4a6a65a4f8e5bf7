package ring

import (
	"bytes"
	"net/netip"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// has reports whether a packet between two addresses belongs to the pair.
func (p Pair) has(src, dst netip.AddrPort) bool {
	return fits(p.A, src) && fits(p.B, dst) || fits(p.A, dst) && fits(p.B, src)
}

func fits(want, is netip.AddrPort) bool {
	return want.Addr() == is.Addr() && (want.Port() == 0 || want.Port() == is.Port())
}

// hosts returns the pair with all ports.
func (p Pair) hosts() Pair {
	return Pair{netip.AddrPortFrom(p.A.Addr(), 0), netip.AddrPortFrom(p.B.Addr(), 0)}
}

// unmapped returns the pair with the addresses as capture.Packet has them.
func (p Pair) unmapped() Pair {
	plain := func(a netip.AddrPort) netip.AddrPort {
		return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
	}
	return Pair{plain(p.A), plain(p.B)}
}

// A fragment names no ports, but the first of its datagram does. So a fragment waits for its
// datagram to become whole, and the frames behind it wait with it.
const (
	// waitTime is how long a fragment waits, by the capture's clock.
	// Source: the time after which package capture drops a datagram that is not whole
	waitTime = 30 * time.Second
	// waitBytes bounds the memory of what waits.
	// Source: choice, 60 datagrams of the greatest length
	waitBytes = 4 << 20
	// waitCost is what a frame that waits takes beside its bytes.
	waitCost = 256
	// mostKnown bounds the datagrams that later copies of a fragment are asked about.
	// Source: choice, those of one moment; the copies of a tap come within milliseconds
	mostKnown = 1024
)

// datagram names an IP datagram by its hosts and its identification.
type datagram struct {
	src, dst netip.Addr
	id       uint32
}

func datagramOf(p *capture.Packet) datagram { return datagram{p.Src.Addr(), p.Dst.Addr(), p.IPID} }

// fate says whether a frame is selected.
type fate uint8

const (
	undecided fate = iota
	selected
	refused
)

// waits is a frame that was read and not yet written.
type waits struct {
	frame capture.Frame
	id    int // of its interface in the cut
	of    datagram
	fate  fate
}

// selector selects the frames of a pair, in their order.
type selector struct {
	pair     Pair // zero for all frames
	decoder  *capture.Decoder
	packet   capture.Packet
	queue    []waits
	bytes    int               // in queue
	known    map[datagram]fate // of datagrams that became whole
	unjoined uint64
	emit     func(f *capture.Frame, id int) error
}

func newSelector(p Pair, emit func(f *capture.Frame, id int) error) *selector {
	return &selector{
		pair: p.unmapped(), decoder: capture.NewDecoder(capture.DecodeOptions{}), known: map[datagram]fate{}, emit: emit,
	}
}

// take takes the next frame of the files.
func (s *selector) take(f *capture.Frame, id int) error {
	if s.pair == (Pair{}) {
		return s.emit(f, id)
	}
	p := &s.packet
	s.decoder.Decode(f, p)
	x := waits{id: id, of: datagramOf(p), fate: refused}
	switch {
	case p.Transport != capture.Fragment:
		if s.pair.has(p.Src, p.Dst) || p.Quote != nil && s.pair.has(p.Quote.Src, p.Quote.Dst) {
			x.fate = selected
		}
		if p.Fragments > 1 {
			s.decide(x.of, x.fate)
		}
	case s.pair.has(p.Src, p.Dst): // all ports
		x.fate = selected
	case !s.pair.hosts().has(p.Src, p.Dst):
	case p.Duplicate:
		x.fate = s.known[x.of] // undecided if it is not there
	default:
		x.fate = undecided
	}
	if err := s.release(f.At); err != nil {
		return err
	}
	switch {
	case x.fate == refused:
		return nil
	case x.fate == selected && len(s.queue) == 0:
		return s.emit(f, id)
	}
	x.frame = *f
	x.frame.Data, x.frame.Options = bytes.Clone(f.Data), bytes.Clone(f.Options)
	s.queue = append(s.queue, x)
	s.bytes += x.cost()
	return s.release(f.At)
}

func (x *waits) cost() int { return len(x.frame.Data) + len(x.frame.Options) + waitCost }

// decide decides about the fragments of a datagram that became whole.
func (s *selector) decide(of datagram, to fate) {
	for i := range s.queue {
		if x := &s.queue[i]; x.fate == undecided && x.of == of {
			x.fate = to
		}
	}
	if len(s.known) == mostKnown {
		clear(s.known)
	}
	s.known[of] = to
}

// release emits the frames that need not wait any longer at a time of the capture.
func (s *selector) release(now machine.Instant) error {
	for len(s.queue) > 0 {
		x := &s.queue[0]
		if x.fate == undecided && s.bytes <= waitBytes && now.Sub(x.frame.At).Abs() <= waitTime {
			return nil
		}
		if err := s.first(); err != nil {
			return err
		}
	}
	s.queue = nil
	return nil
}

// first emits the first frame of the queue, unless it is refused.
func (s *selector) first() error {
	x := s.queue[0]
	s.queue = s.queue[1:]
	s.bytes -= x.cost()
	if x.fate == refused {
		return nil
	}
	if x.fate == undecided {
		s.unjoined++
	}
	return s.emit(&x.frame, x.id)
}

// finish emits what still waits at the end.
func (s *selector) finish() error {
	for len(s.queue) > 0 {
		if err := s.first(); err != nil {
			return err
		}
	}
	return nil
}
