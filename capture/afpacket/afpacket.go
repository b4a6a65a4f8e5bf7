// Package afpacket captures live on Linux through AF_PACKET sockets, in pure
// Go. On other systems it builds too, and Open returns ErrUnsupported.
//
// Source: packet(7), and the kernel's include/uapi/linux/if_packet.h.
package afpacket

import (
	"errors"
	"net"
	"net/netip"
	"os"

	"golang.org/x/net/bpf"

	"github.com/ackscope/ackscope/capture"
)

// Any is the interface name for a capture on all interfaces at once.
const Any = "any"

// ErrUnsupported is the error of Open on systems without AF_PACKET.
var ErrUnsupported = errors.New("live capture is unsupported on this system: pipe `tcpdump -U -w -` into `-r -`")

// Options say how a live capture is opened.
type Options struct {
	// Interface is a name, or Any.
	Interface string
	// Promiscuous also captures frames that are addressed to other hosts. It has
	// no effect on Any.
	Promiscuous bool
	// SnapLength is how many bytes of each frame are kept (default 256 KiB).
	SnapLength int
	// Buffer is the size of the ring that the kernel fills, in bytes (default 32
	// MiB). It is rounded to whole blocks, at least two.
	Buffer int
	// Filter is a capture filter in the language of package pcapfilter. Empty
	// means no filter. It takes effect before the first frame can arrive.
	Filter string
	// Program is a compiled BPF filter, in place of Filter. It must match the link
	// type of the interface.
	Program []bpf.RawInstruction
	// Socket is a socket that Socket opened for this interface, in a process with
	// more privileges. If it is nil, Open opens one. Otherwise Open takes
	// ownership of it.
	Socket *os.File
	// Idle, if not nil, is called before the source waits for a frame that has not
	// arrived yet. It is the moment to pass on what is buffered.
	Idle func()
	// Notice, if not nil, receives a text for each event that does not end the
	// capture. Such events are: the interface went down, it is up again, or one of
	// a group was removed. The reading goroutine calls it.
	Notice func(text string)
}

const (
	defaultSnapLength = 256 << 10
	defaultBuffer     = 32 << 20
)

// Device is an interface that can be captured on.
type Device struct {
	Name      string
	Index     int // 0 for Any
	Up        bool
	Loopback  bool
	Addresses []netip.Prefix
}

// Devices lists the interfaces of this host, Any first.
func Devices() ([]Device, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	devices := []Device{{Name: Any, Up: true}}
	for _, i := range interfaces {
		d := Device{Name: i.Name, Index: i.Index, Up: i.Flags&net.FlagUp != 0, Loopback: i.Flags&net.FlagLoopback != 0}
		addresses, err := i.Addrs()
		if err != nil {
			continue // removed meanwhile
		}
		for _, a := range addresses {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				d.Addresses = append(d.Addresses, prefix)
			}
		}
		devices = append(devices, d)
	}
	return devices, nil
}

// Live is a live capture: a Source that never returns a CutError, with the
// counts of the kernel.
type Live interface {
	capture.Source
	// Interface describes the interface of the capture.
	Interface() capture.Interface
	// Statistics returns the counts since Open:
	//
	//   - FilterAccepted: frames that the socket accepted, delivered or dropped;
	//   - OSDropped: those of them that found no room in its ring;
	//   - Received and Dropped: the interface's own counts, if it has them.
	Statistics() (capture.Statistics, error)
	// Stop ends the capture; any goroutine may call it. Next then returns the
	// frames that had arrived by then, and after them io.EOF.
	Stop()
}

// Group is a live capture on several interfaces at once. The Interface of a
// frame is the index of its interface in the list that OpenGroup received.
type Group interface {
	capture.Source
	// Interfaces describes the interfaces.
	Interfaces() []capture.Interface
	// Statistics returns the counts of Live.Statistics for each interface.
	Statistics() ([]capture.Statistics, error)
	// Freezes returns for each interface how often its ring was full.
	Freezes() []uint64
	// Stop does what Live.Stop does, for all interfaces.
	Stop()
}
