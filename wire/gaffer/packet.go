package gaffer

// Kind says what a datagram of the Gaffer family is.
type Kind uint8

const (
	KindRegular   Kind = iota // a header and a payload
	KindFragment              // one fragment of a larger packet
	KindSlice                 // one slice of a large block (article)
	KindSliceAck              // which slices of a block have come (article)
	KindHandshake             // connection request, challenge, response, ... (article)
	KindEncrypted             // a netcode datagram: what it carries is not readable
)

var kindWords = [...]string{"regular", "fragment", "slice", "slice-ack", "handshake", "encrypted"}

// String returns the kind's word.
func (k Kind) String() string { return kindWords[k] }

// Header is what every regular packet of the family carries, whatever its
// encoding. Widths below 32 or 64 bits are zero-extended.
type Header struct {
	Sequence uint32
	Ack      uint32
	AckBits  uint64
}

// Check says what became of a checksum.
type Check uint8

const (
	Unchecked Check = iota // there is none, the protocol id is not known, or the capture cut the datagram
	Matches
	Differs
)

// HandshakeKind says which packet of the article's connect sample this is.
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

// String returns the packet's word.
func (k HandshakeKind) String() string {
	if int(k) < len(handshakeWords) {
		return handshakeWords[k]
	}
	return "unknown"
}

// RequestPadding is the zero bytes after the client salt of a ConnectRequest:
// they make it larger than the answer.
const RequestPadding = 256

// MaxSlices is the most slices that a block can have.
const MaxSlices = 256

// Packet is one datagram, read by a Profile. Offsets count bytes from the
// first of the datagram.
type Packet struct {
	Kind Kind

	// Header is valid where HasHeader is set: in regular packets, and in
	// reliable's fragment 0 (whose acks count only once all fragments are in).
	Header       Header
	HasHeader    bool
	HeaderOffset int
	HeaderLen    int

	// Of fragments: the sequence of the packet they are part of, which fragment
	// this is (from 0), and how many there are.
	Sequence      uint32 // also of regular packets: the same as Header.Sequence
	FragmentID    int
	FragmentCount int

	// Payload: where it starts and how long it is on the wire (a snap length may
	// have cut what was captured of it). Where it is bit-packed right behind a
	// packet type, PayloadBit is the bit of its first byte at which it begins.
	PayloadOffset int
	PayloadBit    int
	PayloadLen    int

	CRC      uint32 // as sent, where the profile has one
	CRCWant  uint32 // as computed, where CRCCheck is Differs
	CRCCheck Check

	Type uint32 // the packet type, where the profile has more than one

	// Of slices and their acks: which block, which slice of it, and how many it has.
	Chunk      uint16
	SliceID    int
	SliceCount int
	SliceAcked [MaxSlices / 64]uint64 // bit set: that slice came

	Handshake     HandshakeKind
	ClientSalt    uint64
	ChallengeSalt uint64
	DenyReason    uint8

	// Of encrypted datagrams: their type (0 to 6) and counter. Netcode's
	// connection request has none.
	NetcodeType     uint8
	NetcodeSequence uint64
}

// SliceCame reports whether a slice ack names slice n.
func (p *Packet) SliceCame(n int) bool {
	return n >= 0 && n < MaxSlices && p.SliceAcked[n/64]>>(n%64)&1 == 1
}
