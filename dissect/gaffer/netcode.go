package gaffer

import (
	"errors"
	mathbits "math/bits"

	"github.com/ackscope/ackscope/machine"
	common "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// netcodeTrial tries netcode 1.02 on a flow. Its datagrams are encrypted. Three things
// show: a counter in as few bytes as it needs, lengths that fit the types, and bytes
// after them that look random.
type netcodeTrial struct {
	profile *wire.Profile
	newest  [2]uint64
	tail    [2]uint32 // the first ciphertext bytes of the side's last datagram
	packets [2]uint8
	steps   [2]uint8
	score   [2]int16 // of each side's counter
	chance  int16    // of ciphertexts
	form    int16    // of lengths and types
	types   uint8    // bit set: a datagram of that type was seen
	bad     uint8
}

// Counters of challenges and refusals are the server's own, from 2^63 up.
const netcodeGlobal = 1 << 63

func (n *netcodeTrial) total() int {
	return int(n.score[0]) + int(n.score[1]) + int(n.form) + int(n.chance)
}

func (n *netcodeTrial) feed(d *machine.Datagram) {
	if n.total() <= hopeless {
		return
	}
	var pk wire.Packet
	if err := n.profile.Parse(d.Bytes, d.Length, &pk); err != nil {
		if !errors.Is(err, common.ErrSnapped) {
			n.bad = min(n.bad, 254) + 1
			n.form = max(n.form-8, 2*hopeless)
		}
		return
	}
	if pk.NetcodeType == 0 {
		if len(d.Bytes) >= pk.PayloadOffset {
			n.form = min(n.form+settleBits+settleLead, 150)
		}
		n.types |= 1
		return
	}
	side := d.From
	if len(d.Bytes) >= pk.PayloadOffset+4 {
		n.weighCiphertext(side, d.Bytes[pk.PayloadOffset:], pk.NetcodeType)
	}
	if n.types>>pk.NetcodeType&1 == 0 {
		n.types |= 1 << pk.NetcodeType
		if pk.NetcodeType != 5 {
			n.form += 6 // its length fits its type, to the byte
		}
	}
	bytes := int(d.Bytes[0] >> 4)
	if least := max((mathbits.Len64(pk.NetcodeSequence)+7)/8, 1); bytes != least {
		n.form = max(n.form+worst, 2*hopeless)
	}
	if pk.NetcodeSequence >= netcodeGlobal {
		return
	}
	if n.packets[side] > 0 {
		n.count(side, pk.NetcodeSequence)
	}
	n.packets[side] = min(n.packets[side], 254) + 1
	n.newest[side] = max(n.newest[side], pk.NetcodeSequence)
}

func (n *netcodeTrial) count(side machine.Side, sequence uint64) {
	ahead := int64(sequence - n.newest[side])
	var bits int
	switch {
	case ahead == 0:
		bits = -3
	case ahead > 0:
		bits = max(numberBits-1-2*(mathbits.Len64(uint64(ahead))-1), worst)
		if ahead == 1 {
			n.steps[side] = min(n.steps[side], 254) + 1
		}
	default:
		bits = max(numberBits-5-2*(mathbits.Len64(uint64(-ahead))-1), worst)
	}
	n.score[side] = int16(max(min(int(n.score[side])+bits, mostStep), 2*hopeless))
}

// weighCiphertext compares four bytes with those of the side's last datagram. At any
// position, two ciphertexts have the same byte once in 256.
func (n *netcodeTrial) weighCiphertext(side machine.Side, b []byte, kind uint8) {
	tail := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
	if n.packets[side] > 0 {
		same := 0
		for x, i := tail^n.tail[side], 0; i < 4; i, x = i+1, x>>8 {
			if byte(x) == 0 {
				same++
			}
		}
		switch {
		case same == 0:
			n.chance = min(n.chance+1, 8)
		case kind == 3 && same == 4: // a response is sent again unchanged
		default:
			n.chance = max(n.chance-int16(8*same-4), 2*hopeless)
		}
	}
	n.tail[side] = tail
}
