package realbuilds

import (
	"encoding/binary"
	"math/bits"
)

// header is what a datagram of the library `reliable` says, read by the
// library's description. All integers are little-endian.
type header struct {
	sequence uint16
	tells    bool // it has an ack: a packet in one datagram, or the first fragment
	ack      uint16
	bits     uint32 // bit n: packet ack-n was received
	fragment bool
	id       int // of the fragment, from 0
	count    int // of the fragments of its packet; 1 for a whole packet
	size     int // bytes of data behind the header
	wrong    string
}

// parse reads a datagram. It returns false where the datagram is too short for
// what it announces. The field wrong says why no correct endpoint writes this header,
// whatever it has received.
func parse(b []byte) (h header, ok bool) {
	if len(b) < 4 {
		return h, false
	}
	h.count = 1
	if b[0]&1 == 1 {
		if len(b) < 5 {
			return h, false
		}
		h.fragment, h.sequence = true, binary.LittleEndian.Uint16(b[1:])
		h.id, h.count = int(b[3]), int(b[4])+1
		switch {
		case b[0] != 1:
			h.wrong = "the prefix of a fragment is 1"
		case h.id >= h.count:
			h.wrong = "the number of a fragment is below their count"
		}
		b = b[5:]
		if h.id != 0 {
			h.size = len(b)
			return h, true
		}
		outer := h
		if h, ok = whole(b); !ok {
			return outer, false
		}
		if h.sequence != outer.sequence {
			outer.wrong = "both headers of a first fragment have one sequence"
		}
		h.sequence, h.fragment, h.id, h.count = outer.sequence, true, outer.id, outer.count
		if outer.wrong != "" {
			h.wrong = outer.wrong
		}
		return h, true
	}
	return whole(b)
}

// whole reads the header of a packet.
func whole(b []byte) (h header, ok bool) {
	if len(b) < 4 || b[0]&1 == 1 {
		return h, false
	}
	prefix := b[0]
	h.count, h.tells, h.sequence = 1, true, binary.LittleEndian.Uint16(b[1:])
	near := prefix&0x20 != 0
	need := 3 + 2 + bits.OnesCount8(prefix&0x1e)
	if near {
		need--
	}
	if len(b) < need {
		return h, false
	}
	b = b[3:]
	if near {
		h.ack, b = h.sequence-uint16(b[0]), b[1:]
	} else {
		h.ack, b = binary.LittleEndian.Uint16(b), b[2:]
		if h.sequence-h.ack <= 255 {
			h.wrong = "an ack at most 255 behind the sequence takes one byte"
		}
	}
	for i := range 4 {
		part := byte(0xff)
		if prefix>>(1+i)&1 == 1 {
			if part, b = b[0], b[1:]; part == 0xff {
				h.wrong = "a byte of ack_bits that is 0xff is left out"
			}
		}
		h.bits |= uint32(part) << (8 * i)
	}
	if prefix&0xc0 != 0 {
		h.wrong = "the two high bits of the prefix are 0"
	}
	h.size = len(b)
	return h, true
}
