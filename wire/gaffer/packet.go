package gaffer

// Kind says what a datagram of the Gaffer family is.
type Kind uint8

const (
	KindRegular   Kind = iota // a header and a payload
	KindFragment              // one fragment of a larger packet
	KindSlice                 // one slice of a large block (article)
	KindSliceAck              // which slices of a block have come (article)
	KindHandshake             // connection request, challenge, response, ... (article)
)

// Header is what every regular packet of the family carries, whatever its
// encoding. Widths below 32 or 64 bits are zero-extended.
type Header struct {
	Sequence uint32
	Ack      uint32
	AckBits  uint64
}

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
	// have cut what was captured of it).
	PayloadOffset int
	PayloadLen    int
}
