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
	v := machine.Diverge(d, order, machine.RestsOnOwn, machine.Differ("srdp.packet_id", uint16(4), "none"), "ids rise", b, 0, a, b)
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
