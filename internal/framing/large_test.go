package framing

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// bodies are what games put into large messages: numbers with many zeros, which
// look like lengths.
var bodies = map[string]func(rng *rand.Rand, b []byte){
	"small integers": func(rng *rand.Rand, b []byte) {
		for ; len(b) >= 4; b = b[4:] {
			binary.LittleEndian.PutUint32(b, uint32(rng.IntN(30)))
		}
	},
	"records": func(rng *rand.Rand, b []byte) {
		for ; len(b) >= 12; b = b[12:] {
			binary.LittleEndian.PutUint32(b, uint32(4+rng.IntN(12)))
			binary.LittleEndian.PutUint16(b[4:], uint16(rng.IntN(11)))
		}
	},
	"strings with lengths": func(rng *rand.Rand, b []byte) {
		for len(b) > 24 {
			n := 1 + rng.IntN(20)
			binary.LittleEndian.PutUint32(b, uint32(n))
			for i := range n {
				b[4+i] = byte('a' + rng.IntN(26))
			}
			b = b[4+n:]
		}
	},
	"zeros": func(_ *rand.Rand, _ []byte) {},
}

// encode appends a message with its length to a stream.
type encode func(rng *rand.Rand, dst []byte, size int, fill func(rng *rand.Rand, b []byte)) []byte

// encodeRiptide writes an unreliable message of Riptide 2.2.1.
func encodeRiptide(rng *rand.Rand, dst []byte, size int, fill func(rng *rand.Rand, b []byte)) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(size))
	from := len(dst)
	dst = append(dst, make([]byte, size)...)
	fill(rng, dst[from:])
	dst[from] &= 0xf0
	dst[from+1] |= 1
	return dst
}

// encodeSRDP writes a packet to or from an SRDP proxy: data, or in one of three
// cases an acknowledgement.
func encodeSRDP(rng *rand.Rand, dst []byte, size int, fill func(rng *rand.Rand, b []byte)) []byte {
	p := wire.Default().In(wire.Proxied)
	pk := wire.Packet{Command: p.DataCommand, ID: uint16(rng.IntN(400)), Flags: p.Order}
	data := make([]byte, size)
	fill(rng, data)
	if rng.IntN(3) == 0 {
		pk.Command, pk.Ack, pk.Flags, data = p.AckCommand, true, 0, nil
	}
	b := p.Append(nil, &pk, data)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(b)))
	return append(dst, b...)
}

// large returns one direction of a connection: large messages with small ones
// between them, and where each lies.
func large(rng *rand.Rand, longest int, write encode, fill func(rng *rand.Rand, b []byte)) (*connection, []message) {
	c := &connection{name: "large"}
	var whole []message
	seq := uint32(1000)
	for frame := uint64(1); frame < 120; {
		size := 3 + rng.IntN(20)
		if rng.IntN(3) == 0 {
			size = longest/2 + rng.IntN(longest/2)
		}
		b := write(rng, nil, size, fill)
		prefix := 4
		if int(binary.BigEndian.Uint16(b))+2 == len(b) {
			prefix = 2
		}
		whole = append(whole, message{place: place{machine.A, seq + uint32(prefix), len(b) - prefix}, prefix: prefix})
		for len(b) > 0 {
			n := min(len(b), 1448)
			p := capture.Packet{
				Ref: machine.MakeRef(0, frame), At: machine.Instant(frame) * 1000, Transport: capture.TCP, TCPSeq: seq,
				TCPFlags: 0x10, Payload: b[:n], Length: n,
			}
			p.Spans = []capture.Span{{Ref: p.Ref, Offset: 54, Length: n}}
			c.segments = append(c.segments, segment{machine.A, p})
			seq += uint32(n)
			frame++
			b = b[n:]
		}
	}
	return c, whole
}

// mustBeFound is the longest message of streams whose framing must be found. Of
// longer ones, two may fill all the bytes that a search holds.
const mustBeFound = 4000

// TestLargeMessages begins streams inside of large messages. What lies within
// their bodies looks like prefixes, and none of it may be taken for messages.
func TestLargeMessages(t *testing.T) {
	rounds := uint64(6)
	if testenv.Whole() {
		rounds = 60
	}
	for protocol, write := range map[string]encode{"riptide": encodeRiptide, "srdp": encodeSRDP} {
		t.Run(protocol, func(t *testing.T) {
			cuts, misled, late := 0, 0, 0
			for name, fill := range bodies {
				for _, longest := range []int{700, 1200, 4000, 9000} {
					for seed := range rounds {
						rng := rand.New(rand.NewPCG(seed, uint64(longest)))
						c, whole := large(rng, longest, write, fill)
						at := rng.IntN(len(c.segments) / 2)
						skip := rng.IntN(len(c.segments[at].Payload))
						o := hold(whole, c.cut(at, skip))
						where := fmt.Sprintf("%s up to %d, seed %d, from segment %d, byte %d", name, longest, seed, at, skip)
						cuts++
						if len(o.wrong) > 0 {
							misled++
						}
						if len(o.wrong) > 2 || len(o.wrong) > 0 && o.wrong[0].grade > machine.Likely {
							t.Errorf("%s: %d messages are none, the first %+v", where, len(o.wrong), o.wrong[0])
						}
						if len(o.missing) > 2 {
							late++
							if longest <= mustBeFound {
								t.Errorf("%s: %d of %d are not read", where, len(o.missing), o.expected)
							}
						}
					}
				}
			}
			if misled*50 > cuts {
				t.Errorf("%d of %d cuts give a wrong first message, expected at most one of 50", misled, cuts)
			}
			t.Logf("%d cuts, %d with a wrong first message, %d not found", cuts, misled, late)
		})
	}
}
