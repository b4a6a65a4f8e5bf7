package messages

import (
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// TestReceiptOfCopies: the first copy of a message may have come unless the header covers it and
// does not name it.
func TestReceiptOfCopies(t *testing.T) {
	e := &machine.Event{Sequence: 100, Sequence64: 1<<16 + 100}
	read := machine.Span{From: 500, To: 900, Certainty: machine.Certain}
	for _, c := range []struct {
		what     string
		first    uint32 // the packet with the first copy, at 200
		covered  int64
		whole    machine.Instant
		expected machine.Instant
	}{
		{"the only copy", 100, 1<<16 + 80, 500, 500},
		{"its last datagram passed later", 100, 1<<16 + 80, 510, 510},
		{"the first copy is covered, and not named", 90, 1<<16 + 80, 500, 500},
		{"the first copy is too old for the header", 70, 1<<16 + 80, 500, 200},
		{"the first copy is from before the wrap", 0xfff0, 1<<16 + 80, 500, 200},
		{"the tap shows all that was read", 70, NothingOlder, 510, 500},
	} {
		r := Receipt{Read: read, Covered: c.covered}.of(e, c.first, 200, c.whole)
		if r.Read.From != c.expected || r.Read.To != 900 || r.Read.Certainty != machine.Certain {
			t.Errorf("%s: %+v, expected to begin at %d", c.what, r.Read, c.expected)
		}
	}
}

// TestSentBounds: what the ids and the missing packets show of when a message first left.
func TestSentBounds(t *testing.T) {
	for _, c := range []struct {
		what     string
		packets  []Carrier // each carries the message of the same place
		ids      []int64
		expected machine.Span // of the last one
	}{
		{
			"every packet passed",
			[]Carrier{{At: 10, Begun: true, After: machine.At(4, machine.Certain)}},
			[]int64{0},
			machine.Span{From: 4, To: 10, Certainty: machine.Certain},
		},
		{
			"packet 0 never passed",
			[]Carrier{{At: 10, After: machine.At(4, machine.Certain)}},
			[]int64{0},
			machine.Span{From: 4, To: 10, Certainty: machine.Likely},
		},
		{
			"the tap is at the sender",
			[]Carrier{{At: 10, Begun: true, Near: true}},
			[]int64{0},
			machine.At(10, machine.Certain),
		},
		{
			"packet 0 left the sender before the capture",
			[]Carrier{{At: 10, Near: true}},
			[]int64{0},
			machine.At(10, machine.Likely),
		},
		{
			"a packet is missing since",
			[]Carrier{
				{At: 10, After: machine.At(4, machine.Certain)},
				{At: 30, Sequence64: 2, After: machine.At(24, machine.Certain), Missing: 1},
			},
			[]int64{0, 1},
			machine.Span{From: 4, To: 30, Certainty: machine.Likely},
		},
		{
			"a packet with a later message passed",
			[]Carrier{
				{At: 10, After: machine.At(4, machine.Certain)},
				{At: 30, Sequence64: 2, After: machine.At(24, machine.Certain), Missing: 1},
				{At: 90, Sequence64: 3, After: machine.At(84, machine.Certain), Missing: 1},
			},
			[]int64{0, 2, 1},
			machine.Span{From: 4, To: 30, Certainty: machine.Likely},
		},
		{"no header says what was read", []Carrier{{At: 10}}, []int64{0}, machine.Span{}},
	} {
		s := newStream(256)
		for i := range c.packets {
			if s.lane.carry(c.ids[i], &c.packets[i], &s.out) == nil {
				t.Fatalf("%s: message %d has no life", c.what, c.ids[i])
			}
		}
		if l := s.lane.find(c.ids[len(c.ids)-1]); l.sent != c.expected {
			t.Errorf("%s: first sent %+v, expected %+v", c.what, l.sent, c.expected)
		}
	}
}
