package capture

import (
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// TestDuplicatesFar: whether a copy is found depends on how many frames it comes after the datagram.
// The seed of the table does not matter. Nor does it which of the frames between a decoder gets, or
// what another file has.
func TestDuplicatesFar(t *testing.T) {
	frame := func(file int, number uint64, id uint16, ttl uint8) Frame {
		e := four
		e.ID, e.TTL = id, ttl
		data := udpPacket(t, e, strings.Repeat("x", 20))
		return Frame{
			Ref: machine.MakeRef(file, number), At: machine.Instant(time.Hour), LinkType: LinkRaw, Length: len(data), Data: data,
		}
	}
	for _, far := range []uint64{1, 2, duplicateFrames - 1, duplicateFrames, duplicateFrames + 1, 2 * duplicateFrames} {
		for seed := range uint64(20) {
			for _, every := range []uint64{1, 2, 7} { // the decoder gets each of so many frames between
				d := NewDecoder(DecodeOptions{})
				d.duplicates.seed = seed
				var p Packet
				feed := func(f Frame) bool {
					d.Decode(&f, &p)
					return p.Duplicate
				}
				feed(frame(0, 1, 1, 64))
				for n := uint64(1); n < far; n++ {
					feed(frame(1, n, 1, 64)) // the same datagram, from another file
					if n%every == 0 {
						feed(frame(0, 1+n, uint16(1+n), 64))
					}
				}
				if got, want := feed(frame(0, 1+far, 1, 63)), far <= duplicateFrames; got != want {
					t.Fatalf("%d frames later, seed %d, each of %d frames: found is %v, expected %v", far, seed, every, got, want)
				}
			}
		}
	}
}
