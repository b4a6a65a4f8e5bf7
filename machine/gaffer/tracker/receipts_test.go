package tracker

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TestReceiptBounds: headers that cover a packet and do not name it show that it had not been
// read.
func TestReceiptBounds(t *testing.T) {
	p, _, err := wire.Builtin(wire.Article)
	if err != nil {
		t.Fatal(err)
	}
	tr := NewByRules(p, gaffer.RulesOf(p), machine.Facts{Vantage: machine.VantageA})
	tr.WantReceipts()
	got := map[machine.Side]map[uint32][2]time.Duration{machine.A: {}, machine.B: {}}
	var out machine.Effects
	const none = 0xffff
	for i, x := range []struct {
		ms   int
		from machine.Side
		h    wire.Header
	}{
		{0, machine.A, wire.Header{Sequence: 0, Ack: none}},
		{10, machine.A, wire.Header{Sequence: 1, Ack: none}},
		{12, machine.B, wire.Header{Sequence: 0, Ack: none}},
		{20, machine.A, wire.Header{Sequence: 2, Ack: none}},              // A has not read B's packet 0
		{30, machine.A, wire.Header{Sequence: 3, Ack: 0, AckBits: 1}},     // now it has
		{40, machine.B, wire.Header{Sequence: 1, Ack: 1, AckBits: 0b01}},  // B has read 1, and not 0
		{50, machine.B, wire.Header{Sequence: 2, Ack: 2, AckBits: 0b111}}, // B has read 0 and 2
	} {
		out.Reset()
		bytes := p.AppendHeader(nil, x.h)
		tr.Observe(&machine.Datagram{
			At: machine.Instant(time.Duration(x.ms) * time.Millisecond), Ref: machine.MakeRef(0, uint64(i+1)),
			From: x.from, Bytes: bytes,
			Length: len(bytes),
		}, &out)
		receipts := tr.Receipts()
		for _, e := range out.Events {
			if e.Kind != machine.EventReceived {
				continue
			}
			r := &receipts[0].Read
			got[e.Side][e.Sequence] = [2]time.Duration{
				time.Duration(r.From) / time.Millisecond, time.Duration(r.To) / time.Millisecond,
			}
			if r.Certainty != machine.Certain {
				t.Errorf("packet %d towards %v: the bounds are %v, expected certain", e.Sequence, e.Side, r.Certainty)
			}
			receipts = receipts[1:]
		}
		if len(receipts) > 0 {
			t.Fatalf("datagram %d: %d receipts without an event", i, len(receipts))
		}
	}
	for _, x := range []struct {
		side     machine.Side
		sequence uint32
		expected [2]time.Duration
	}{
		{machine.A, 0, [2]time.Duration{20, 30}}, // its header of 20 ms does not name it
		{machine.B, 0, [2]time.Duration{10, 50}}, // B read 1, which left at 10 ms, before it read 0
		{machine.B, 1, [2]time.Duration{10, 40}},
		{machine.B, 2, [2]time.Duration{20, 50}},
	} {
		if b := got[x.side][x.sequence]; b != x.expected {
			t.Errorf("%v read packet %d between %d and %d ms, expected %d and %d", x.side, x.sequence, b[0], b[1],
				x.expected[0], x.expected[1])
		}
	}
}
