// Package afpacket captures live on Linux through AF_PACKET sockets, in pure
// Go. On other systems it builds, and Open says what to do instead.
//
// Source of truth: packet(7), and the kernel's include/uapi/linux/if_packet.h.
package afpacket

import (
	"errors"
	"net"
	"net/netip"
	"os"

	"golang.org/x/net/bpf"

	"github.com/ackscope/ackscope/capture"
)

// Any names the capture on all interfaces at once.
const Any = "any"

// ErrUnsupported is what Open fails with on systems without AF_PACKET.
var ErrUnsupported = errors.New("live capture is unsupported on this system: pipe `tcpdump -U -w -` into `-r -`")

// Options are how a live capture is opened.
type Options struct {
	// Interface is a name, or Any.
	Interface string
	// Promiscuous asks the interface for frames that are not for this host; it
	// has no effect on Any.
	Promiscuous bool
	// SnapLength is how much of each frame is kept, in bytes (default 256 KiB).
	SnapLength int
	// Buffer is the size of the ring that the kernel fills, in bytes (default 32 MiB);
	// it is rounded to whole blocks, two at least.
	Buffer int
	// Filter is a capture filter, as package pcapfilter takes it; empty for
	// everything. It is in force before the first frame can come.
	Filter string
	// Program is a filter as a BPF program instead, for advanced use; it is
	// written for the interface's own kind of packets.
	Program []bpf.RawInstruction
	// Socket is one that Socket has opened for this interface, by a process with
	// more privileges; nil to open one here. Open owns it then.
	Socket *os.File
	// Idle, where set, is called before the source waits for a frame that has
	// not come yet: the moment to hand on what is buffered.
	Idle func()
	// Notice, where set, is told of what the capture goes on after: that the
	// interface went down, that it is up again, that one of a group was removed.
	// It is called by who reads.
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
			continue // gone meanwhile
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

// Live is a live capture: a Source that never cuts, with what the kernel counts.
type Live interface {
	capture.Source
	// Interface describes what is captured on.
	Interface() capture.Interface
	// Statistics returns the counts since Open: frames that the socket accepted
	// (delivered and dropped together) as FilterAccepted, those dropped for want of
	// room in its ring as OSDropped; and what the interface itself counted, as
	// Received and Dropped, where it is one that counts.
	Statistics() (capture.Statistics, error)
	// Stop ends the capture from any goroutine: Next gives the frames that had
	// arrived by then, and after them io.EOF.
	Stop()
}

// Group is a live capture on several interfaces at once. A frame's Interface says
// on which it came: the place among those that were asked for.
type Group interface {
	capture.Source
	// Interfaces describes them.
	Interfaces() []capture.Interface
	// Statistics returns what Live.Statistics gives, of each.
	Statistics() ([]capture.Statistics, error)
	// Freezes counts, for each, how often the ring was full.
	Freezes() []uint64
	// Stop is Live.Stop of all.
	Stop()
}
