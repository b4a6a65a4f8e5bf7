// Package host reads what the system of the capturing host counted. It tells at which place inside
// the host a datagram died:
//
//	card → softnet queue → (tap of the capture) → socket's queue → program
//	  │         │                                     │               │
//	Device   Softnet                            Socket.Drops     Socket.Queue
//
// A Sample holds the counters of one moment. A Timeline holds the samples of a capture, in bounded
// memory, and answers what happened at an address in a span of time.
//
// Source: Linux, proc_pid_net(5); net/ipv4/udp.c (udp4_format_sock), net/ipv4/proc.c,
// net/core/net-procfs.c. Other systems have no samples.
package host

import (
	"net/netip"

	"github.com/ackscope/ackscope/machine"
)

// Sample is what the host counted up to one moment. All counts are totals since the system, the
// interface or the socket began.
type Sample struct {
	At machine.Instant
	// System tells the network namespace of one running system from others. Counts of two samples
	// compare only where it is equal.
	System    uint64
	Addresses []netip.Addr // of the interfaces
	Ports     []uint16     // that were looked for; one without a socket in Sockets had none
	Sockets   []Socket     // of UDP, on those ports
	// Cut is set where the lists were too long: what is missing in them is unknown.
	Cut     bool
	Counts  Counts
	Devices []Device
}

// Socket is a UDP socket of the host.
type Socket struct {
	Local  netip.AddrPort // an unspecified address stands for all of the host's
	Remote netip.AddrPort // unspecified unless the socket is connected
	Inode  uint64         // number of the socket
	UID    uint32         // user that opened it
	Queue  uint64         // memory that its unread datagrams take, in bytes, with the kernel's overhead
	Drops  uint64         // datagrams that the kernel dropped at it
	Owner  Owner
}

// Owner is the process that holds a socket, as far as it is known.
type Owner struct {
	PID   int    // 0 where it is unknown
	Name  string // of the process
	Group string // control group, which names the pod or container; empty where it is unknown
	Why   string // why the process is unknown
}

// Counts are counters of the whole network namespace (Softnet: of the system).
type Counts struct {
	NoPorts        uint64 // datagrams for a port without a socket
	ReceiveErrors  uint64 // datagrams that reached a socket and were not delivered
	BufferErrors   uint64 // of them, those that found its receive buffer full
	ChecksumErrors uint64 // of them, those with a wrong checksum
	Softnet        uint64 // packets that found the queue between card and protocols full
}

// Device is what an interface counted.
type Device struct {
	Name                        string
	ReceiveDrops, TransmitDrops uint64 // packets; /proc/net/dev adds those that the card missed
	ReceiveFIFO, TransmitFIFO   uint64 // overruns
	ReceiveErrors               uint64
}

// limits of a sample, so that it fits an option of pcapng, which holds 65,535 bytes.
// Source: choice, 512 sockets of 100 bytes
const (
	maxSockets   = 512
	maxAddresses = 256
	maxPorts     = 2048
	maxDevices   = 64
	maxText      = 256 // bytes of a name, a control group or a reason
)

// fits grades how a socket takes datagrams from peer to at: 0 for not at all. The kernel prefers a
// connected socket, then one that is bound to the address.
// Source: Linux, net/ipv4/udp.c: compute_score.
func (x *Socket) fits(at, peer netip.AddrPort) int {
	if x.Local.Port() != at.Port() {
		return 0
	}
	grade := 1
	switch {
	case x.Local.Addr() == at.Addr():
		grade += 2
	case !x.Local.Addr().IsUnspecified() || x.Local.Addr().Is4() && at.Addr().Is6():
		return 0
	}
	switch {
	case x.Remote == peer:
		grade += 4
	case x.Remote.Port() != 0:
		return 0
	}
	return grade
}
