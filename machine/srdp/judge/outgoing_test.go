package judge

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// TestOutbox compares an outbox with a list that is searched from its end. Few ids in turn with many make the ring
// leave out what is replaced.
func TestOutbox(t *testing.T) {
	var box outbox
	var list []outgoing
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 60_000 {
		ids := []int{5, 1 << 15}[n/20_000%2]
		e := outgoing{id: uint16(random.IntN(ids)), ref: machine.Ref(n + 1)}
		box.drop(e.id)
		list = slices.DeleteFunc(list, func(x outgoing) bool { return x.id == e.id })
		if box.places.Len() >= keptMost {
			if id := box.dropOldest(); id != list[0].id {
				t.Fatalf("packet %d: the oldest is %d, expected %d", n, id, list[0].id)
			}
			list = list[1:]
		}
		*box.add(e.id) = e
		list = append(list, e)
		if asked := uint16(random.IntN(ids)); n%16 == 0 {
			at := slices.IndexFunc(list, func(x outgoing) bool { return x.id == asked })
			found := box.find(asked)
			if (at < 0) != (found == nil) || found != nil && *found != list[at] {
				t.Fatalf("packet %d: id %d is %v", n, asked, found)
			}
		}
	}
	var all []outgoing
	box.each(func(e *outgoing) { all = append(all, *e) })
	if !slices.Equal(all, list) {
		t.Errorf("the outbox has %d packets, expected %d, or in another order", len(all), len(list))
	}
	if len(box.ring) > 2*keptMost {
		t.Errorf("the ring has room for %d packets", len(box.ring))
	}
}

// TestMarkedForgotten sends an id near the end of the range, and then so many older ones that the judge forgets the
// packet. Data behind 15 bits must then be no reason to look into it.
func TestMarkedForgotten(t *testing.T) {
	ends := [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:1")}
	p := wire.Default()
	j, err := New(srdp.Config{Profile: p}, machine.Facts{Vantage: machine.VantageA}, ends,
		[2]string{Behaviours[0].Name, Behaviours[0].Name})
	if err != nil {
		t.Fatal(err)
	}
	n := machine.Ref(0)
	send := func(b []byte) {
		n++
		j.Observe(&machine.Datagram{At: machine.Instant(n) * 1e6, Ref: n, From: machine.A, Bytes: b, Length: len(b)})
	}
	for k := range keptMost + 2 {
		send(p.Append(nil, &wire.Packet{Command: p.DataCommand, ID: wire.AckMark - 1 - uint16(k)}, []byte{1, 2, 3}))
	}
	if l := j.sides[machine.A].lanes[0]; l.high != wire.AckMark-1 || l.sent.find(l.high) != nil {
		t.Fatalf("the newest id is %d, and its packet is known", l.high)
	}
	late := p.Append(nil, &wire.Packet{Command: p.DataCommand, ID: 0}, []byte{1, 2, 3})
	late[srdp.TopByte(&p)] |= 0x80
	send(late)
}
