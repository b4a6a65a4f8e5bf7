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
	batch       = 32 // frames that one system call may bring
	headroom    = 24 // before each frame: a cooked header and a VLAN tag
	cookedV2    = 20 // bytes of the LINKTYPE_LINUX_SLL2 header
	controlRoom = 128
	everlasting = math.MaxUint64
)

// message is the kernel's struct mmsghdr.
type message struct {
	header unix.Msghdr
	length uint32
	_      [unsafe.Sizeof(uintptr(0)) - 4]byte // pads to the header's alignment
}

// slot is the room for one frame.
type slot struct {
	data    []byte // headroom, frame
	vector  unix.Iovec
	address unix.RawSockaddrLinklayer
	control [controlRoom]byte
}

// source implements Live.
type source struct {
	name   string
	filter string
	snap   int
	cooked bool
	file   *os.File
	raw    syscall.RawConn

	slots    [batch]slot
	messages [batch]message
	ready    int // messages that are filled
	at       int // the next of them to give
	frames   uint64

	receive func(fd uintptr) bool // made once: a closure per call would be an allocation
	drain   func(fd uintptr)
	failure error
	taken   uint64        // messages handled, of those that the kernel has accepted and not dropped
	until   atomic.Uint64 // of these, how many there were when Stop was called; everlasting before
	closed  atomic.Bool

	mu         sync.Mutex
	statistics capture.Statistics
}

func newSource(file *os.File, raw syscall.RawConn, o Options, cooked bool) *source {
	s := &source{
		name: o.Interface, filter: o.Filter, snap: o.SnapLength, cooked: cooked, file: file, raw: raw,
		statistics: capture.Statistics{Known: capture.KnownFilterAccepted | capture.KnownOSDropped},
	}
	for i := range s.slots {
		sl := &s.slots[i]
		sl.data = make([]byte, headroom+o.SnapLength) // touched, and so paid for, only as far as frames reach
		sl.vector.Base = &sl.data[headroom]
		sl.vector.SetLen(o.SnapLength)
		h := &s.messages[i].header
		h.Iov, h.Name, h.Control = &sl.vector, (*byte)(unsafe.Pointer(&sl.address)), &sl.control[0]
		h.SetIovlen(1)
	}
	s.until.Store(everlasting)
	s.receive = func(fd uintptr) bool { return s.fill(fd) }
	s.drain = func(fd uintptr) { s.fill(fd) }
	return s
}

// Interface implements Live.
func (s *source) Interface() capture.Interface {
	link := uint32(capture.LinkEthernet)
	if s.cooked {
		link = capture.LinkSLL2
	}
	return capture.Interface{Name: s.name, Filter: s.filter, LinkType: link, SnapLength: uint32(s.snap), Resolution: capture.Nanoseconds, OS: "linux"}
}

// fill takes in what has arrived; false where that is nothing yet.
func (s *source) fill(fd uintptr) bool {
	for i := range s.messages {
		h := &s.messages[i].header
		h.Namelen = uint32(unsafe.Sizeof(s.slots[i].address))
		h.SetControllen(controlRoom)
		h.Flags = 0
	}
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&s.messages[0])), batch, unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			s.ready, s.at, s.failure = int(n), 0, nil
			return true
		case unix.EINTR:
		case unix.EAGAIN:
			s.ready, s.at, s.failure = 0, 0, nil
			return false
		default:
			s.ready, s.at, s.failure = 0, 0, os.NewSyscallError("recvmmsg", errno)
			return true
		}
	}
}

// Next implements Source. It waits for the next frame.
func (s *source) Next(f *capture.Frame) error {
	for {
		for s.at < s.ready {
			if s.taken >= s.until.Load() {
				return io.EOF
			}
			i := s.at
			s.at++
			s.taken++
			if !s.give(i, f) {
				continue
			}
			s.frames++
			f.Ref = machine.MakeRef(0, s.frames)
			return nil
		}
		if err := s.wait(); err != nil {
			return err
		}
	}
}

// wait refills the slots.
func (s *source) wait() error {
	err := s.raw.Read(s.receive)
	if errors.Is(err, os.ErrDeadlineExceeded) && s.until.Load() != everlasting {
		s.ready = 0
		err = s.raw.Control(s.drain)
		if err == nil && s.ready == 0 && s.failure == nil {
			return io.EOF
		}
	}
	switch {
	case s.closed.Load(): // err is then internal/poll's, which has no name here
		return io.EOF
	case err != nil:
		return fmt.Errorf("capturing on %s: %w", s.name, err)
	case errors.Is(s.failure, unix.ENETDOWN):
		return fmt.Errorf("capturing on %s: the interface went down", s.name)
	case s.failure != nil:
		return fmt.Errorf("capturing on %s: %w", s.name, s.failure)
	}
	return nil
}

