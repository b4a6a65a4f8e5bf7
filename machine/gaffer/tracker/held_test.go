package tracker

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// TestHeldLog: what a log holds comes back as it was, also numbers that jump and times that step
// back.
func TestHeldLog(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for range 200 {
		var l heldLog
		var want []sighting
		for range rnd.Intn(100) {
			p := sighting{
				at: machine.Instant(rnd.Uint64()), ref: machine.Ref(rnd.Uint64()), sequence: rnd.Uint32(),
				length: rnd.Uint32(), payload: rnd.Uint32(), from: machine.Side(rnd.Intn(2)),
			}
			if rnd.Intn(2) == 0 {
				p.header, p.ack, p.ackBits = true, rnd.Uint32(), rnd.Uint64()
			}
			if rnd.Intn(3) == 0 {
				p.id, p.count = uint16(rnd.Uint32()), uint16(rnd.Uint32())
			}
			l.add(&p)
			want = append(want, p)
		}
		copied := l.clone()
		l.add(&sighting{})
		var got []sighting
		copied.each(func(p *sighting) { got = append(got, *p) })
		if !slices.Equal(got, want) || !slices.Equal(copied.list(), want) {
			t.Fatalf("got %v, expected %v", got, want)
		}
	}
}

// TestHeldShort: a datagram of a short flow takes few bytes.
func TestHeldShort(t *testing.T) {
	var l heldLog
	for i := range 12 {
		l.add(&sighting{
			at: machine.Instant(i) * 16e6, ref: machine.Ref(1000 * i), sequence: uint32(i / 2), ack: uint32(i / 2),
			ackBits: 1<<(i/2) - 1, length: 150, payload: 100, from: machine.Side(i % 2), header: true,
		})
	}
	if n := len(l.packed); n > 12*20 {
		t.Errorf("12 datagrams take %d bytes, expected 20 each", n)
	}
}
