// Package capture turns capture files and live interfaces into frames, and
// frames into datagrams: pcap and pcapng (files, pipes, gzip, zstd), every link
// type that game traffic is captured on, IP reassembly, capture duplicates.
//
// Ring 2 of the house. It knows no protocol above UDP and TCP.
package capture

import (
	"net/netip"

	"github.com/ackscope/ackscope/machine"
)

// Frame is one record of a capture. Data belongs to the source and is valid
// until its next Next.
type Frame struct {
	Ref       machine.Ref
	At        machine.Instant
	Offset    int64  // of the record in the (decompressed) file; -1 live
	Interface int    // index of the interface within the file
	Classic   bool   // the file is a classic one, which numbers no interfaces
	LinkType  uint32 // LINKTYPE_ number, all 32 bits
	Length    int    // on the wire
	Data      []byte // captured

	// Options are the record's own pcapng options, undecoded (see Comments);
	// they alias the source as Data does. BigEndian is their byte order.
	Options   []byte
	BigEndian bool
	// Untimed is set on a record that carries no time (pcapng's Simple Packet
	// Block): At repeats the time of the record before it.
	Untimed bool
}

// Source gives frames in order. Next returns io.EOF at a clean end, and a
// *CutError where the file ends in the middle of a record: everything up to
// there has been given.
type Source interface {
	Next(f *Frame) error
	Close() error
}

// Transport says what a decoded frame carries.
type Transport uint8

const (
	NoTransport Transport = iota // ARP, ICMP, LLC, ...
	UDP
	TCP
	Fragment // a piece of an IP datagram that is not yet whole
)

// Span is a stretch of a payload and the frame that it came in.
type Span struct {
	Ref    machine.Ref
	Offset int // within the frame's Data
	Length int
}

// Packet is a decoded frame: what of it ackscope reads on. It is filled in
// place; Payload aliases the frame's Data or the decoder's reassembly buffer and
// is valid until the next Decode.
type Packet struct {
	Ref       machine.Ref
	At        machine.Instant
	Transport Transport
	Src, Dst  netip.AddrPort // IPv4-mapped addresses never occur; zones neither
	Payload   []byte
	Length    int    // of the payload on the wire, by the UDP or IP header
	TTL       uint8  // or hop limit
	IPID      uint32 // identification; 0 where there is none (IPv6 without a fragment header)
	Fragments int    // IP fragments that made it up; 0 or 1 for a whole one
	Spans     []Span // where the payload's bytes are, in order

	Direction Direction // as the capturing host saw it, where the capture tells

	// Overlap is set on a reassembled datagram whose fragments disagreed about
	// some bytes: the first to arrive stands, but the receiver may have chosen
	// otherwise.
	Overlap bool

	// Duplicate is set on a datagram that this tap captured before (contract:
	// capture-duplicate); it must be kept out of state.
	Duplicate bool

	// TCP only.
	TCPSeq, TCPAck uint32
	TCPFlags       uint8

	// BadChecksum notes a UDP or IP checksum that does not match; never trusted,
	// since offloading leaves them wrong.
	BadChecksum bool

	// Problem says why decoding stopped before a transport payload: which layer,
	// at which byte of the frame, what was expected. nil for frames that simply
	// carry something else. It may stand beside a Transport and a Payload where
	// only a length in the UDP header is wrong. It is a *DecodeError that the
	// decoder owns: valid until the next Decode.
	Problem error

	// Layers are the headers on the way, outermost first, for decode trees: those
	// that lie in this frame.
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

// Direction is which way a frame passed the capturing host.
type Direction uint8

const (
	NoDirection Direction = iota // the capture does not tell
	Inbound
	Outbound
)
