package afpacket

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

const (
	headroom = 24 // free bytes before each frame: room for a cooked header and a VLAN tag
	cookedV2 = 20 // bytes of the LINKTYPE_LINUX_SLL2 header
	noEnd    = math.MaxUint64
)

// source implements Live.
type source struct {
	name   string
	index  int // the kernel's index of the interface; 0 for Any
	filter string
	snap   int
	cooked bool
	file   *os.File
	raw    syscall.RawConn
	ring   ring

	reading  sync.Mutex // held by Next: the ring must not be unmapped under it
	frames   uint64
	ready    func(fd uintptr) bool // created once: a closure per call would be an allocation
	idle     func()
	notice   func(string)
	failure  error         // reported by the socket and not handled yet
	down     bool          // the interface was taken down
	ending   error         // why Next will end, if Stop is not the reason
	reported bool          // that end was reported, by a group that continues
	awaited  int           // how often we have waited for the last frames before that end
	taken    uint64        // frames handled, of those that the kernel accepted and did not drop
	until    atomic.Uint64 // the value of taken at which Next ends, set by Stop; noEnd before
	closed   atomic.Bool

	mu         sync.Mutex
	statistics capture.Statistics
	freezes    uint64   // how often the ring was full
	before     counters // the interface's own counts when the capture began
}

func newSource(file *os.File, raw syscall.RawConn, r ring, o Options, index int, cooked bool) *source {
	s := &source{
		name: o.Interface, index: index, notice: o.Notice, filter: o.Filter, snap: o.SnapLength, idle: o.Idle, cooked: cooked,
		file: file, raw: raw, ring: r,
		statistics: capture.Statistics{Known: capture.KnownFilterAccepted | capture.KnownOSDropped},
	}
	if c, ok := readCounters(s.name); ok {
		s.before = c
		s.statistics.Known |= capture.KnownReceived | capture.KnownDropped
	}
	s.until.Store(noEnd)
	s.ready = func(fd uintptr) bool {
		if s.ring.ready() {
			return true
		}
		if code, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err != nil {
			s.failure = os.NewSyscallError("getsockopt SO_ERROR", err)
		} else if code != 0 {
			s.failure = syscall.Errno(code)
		}
		return s.failure != nil
	}
	return s
}

// Interface implements Live.
func (s *source) Interface() capture.Interface {
	link := uint32(capture.LinkEthernet)
	if s.cooked {
		link = capture.LinkSLL2
	}
	return capture.Interface{
		Name: s.name, Filter: s.filter, LinkType: link, SnapLength: uint32(s.snap),
		Resolution: capture.Nanoseconds, OS: "linux",
	}
}

// Next implements Source. It waits for the next frame. Its data lie in the ring
// that the kernel fills, and are valid until Next or Close is called.
func (s *source) Next(f *capture.Frame) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	for {
		if ok, err := s.take(f); ok {
			return nil
		} else if err != nil {
			return s.reason(err)
		}
		if s.idle != nil {
			s.idle()
		}
		if err := s.wait(); err != nil {
			return err
		}
	}
}

// take returns the next frame if it has arrived. It returns io.EOF when there
// will be no more.
func (s *source) take(f *capture.Frame) (bool, error) {
	for {
		if s.closed.Load() || s.taken >= s.until.Load() || s.awaited > maxWaits {
			return false, io.EOF
		}
		b := s.ring.next()
		if b == nil {
			return false, nil
		}
		s.taken++
		if s.fill(b, f) {
			s.frames++
			f.Ref = machine.MakeRef(0, s.frames)
			return true, nil
		}
	}
}

// wait returns nil when the ring may have frames. Otherwise it returns the
// reason why no more will come.
func (s *source) wait() error {
	err := s.raw.Read(s.ready)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded) && s.until.Load() != noEnd:
		return s.drain()
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.checkInterface()
		return nil
	case s.closed.Load(): // err is then an internal/poll error that has no exported name
		return io.EOF
	case err != nil:
		return fmt.Errorf("capturing on %s: %w", s.name, err)
	}
	return s.handleFailure()
}

// drain waits for the block with the last frames before the end. The kernel
// hands it over when its time is up.
func (s *source) drain() error {
	var result error
	waiting := []unix.PollFd{{Events: unix.POLLIN}}
	err := s.raw.Control(func(fd uintptr) {
		waiting[0].Fd = int32(fd)
		for !s.ready(fd) || s.failure != nil {
			s.failure = nil // it would end each poll at once
			if s.awaited++; s.taken >= s.until.Load() || s.awaited > maxWaits {
				result = io.EOF // even if counted frames were never handed over: an end is better than an endless wait
				return
			}
			if _, err := unix.Poll(waiting, retireMilliseconds); err != nil && !errors.Is(err, unix.EINTR) {
				result = fmt.Errorf("capturing on %s: %w", s.name, os.NewSyscallError("poll", err))
				return
			}
		}
	})
	if err != nil { // closed meanwhile
		return io.EOF
	}
	return result
}

