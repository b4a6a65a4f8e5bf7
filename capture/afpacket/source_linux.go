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
	headroom    = 24 // kept free before each frame: room for a cooked header and a VLAN tag
	cookedV2    = 20 // bytes of the LINKTYPE_LINUX_SLL2 header
	everlasting = math.MaxUint64
)

// source implements Live.
type source struct {
	name   string
	index  int // the kernel's number of the interface; 0 for Any
	filter string
	snap   int
	cooked bool
	file   *os.File
	raw    syscall.RawConn
	ring   ring

	reading sync.Mutex // held by Next: the ring must not go away below it
	frames  uint64
	ready   func(fd uintptr) bool // made once: a closure per call would be an allocation
	idle    func()
	notice  func(string)
	failure error         // that the socket has reported and nobody dealt with yet
	down    bool          // the interface was taken down
	ending  error         // why Next will end, where that is not Stop
	told    bool          // that end was told, by a group that goes on
	awaited int           // how often the last frames before that end were waited for
	taken   uint64        // frames handled, of those that the kernel has accepted and not dropped
	until   atomic.Uint64 // of these, how many there were when Stop was called; everlasting before
	closed  atomic.Bool

	mu         sync.Mutex
	statistics capture.Statistics
	freezes    uint64   // how often the ring was full
	before     counters // the interface's own, when the capture began
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
	s.until.Store(everlasting)
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
	return capture.Interface{Name: s.name, Filter: s.filter, LinkType: link, SnapLength: uint32(s.snap),
		Resolution: capture.Nanoseconds, OS: "linux"}
}

// Next implements Source. It waits for the next frame, whose data lie in the
// ring that the kernel fills, and are valid until Next or Close is called.
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

// take returns the next frame if it has come; io.EOF when there will be none.
func (s *source) take(f *capture.Frame) (bool, error) {
	for {
		if s.closed.Load() || s.taken >= s.until.Load() || s.awaited > patience {
			return false, io.EOF
		}
		b := s.ring.next()
		if b == nil {
			return false, nil
		}
		s.taken++
		if s.give(b, f) {
			s.frames++
			f.Ref = machine.MakeRef(0, s.frames)
			return true, nil
		}
	}
}

// wait returns when the ring may have frames, or with the reason why it will not.
func (s *source) wait() error {
	err := s.raw.Read(s.ready)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded) && s.until.Load() != everlasting:
		return s.drain()
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.look()
		return nil
	case s.closed.Load(): // err is then internal/poll's, which has no name here
		return io.EOF
	case err != nil:
		return fmt.Errorf("capturing on %s: %w", s.name, err)
	}
	return s.troubled()
}

// drain waits for the block in which the last frames before the end lie: the
// kernel hands it over when its time is up.
func (s *source) drain() error {
	var result error
	waiting := []unix.PollFd{{Events: unix.POLLIN}}
	err := s.raw.Control(func(fd uintptr) {
		waiting[0].Fd = int32(fd)
		for !s.ready(fd) || s.failure != nil {
			s.failure = nil // it would end each poll at once
			if s.awaited++; s.taken >= s.until.Load() || s.awaited > patience {
				result = io.EOF // even where frames were counted and never handed over: better an end than a wait without one
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
	if s.closed.Load() || s.until.Load() != everlasting {
		return
	}
	s.end()
}

// end makes the frames that were accepted by now the last ones, and wakes a Next
// that waits.
func (s *source) end() {
	_ = s.count() // where it fails, what was counted before stands
	s.until.Store(s.statistics.FilterAccepted - s.statistics.OSDropped)
	_ = s.file.SetReadDeadline(time.Unix(1, 0)) // fails only where it is closed already
}

// give turns what lies in the ring into a frame; false for one that is to be left out.
func (s *source) give(b []byte, f *capture.Frame) bool {
	h := (*unix.Tpacket3Hdr)(unsafe.Pointer(&b[0]))
	from := (*unix.RawSockaddrLinklayer)(unsafe.Pointer(&b[addressOffset]))
	// On loopback every packet passes twice, going out and coming in.
	if from.Hatype == unix.ARPHRD_LOOPBACK && from.Pkttype == unix.PACKET_OUTGOING {
		return false
	}
	begin := int(h.Mac)
	captured := min(int(h.Snaplen), s.snap)
	length := max(int(h.Len), captured)
	protocol := from.Protocol // in network order, as it lies in memory
	// The tag, the cooked header and the room for both lie before the frame.
	if tag, ok := vlanTag(h); ok && (s.cooked || captured >= 12) {
		// The kernel took the tag out: put it back where it stood, behind the two
		// addresses, or before a cooked payload.
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
		address := *from // may lie where the cooked header is written
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

// vlanTag returns the VLAN tag that the kernel took out, as on the wire.
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
// kernel took out, begins with an inner tag. Kernels since 6.10 name the
// protocol behind all tags but leave the inner ones in the payload; nothing
// else in what they say tells the two cases apart. protocol is in network order.
func hidesTag(b []byte, protocol uint16, length int) bool {
	if len(b) < 6 || nativeUint16(b[2:]) != protocol {
		return false // an inner tag would end with the protocol
	}
	switch binary.BigEndian.Uint16(b[2:]) {
	case 0x0800: // as an IPv4 header, those bytes are the total length
		return b[0]>>4 != 4 || length != 0x0800
	case 0x86dd: // as an IPv6 header, part of the flow label
		return b[0]>>4 != 6 || length != 40+int(binary.BigEndian.Uint16(b[4:]))
	}
	return true
}

func nativeUint16(b []byte) uint16       { return binary.NativeEndian.Uint16(b) }
func nativePutUint16(b []byte, v uint16) { binary.NativeEndian.PutUint16(b, v) }
