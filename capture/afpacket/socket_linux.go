package afpacket

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/capture/pcapfilter"
)

// Open starts a capture. It needs CAP_NET_RAW, or a socket that was opened with
// it.
func Open(o Options) (Live, error) {
	s, err := openSource(o)
	if err != nil {
		return nil, err // not s: a nil *source in a Live is not a nil Live
	}
	return s, nil
}

func openSource(o Options) (*source, error) {
	if o.SnapLength <= 0 {
		o.SnapLength = defaultSnapLength
	}
	if o.Buffer <= 0 {
		o.Buffer = defaultBuffer
	}
	s, err := open(o)
	if err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			return nil, fmt.Errorf("capturing on %s: %w: expected the capability CAP_NET_RAW (run as root, or setcap "+
				"cap_net_raw+ep on the program)", o.Interface, err)
		}
		return nil, fmt.Errorf("capturing on %s: %w", o.Interface, err)
	}
	return s, nil
}

// Socket only opens the socket of a capture: the step that needs CAP_NET_RAW.
// It can be handed to a process without that capability, which passes it to
// Open as Options.Socket.
func Socket(o Options) (*os.File, error) {
	_, cooked, err := target(o)
	if err != nil {
		return nil, fmt.Errorf("capturing on %s: %w", o.Interface, err)
	}
	fd, err := socket(cooked)
	if err != nil {
		return nil, fmt.Errorf("capturing on %s: %w", o.Interface, err)
	}
	return os.NewFile(uintptr(fd), "AF_PACKET"), nil
}

// target returns the index of an interface, and whether the kernel removes its
// link header. An Ethernet header is kept. On other interfaces the cooked
// header replaces it.
func target(o Options) (index int, cooked bool, err error) {
	if o.Interface == Any {
		return 0, true, nil
	}
	i, err := net.InterfaceByName(o.Interface)
	if err != nil {
		return 0, false, errors.New("expected an interface of this host, found none of that name")
	}
	hardware, err := hardwareType(o.Interface)
	return i.Index, hardware != unix.ARPHRD_ETHER && hardware != unix.ARPHRD_LOOPBACK, err
}

// socket opens a socket for protocol 0. Nothing is queued before it is set up
// and bound.
func socket(cooked bool) (int, error) {
	kind := unix.SOCK_RAW
	if cooked {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(unix.AF_PACKET, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	return fd, os.NewSyscallError("socket", err)
}

// fits checks that a socket from another process has the type that socket would
// open. With another type, the frames would have other headers than we read.
func fits(fd int, cooked bool) error {
	want := unix.SOCK_RAW
	if cooked {
		want = unix.SOCK_DGRAM
	}
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return os.NewSyscallError("getsockopt SO_DOMAIN", err)
	}
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return os.NewSyscallError("getsockopt SO_TYPE", err)
	}
	if domain != unix.AF_PACKET || kind != want {
		return fmt.Errorf("expected a socket of family %d and type %d, found family %d, type %d", unix.AF_PACKET, want,
			domain, kind)
	}
	return nil
}

func open(o Options) (*source, error) {
	index, cooked, err := target(o)
	if err != nil {
		return nil, err
	}
	var fd int
	if o.Socket == nil {
		fd, err = socket(cooked)
	} else {
		if err := fits(int(o.Socket.Fd()), cooked); err != nil {
			return nil, errors.Join(err, o.Socket.Close())
		}
		// Duplicate the descriptor: the *os.File closes its own one when it is
		// garbage collected.
		fd, err = unix.FcntlInt(o.Socket.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		err = errors.Join(os.NewSyscallError("fcntl", err), o.Socket.Close())
		if err == nil {
			err = os.NewSyscallError("fcntl", unix.SetNonblock(fd, true))
		}
	}
	if err != nil {
		return nil, err
	}
	if err := filter(fd, cooked, o); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	r, err := openRing(fd, o)
	if err == nil {
		err = bind(fd, index, o)
	}
	if err != nil {
		return nil, errors.Join(err, r.close(), unix.Close(fd))
	}
	file := os.NewFile(uintptr(fd), "AF_PACKET")
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, r.close(), file.Close())
	}
	return newSource(file, raw, r, o, index, cooked), nil
}

// filter attaches the capture filter and locks it. A process that receives the
// socket cannot widen the filter.
func filter(fd int, cooked bool, o Options) error {
	raw := o.Program
	if len(raw) == 0 { // compile an empty filter too: its return value is what cuts frames
		target := pcapfilter.EthernetSocket
		if cooked {
			target = pcapfilter.CookedSocket
		}
		program, err := pcapfilter.Compile(o.Filter, target, uint32(o.SnapLength))
		if err != nil {
			return err
		}
		if raw, err = bpf.Assemble(program); err != nil {
			return err
		}
	}
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	attached := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &attached); err != nil {
		return fmt.Errorf("the kernel refuses the capture filter: %w", os.NewSyscallError("setsockopt SO_ATTACH_FILTER", err))
	}
	return os.NewSyscallError("setsockopt SO_LOCK_FILTER", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_LOCK_FILTER, 1))
}

func bind(fd, index int, o Options) error {
	if o.Promiscuous && index != 0 {
		request := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC}
		if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &request); err != nil {
			return os.NewSyscallError("setsockopt PACKET_ADD_MEMBERSHIP", err)
		}
	}
	all := unix.SockaddrLinklayer{Protocol: bigEndian16(unix.ETH_P_ALL), Ifindex: index}
	return os.NewSyscallError("bind", unix.Bind(fd, &all))
}

// bigEndian16 returns the value whose bytes in memory are v in network order.
func bigEndian16(v uint16) uint16 {
	b := [2]byte{byte(v >> 8), byte(v)}
	return nativeUint16(b[:])
}

// hardwareType returns the ARPHRD_ number of an interface.
func hardwareType(name string) (uint16, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	defer func() { _ = unix.Close(fd) }()
	request, err := unix.NewIfreq(name)
	if err != nil {
		return 0, err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFHWADDR, request); err != nil {
		return 0, os.NewSyscallError("ioctl SIOCGIFHWADDR", err)
	}
	return request.Uint16(), nil // the address family field holds the hardware type
}

// Statistics implements Live. Each reading resets the kernel's counters.
func (s *source) Statistics() (capture.Statistics, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed.Load() {
		if err := s.count(); err != nil {
			return capture.Statistics{}, err
		}
	}
	return s.statistics, nil
}

func (s *source) count() error {
	var st *unix.TpacketStatsV3
	var failure error
	if err := s.raw.Control(func(fd uintptr) {
		st, failure = unix.GetsockoptTpacketStatsV3(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS)
	}); err != nil {
		return err
	}
	if failure != nil {
		return os.NewSyscallError("getsockopt PACKET_STATISTICS", failure)
	}
	s.statistics.FilterAccepted += uint64(st.Packets)
	s.statistics.OSDropped += uint64(st.Drops)
	s.freezes += uint64(st.Freeze_q_cnt)
	if now, ok := readCounters(s.name); ok && s.statistics.Known&capture.KnownReceived != 0 {
		s.statistics.Received, s.statistics.Dropped = now.received-s.before.received, now.dropped-s.before.dropped
	}
	return nil
}

// Close implements Source. It wakes a waiting Next.
func (s *source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return nil
	}
	err := s.count() // the last reading
	s.closed.Store(true)
	err = errors.Join(err, s.file.Close())
	// The mapping keeps the socket alive. Wait until Next, now awake, has left it.
	s.reading.Lock()
	defer s.reading.Unlock()
	return errors.Join(err, s.ring.close())
}
