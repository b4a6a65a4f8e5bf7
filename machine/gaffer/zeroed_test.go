package gaffer_test

import (
	"testing"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/gaffertest"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TestZeroedHeader: rely writes bits 8 to 15 as 0 unless all of them are set.
func TestZeroedHeader(t *testing.T) {
	s := gaffer.NewState(gaffer.RulesOf(gaffertest.Builtin(wire.Rely)))
	want := map[uint32]uint64{7: 0xff, 8: 0xff, 14: 0xff, 15: 0xffff, 16: 0x1ffff, 31: 0xffffffff}
	for q := range uint32(32) {
		s.Arrive(q, false)
		if bits, ok := want[q]; ok {
			if ack, got := s.Acks(); ack != q || got != bits {
				t.Errorf("with 0 to %d received: ack %d, bits %#x, expected %#x", q, ack, got, bits)
			}
		}
	}
	s.Arrive(40, false) // 32 to 39 are lost
	if _, got := s.Acks(); got != 0xffff0001 {
		t.Errorf("with a hole in bits 1 to 8: bits %#x, expected 0xffff0001", got)
	}
}

// TestFragmentsWait: a first fragment moves ack in reliable, and not in rely.
func TestFragmentsWait(t *testing.T) {
	for name, want := range map[string]uint32{wire.Reliable: 9, wire.Rely: 3} {
		s := gaffer.NewState(gaffer.RulesOf(gaffertest.Builtin(name)))
		s.Arrive(3, false)
		s.ArriveFragment(9, 0, 2)
		if ack, _ := s.Acks(); ack != want {
			t.Errorf("%s: ack %d with a fragment of packet 9, expected %d", name, ack, want)
		}
	}
}

// TestWeighZeroed: which headers break which reading of reliable's ack_bits.
func TestWeighZeroed(t *testing.T) {
	r := gaffer.RulesOf(gaffertest.Builtin(wire.Reliable))
	for _, c := range []struct {
		what          string
		ack, next     uint32
		bits, nowBits uint64
		broken        [2]uint32
	}{
		{"all named", 7, 8, 0xff, 0x1ff, [2]uint32{0, 1}},
		{"packet 0 is left out at bit 8", 7, 8, 0xff, 0xff, [2]uint32{1, 0}},
		{"packet 0 was never named", 7, 8, 0x7f, 0xff, [2]uint32{}},
		{"a packet is left out at bit 16", 40, 41, 0xffffffff, 0xfffeffff, [2]uint32{1, 1}},
		{"all of them set", 40, 41, 0xffffffff, 0xffffffff, [2]uint32{}},
		{"a lost packet stays unnamed", 40, 41, 0xffff00ff, 0xfffe01ff, [2]uint32{0, 1}},
	} {
		var e machine.Readings
		last := r.Claims(c.ack, c.bits)
		r.WeighZeroed(&e, machine.A, &last, r.Claims(c.next, c.nowBits), wire.RelyZeroedBits)
		if e.Broken[machine.A] != c.broken {
			t.Errorf("%s: broken %v, expected %v", c.what, e.Broken[machine.A], c.broken)
		}
	}
}
