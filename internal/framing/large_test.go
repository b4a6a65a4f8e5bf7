package framing

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
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

// large returns one direction of a connection of Riptide 2.2.1: unreliable
// messages of many bytes, and small ones between them.
func large(rng *rand.Rand, longest int, fill func(rng *rand.Rand, b []byte)) *connection {
	c := &connection{name: "large"}
	seq := uint32(1000)
	for frame := uint64(1); frame < 120; {
		size := 3 + rng.IntN(20)
		if rng.IntN(3) == 0 {
			size = longest/2 + rng.IntN(longest/2)
		}
		b := make([]byte, 4+size)
		binary.LittleEndian.PutUint32(b, uint32(size))
		fill(rng, b[4:])
		b[4], b[5] = b[4]&0xf0, b[5]|1 // type 0: Unreliable
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
	return c
}

// whole lists the messages of a connection that was made by large.
func (c *connection) whole() (out []message) {
	var stream []byte
	for i := range c.segments {
		stream = append(stream, c.segments[i].Payload...)
	}
	for at := 0; at+4 <= len(stream); {
		n := int(binary.LittleEndian.Uint32(stream[at:]))
		out = append(out, message{place: place{machine.A, c.segments[0].TCPSeq + uint32(at+4), n}, prefix: 4})
		at += 4 + n
	}
	return out
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
	cuts, misled, late := 0, 0, 0
	for name, fill := range bodies {
		for _, longest := range []int{700, 1200, 4000, 9000} {
			for seed := range rounds {
				rng := rand.New(rand.NewPCG(seed, uint64(longest)))
				c := large(rng, longest, fill)
				whole := c.whole()
				at := rng.IntN(len(c.segments) / 2)
				skip := rng.IntN(len(c.segments[at].Payload))
				o := hold(whole, c.cut(at, skip))
				cuts++
				if len(o.wrong) > 0 {
					misled++
				}
				if len(o.wrong) > 2 || len(o.wrong) > 0 && o.wrong[0].grade > machine.Likely {
					t.Errorf("%s up to %d, seed %d, from segment %d, byte %d: %d messages are none, the first %+v", name, longest,
						seed, at, skip, len(o.wrong), o.wrong[0])
				}
				if len(o.missing) > 2 {
					late++
				}
				if len(o.missing) > 2 && longest <= mustBeFound {
					t.Errorf("%s up to %d, seed %d, from segment %d, byte %d: %d of %d are not read", name, longest, seed, at, skip,
						len(o.missing), o.expected)
				}
			}
		}
	}
	if misled*50 > cuts {
		t.Errorf("%d of %d cuts give a wrong first message, expected at most one of 50", misled, cuts)
	}
	t.Logf("%d cuts, %d with a wrong first message, %d not found at once", cuts, misled, late)
}
