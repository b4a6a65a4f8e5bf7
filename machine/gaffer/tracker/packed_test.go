package tracker

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/machinetest"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TestPacked: a tracker continues from its packed form as if nothing had happened. That
// form takes a fraction of a clone's memory.
func TestPacked(t *testing.T) {
	for _, profile := range []string{wire.Article, wire.Reliable} {
		for _, v := range []machine.Vantage{machine.VantageUnknown, machine.VantageA, machine.VantageBetween} {
			t.Run(fmt.Sprint(profile, " ", v), func(t *testing.T) {
				p, flow := traffic(t, profile, 3000, 0.05)
				machinetest.Tracker(t, func() machine.Tracker { return New(p, machine.Facts{Vantage: v}) }, flow[:600])
				tr := New(p, machine.Facts{Vantage: v}).(*Tracker)
				var out machine.Effects
				var scratch []byte
				for i := range flow {
					out.Reset()
					tr.Observe(&flow[i], &out)
					if i%97 != 0 || tr.Sides == nil {
						continue
					}
					c := tr.Pack(&scratch).Unpack().(*Tracker)
					for side := range c.Sides {
						if !reflect.DeepEqual(c.Sides[side].State, tr.Sides[side].State) {
							t.Fatalf("after %d datagrams side %v is unpacked as another", i+1, machine.Side(side))
						}
					}
				}
				if whole, packed := tr.Size(), tr.Pack(&scratch).Size(); packed*3 > whole {
					t.Errorf("packed it takes %d bytes, whole %d", packed, whole)
				}
			})
		}
	}
}

// TestPackedEntries: all entries survive, even those that no traffic has, such as the
// largest numbers, holes, and time that runs backwards.
func TestPackedEntries(t *testing.T) {
	all := ^uint64(0)
	last := gaffer.Sent{
		At: -1, Ref: machine.Ref(all), AckedAt: -1, AckedBy: machine.Ref(all), AckBits: all, Sequence: ^uint32(0),
		Ack: ^uint32(0), Bytes: ^uint32(0),
		Waiting: ^uint32(0), Newest: ^uint32(0), Flags: ^gaffer.SentFlags(0), Bit: 255,
	}
	ring := []gaffer.Sent{{}, last, {}, {At: 5, Ack: 1, AckBits: 1 << 63}, last, {At: 1 << 62, Ack: 64, AckBits: 7}}
	for _, bits := range []int{8, 32, 64} {
		r := &gaffer.Rules{AckBits: bits}
		if got := unpackSent(packSent(nil, ring, r, 1), len(ring), r, 1); !reflect.DeepEqual(got, ring) {
			t.Errorf("%d ack bits: %+v came back as %+v", bits, ring, got)
		}
	}
	received := []uint32{0, 1, 2, ^uint32(0), 0, 7, 7, 8, 5}
	if got := unpackReceived(packReceived(nil, received), len(received)); !reflect.DeepEqual(got, received) {
		t.Errorf("%v came back as %v", received, got)
	}
}