// Stop implements Live.
func (s *source) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() || s.until.Load() != noEnd {
		return
	}
	s.end()
}

// end makes the frames accepted by now the last ones, and wakes a waiting Next.
func (s *source) end() {
	_ = s.count() // if it fails, the earlier counts remain
	s.until.Store(s.statistics.FilterAccepted - s.statistics.OSDropped)
	_ = s.file.SetReadDeadline(time.Unix(1, 0)) // fails only if it is closed already
}

// fill sets f to a frame of the ring. It returns false for a frame that must
// be left out.
func (s *source) fill(b []byte, f *capture.Frame) bool {
	h := (*unix.Tpacket3Hdr)(unsafe.Pointer(&b[0]))
	from := (*unix.RawSockaddrLinklayer)(unsafe.Pointer(&b[addressOffset]))
	// On loopback every packet passes twice: outgoing and incoming.
	if from.Hatype == unix.ARPHRD_LOOPBACK && from.Pkttype == unix.PACKET_OUTGOING {
		return false
	}
	begin := int(h.Mac)
	captured := min(int(h.Snaplen), s.snap)
	length := max(int(h.Len), captured)
	protocol := from.Protocol // in network order, as in memory
	// The tag, the cooked header and the headroom for both lie before the frame.
	if tag, ok := vlanTag(h); ok && (s.cooked || captured >= 12) {
		// The kernel removed the tag. Put it back in place: after the two addresses,
		// or before a cooked payload.
		begin -= 4
		if s.cooked {
			copy(b[begin:], tag[2:4])
			nativePutUint16(b[begin+2:], protocol)
			if from.Pkttype != unix.PACKET_OUTGOING && hidesTag(b[begin+4:begin+4+captured], protocol, int(h.Len)) {
				binary.BigEndian.PutUint16(b[begin+2:], 0x8100)
			}
			protocol = nativeUint16(tag[:2])
		} else {
			copy(b[begin:], b[begin+4:begin+4+12])
			copy(b[begin+12:], tag[:])
		}
		captured, length = captured+4, length+4
	}
	f.LinkType = capture.LinkEthernet
	if s.cooked {
		f.LinkType = capture.LinkSLL2
		begin -= cookedV2
		captured, length = captured+cookedV2, length+cookedV2
		c := b[begin : begin+cookedV2]
		address := *from // a copy, because the cooked header may overwrite it
		nativePutUint16(c, protocol)
		c[2], c[3] = 0, 0
		binary.BigEndian.PutUint32(c[4:], uint32(address.Ifindex))
		binary.BigEndian.PutUint16(c[8:], address.Hatype)
		c[10], c[11] = address.Pkttype, address.Halen
		copy(c[12:20], address.Addr[:])
	}
	f.At = machine.Instant(int64(h.Sec)*int64(time.Second) + int64(h.Nsec))
	f.Offset, f.Interface = -1, 0
	f.Length = length
	f.Data = b[begin : begin+captured : begin+captured]
	f.Options, f.BigEndian, f.Untimed = nil, false, false
	return true
}

// vlanTag returns the VLAN tag that the kernel removed, as it was on the wire.
func vlanTag(h *unix.Tpacket3Hdr) (tag [4]byte, ok bool) {
	if h.Status&unix.TP_STATUS_VLAN_VALID == 0 {
		return tag, false
	}
	kind := h.Hv1.Vlan_tpid
	if h.Status&unix.TP_STATUS_VLAN_TPID_VALID == 0 {
		kind = 0x8100
	}
	binary.BigEndian.PutUint16(tag[:], kind)
	binary.BigEndian.PutUint16(tag[2:], uint16(h.Hv1.Vlan_tci))
	return tag, true
}

// hidesTag reports whether an incoming cooked payload, whose outer VLAN tag the
// kernel removed, begins with an inner tag. Kernels since 6.10 name the
// protocol behind all tags, but leave the inner tags in the payload. Nothing
// else in their metadata distinguishes the two cases. protocol is in network
// order.
func hidesTag(b []byte, protocol uint16, length int) bool {
	if len(b) < 6 || nativeUint16(b[2:]) != protocol {
		return false // an inner tag would end with the protocol
	}
	switch binary.BigEndian.Uint16(b[2:]) {
	case 0x0800: // in an IPv4 header those bytes are the total length
		return b[0]>>4 != 4 || length != 0x0800
	case 0x86dd: // in an IPv6 header they are part of the flow label
		return b[0]>>4 != 6 || length != 40+int(binary.BigEndian.Uint16(b[4:]))
	}
	return true
}

func nativeUint16(b []byte) uint16       { return binary.NativeEndian.Uint16(b) }
func nativePutUint16(b []byte, v uint16) { binary.NativeEndian.PutUint16(b, v) }