// Stop implements Live.
func (s *source) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() || s.until.Load() != everlasting {
		return
	}
	// By count, not by time: the first frames may be stamped only when they are
	// read, since the kernel takes a moment to begin stamping.
	_ = s.count() // where it fails, what was counted before stands
	s.until.Store(s.statistics.FilterAccepted - s.statistics.OSDropped)
	_ = s.file.SetReadDeadline(time.Unix(1, 0)) // fails only where it is closed already
}

// give turns the i-th message into a frame; false for one that is to be left out.
func (s *source) give(i int, f *capture.Frame) bool {
	sl, m := &s.slots[i], &s.messages[i]
	from := &sl.address
	// On loopback every packet passes twice, going out and coming in.
	if from.Hatype == unix.ARPHRD_LOOPBACK && from.Pkttype == unix.PACKET_OUTGOING {
		return false
	}
	captured := min(int(m.length), s.snap)
	aux := s.readControl(sl.control[:min(int(m.header.Controllen), controlRoom)], f)
	length := max(int(aux.Len), captured)
	begin := headroom
	protocol := from.Protocol // in network order, as it lies in memory
	if tag, ok := aux.tag(); ok && (s.cooked || captured >= 12) {
		// The kernel took the tag out: put it back where it stood, behind the two
		// addresses, or before a cooked payload.
		begin -= 4
		captured, length = captured+4, length+4
		if s.cooked {
			copy(sl.data[begin:], tag[2:4])
			nativePutUint16(sl.data[begin+2:], protocol)
			if from.Pkttype != unix.PACKET_OUTGOING && hidesTag(sl.data[headroom:headroom+captured-4], protocol, int(aux.Len)) {
				binary.BigEndian.PutUint16(sl.data[begin+2:], 0x8100)
			}
			protocol = nativeUint16(tag[:2])
		} else {
			copy(sl.data[begin:], sl.data[headroom:headroom+12])
			copy(sl.data[begin+12:], tag[:])
		}
	}
	if s.cooked {
		begin -= cookedV2
		captured, length = captured+cookedV2, length+cookedV2
		h := sl.data[begin : begin+cookedV2]
		nativePutUint16(h, protocol)
		h[2], h[3] = 0, 0
		binary.BigEndian.PutUint32(h[4:], uint32(from.Ifindex))
		binary.BigEndian.PutUint16(h[8:], from.Hatype)
		h[10], h[11] = from.Pkttype, from.Halen
		copy(h[12:20], from.Addr[:])
	}
	f.Offset, f.Interface = -1, 0
	f.LinkType = capture.LinkEthernet
	if s.cooked {
		f.LinkType = capture.LinkSLL2
	}
	f.Length = length
	f.Data = sl.data[begin : begin+captured : begin+captured]
	f.Options, f.BigEndian, f.Untimed = nil, false, false
	return true
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

// auxiliary is the kernel's struct tpacket_auxdata.
type auxiliary struct {
	Status   uint32
	Len      uint32 // of the frame as it was, without a tag taken out
	Snaplen  uint32
	Mac      uint16
	Net      uint16
	VlanTCI  uint16
	VlanTPID uint16
}

// tag gives the VLAN tag that the kernel took out, as on the wire.
func (a *auxiliary) tag() (tag [4]byte, ok bool) {
	if a.Status&unix.TP_STATUS_VLAN_VALID == 0 {
		return tag, false
	}
	kind := a.VlanTPID
	if a.Status&unix.TP_STATUS_VLAN_TPID_VALID == 0 {
		kind = 0x8100
	}
	binary.BigEndian.PutUint16(tag[:], kind)
	binary.BigEndian.PutUint16(tag[2:], a.VlanTCI)
	return tag, true
}

// readControl takes the time and the auxiliary data out of the control messages.
func (s *source) readControl(b []byte, f *capture.Frame) (aux auxiliary) {
	f.At = 0
	for len(b) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		n := int(h.Len)
		if n < unix.SizeofCmsghdr || n > len(b) {
			break
		}
		data := b[unix.CmsgLen(0):n]
		switch {
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SCM_TIMESTAMPNS && len(data) >= int(unsafe.Sizeof(unix.Timespec{})):
			f.At = machine.Instant((*unix.Timespec)(unsafe.Pointer(&data[0])).Nano())
		case h.Level == unix.SOL_PACKET && h.Type == unix.PACKET_AUXDATA && len(data) >= int(unsafe.Sizeof(aux)):
			aux = *(*auxiliary)(unsafe.Pointer(&data[0]))
		}
		b = b[min(unix.CmsgSpace(n-unix.CmsgLen(0)), len(b)):]
	}
	return aux
}

func nativeUint16(b []byte) uint16       { return binary.NativeEndian.Uint16(b) }
func nativePutUint16(b []byte, v uint16) { binary.NativeEndian.PutUint16(b, v) }
