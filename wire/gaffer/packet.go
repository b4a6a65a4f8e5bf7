package gaffer

// Kind says what a datagram of the Gaffer family is.
type Kind uint8

const (
	KindRegular   Kind = iota // a header and a payload
	KindFragment              // one fragment of a larger packet
	KindSlice                 // one slice of a large block (article)
	KindSliceAck              // which slices of a block have arrived (article)
	KindHandshake             // connection request, challenge, response, ... (article)
	KindEncrypted             // a netcode datagram: its content is not readable
)

var kindWords = [...]string{"regular", "fragment", "slice", "slice-ack", "handshake", "encrypted"}

// String returns the kind's name.
func (k Kind) String() string { return kindWords[k] }

// Header is what every regular packet of the family carries, in any encoding. Narrower
// fields are zero-extended.
type Header struct {
	Sequence uint32
	Ack      uint32
	AckBits  uint64
}

// Check is the result of verifying a checksum.
type Check uint8

const (
	Unchecked Check = iota // there is none, the protocol id is unknown, or the capture cut the datagram
	Matches
	Differs
)

// HandshakeKind is the kind of packet in the article's connect sample.
type HandshakeKind uint8

const (
	ConnectRequest HandshakeKind = iota
	ConnectDenied
	ConnectChallenge
	ConnectResponse
	ConnectKeepAlive
	ConnectDisconnect
)

var handshakeWords = [...]string{"request", "denied", "challenge", "response", "keep-alive", "disconnect"}

// String returns the packet's name.
func (k HandshakeKind) String() string {
	if int(k) < len(handshakeWords) {
		return handshakeWords[k]
	}
	return "unknown"
}

// RequestPadding is the number of zero bytes after the client salt of a ConnectRequest.
// They make the request larger than the answer.
const RequestPadding = 256

// MaxSlices is the largest number of slices in a block.
const MaxSlices = 256

// Packet is one datagram, read by a Profile. Offsets count bytes from the datagram's
// first byte.
type Packet struct {
	Kind Kind

	// Header is valid if HasHeader is set: in regular packets, and in reliable's fragment
	// 0. The acks of that fragment count only once all fragments have arrived.
	Header       Header
	HasHeader    bool
	HeaderOffset int
	HeaderLen    int

	// Of fragments: the sequence of their packet, the number of this fragment (from 0),
	// and the number of fragments.
	Sequence      uint32 // also of regular packets: the same as Header.Sequence
	FragmentID    int
	FragmentCount int

	// The payload: where it starts, and its length on the wire. A snap length may have cut
	// the captured bytes. If it is bit-packed directly after a packet type, it begins at
	// bit PayloadBit of its first byte.
	PayloadOffset int
	PayloadBit    int
	PayloadLen    int

	CRC      uint32 // as sent, if the profile has one
	CRCWant  uint32 // as computed, if CRCCheck is Differs
	CRCCheck Check

	Type uint32 // the packet type, if the profile has more than one

	// Of slices and their acks: the block, the slice in it, and its number of slices.
	Chunk      uint16
	SliceID    int
	SliceCount int
	SliceAcked [MaxSlices / 64]uint64 // bit set: that slice has arrived

	Handshake     HandshakeKind
	ClientSalt    uint64
	ChallengeSalt uint64
	DenyReason    uint8

	// Of encrypted datagrams: their type (0 to 6) and counter. Netcode's connection
	// request has no counter.
	NetcodeType     uint8
	NetcodeSequence uint64
}

// SliceCame reports whether a slice ack names slice n.
func (p *Packet) SliceCame(n int) bool {
	return n >= 0 && n < MaxSlices && p.SliceAcked[n/64]>>(n%64)&1 == 1
}
