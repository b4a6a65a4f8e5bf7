package machine_test

import (
	"slices"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

func TestDiverge(t *testing.T) {
	d := &machine.Datagram{At: 7, Ref: machine.MakeRef(0, 9)}
	a, b := machine.MakeRef(0, 3), machine.MakeRef(0, 5)
	order := &machine.Rule{ID: "sequence"}
	v := machine.Diverge(d, order, machine.RestsOnOwn, machine.Differ("srdp.packet_id", uint16(4), "none"),
		"ids rise", b, 0, a, b)
	if v.Ref != d.Ref || v.At != d.At || v.Rule != order || v.RestsOn != machine.RestsOnOwn || v.Because != "ids rise" {
		t.Errorf("%+v", v)
	}
	if v.Field != "srdp.packet_id" || v.Expected != "4" || v.Got != "none" {
		t.Errorf("%s: expected %s, got %s", v.Field, v.Expected, v.Got)
	}
	if !slices.Equal(v.Frames, []machine.Ref{a, b}) {
		t.Errorf("it follows from %v, expected %v: each once, the oldest first, and not 0", v.Frames, []machine.Ref{a, b})
	}
	if v := machine.Diverge(d, order, machine.RestsOnOwn, machine.Mismatch{}, "", 0); v.Frames != nil {
		t.Errorf("it follows from %v", v.Frames)
	}
}

// TestDifferKeepsBits holds that a value of bits is written in hexadecimal, with so many
// digits at least, and kept beside its text.
func TestDifferKeepsBits(t *testing.T) {
	m := machine.Differ("gaffer.ack_bits", machine.Hex(0x1d, 8), machine.Hex(0x1ff, 2))
	if m.Expected != "0x0000001d" || m.Got != "0x1ff" {
		t.Errorf("expected %s, got %s", m.Expected, m.Got)
	}
	if m.ExpectedBits != (machine.Bits{Value: 0x1d, Width: 32}) || m.GotBits != (machine.Bits{Value: 0x1ff, Width: 12}) {
		t.Errorf("the bits are %+v and %+v", m.ExpectedBits, m.GotBits)
	}
	if m := machine.Differ("gaffer.sequence", 16, "0x10"); m.ExpectedBits.Width != 0 || m.GotBits.Width != 0 {
		t.Errorf("a number and a text have the bits %+v and %+v", m.ExpectedBits, m.GotBits)
	}
}
