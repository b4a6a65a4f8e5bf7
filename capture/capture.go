// Package capture reads capture files and live interfaces, and decodes their
// frames down to UDP datagrams and TCP segments.
//
//	file, pipe or interface → Source → Frame → Decoder → Packet
//
// It reads pcap and pcapng: plain, gzip or zstd, from files and pipes. It knows
// every link type that game traffic is captured on. It reassembles IP
// fragments, and marks datagrams that the tap captured twice. It knows no
// protocol above UDP and TCP.
package capture

import (
	"net/netip"

	"github.com/ackscope/ackscope/machine"
)

// Frame is one record of a capture. Data belongs to the source and is valid
// until the next call of Source.Next.
type Frame struct {
	Ref       machine.Ref
	At        machine.Instant
	Offset    int64  // of the record in the (decompressed) file; -1 in a live capture
	Interface int    // index of the interface within the file
	Classic   bool   // the file is a classic pcap file, which numbers no interfaces
	LinkType  uint32 // LINKTYPE_ number, all 32 bits
	Length    int    // on the wire
	Data      []byte // captured

	// Options are the record's own pcapng options, undecoded (see Comments). They
	// alias the source as Data does. BigEndian is their byte order.
	Options   []byte
	BigEndian bool
	// Untimed is set on a record that carries no time: pcapng's Simple Packet
	// Block. At then repeats the time of the record before it.
	Untimed bool
}

// Source yields the frames of a capture in order. Next returns io.EOF at a
// clean end, and a *CutError where the file ends in the middle of a record. By
// then it has returned every whole record before that point.
type Source interface {
	Next(f *Frame) error
	Close() error
}

// Transport is what a decoded frame carries.
type Transport uint8

const (
	NoTransport Transport = iota // ARP, ICMP, LLC, ...
	UDP
	TCP
	Fragment // a piece of an IP datagram that is not yet whole
)

// Span is a part of a payload: its place in the frame that carried it.
type Span struct {
	Ref    machine.Ref
	Offset int // within the frame's Data
	Length int
}

// Packet is a decoded frame, reduced to what the rest of ackscope reads. Decode
// fills it in place. Payload aliases the frame's Data or the decoder's
// reassembly buffer, and is valid until the next Decode.
type Packet struct {
	Ref       machine.Ref
	At        machine.Instant
	Transport Transport
	Src, Dst  netip.AddrPort // never IPv4-mapped, never with a zone
	Payload   []byte
	Length    int    // of the payload on the wire, from the UDP or IP header
	TTL       uint8  // or hop limit
	IPID      uint32 // identification; 0 if there is none (IPv6 without a fragment header)
	Fragments int    // number of IP fragments reassembled; 0 or 1 for an unfragmented packet
	Joined    []byte // the IP payload joined of them, which Payload is a part of; nil if unfragmented
	JoinedAs  uint8  // number of the protocol that Joined begins with
	Spans     []Span // where the payload's bytes are, in order

	Direction Direction // as the capturing host saw it, if the capture says so
	Checksum  uint16    // of UDP, as captured: see Unfilled

	// Overlap is set on a reassembled datagram whose fragments disagreed about
	// some bytes. Payload holds the bytes that arrived first; the receiver may
	// have chosen others.
	Overlap bool

	// Duplicate is set on a datagram that this tap captured before. State must
	// ignore it. duplicate.go says how a duplicate is recognised.
	Duplicate bool

	// TCP only.
	TCPSeq, TCPAck uint32
	TCPFlags       uint8

	// BadChecksum reports that a UDP or IP checksum does not match. Nothing relies
	// on it, because checksum offloading leaves wrong values in captures.
	BadChecksum bool

	// Problem says why decoding stopped before a transport payload: which layer,
	// at which byte of the frame, and what was expected. It is nil for frames that
	// simply carry something else. It can be set together with Transport and
	// Payload when only a length in the UDP header is wrong. It is a *DecodeError
	// that the decoder owns, valid until the next Decode.
	Problem error

	// Quote is the packet that an ICMP error quotes. It is nil in other frames. The
	// decoder owns it, and it is valid until the next Decode.
	Quote *Quote

	// Layers are the headers that lie in this frame, outermost first. Decode trees
	// show them.
	Layers []Layer
}

// Layer is one decoded header of a frame.
type Layer struct {
	Kind   LayerKind
	Offset int // within the frame's Data
	Length int
}

// LayerKind names a header.
type LayerKind uint8

const (
	LayerEthernet LayerKind = iota
	LayerVLAN
	LayerSLL
	LayerSLL2
	LayerNull
	LayerIPv4
	LayerIPv6
	LayerIPv6Extension
	LayerUDP
	LayerTCP
	LayerPPPoE
	LayerSNAP
)

// Direction is the direction in which a frame passed the capturing host.
type Direction uint8

const (
	NoDirection Direction = iota // the capture does not say
	Inbound
	Outbound
)
