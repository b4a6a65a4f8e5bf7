package judge_test

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/gaffertest"
	"github.com/ackscope/ackscope/machine/gaffer/judge"
)

// TestHeaderForm passes one datagram of A at each tap. Its bytes are written by hand, by
// the layout of reliable's header.
func TestHeaderForm(t *testing.T) {
	whole := func(b ...byte) []byte { return append(b, 0xaa) }
	fragment := func(b ...byte) []byte { return append(b, make([]byte, 1024)...) }
	for _, c := range []struct {
		name     string
		datagram []byte
		field    string // "" where the datagram is written as reliable writes it
	}{
		{"as reliable", whole(0x3e, 20, 0, 4, 1, 0, 0, 0), ""},
		{"bit 6 of the prefix", whole(0x7e, 20, 0, 4, 1, 0, 0, 0), "gaffer.prefix"},
		{"a byte of 0xff", whole(0x3e, 20, 0, 4, 0xff, 0, 0, 0), "gaffer.prefix"},
		{"ack in two bytes", whole(0x1e, 20, 0, 16, 0, 1, 0, 0, 0), "gaffer.prefix"},
		{"ack in two bytes, 256 behind", whole(0x1e, 20, 0, 0x14, 0xff, 1, 0, 0, 0), ""},
		{"fragment 0", fragment(1, 20, 0, 0, 1, 0x3e, 20, 0, 4, 1, 0, 0, 0), ""},
		{"fragment 0 of another packet", fragment(1, 20, 0, 0, 1, 0x3e, 21, 0, 5, 1, 0, 0, 0), "gaffer.sequence"},
		{"fragment 0 in another form", fragment(1, 20, 0, 0, 1, 0x3e, 20, 0, 4, 0xff, 0, 0, 0), "gaffer.prefix"},
		{"fragment 1", fragment(1, 20, 0, 1, 2), ""},
	} {
		for _, tap := range []machine.Vantage{machine.VantageA, machine.VantageB, machine.VantageBetween} {
			const behaviour = "reliable@>=1.3"
			p := gaffertest.Builtin("reliable")
			j, err := judge.New(p, machine.Facts{Vantage: tap}, [2]string{behaviour, behaviour})
			if err != nil {
				t.Fatal(err)
			}
			j.Observe(&machine.Datagram{
				At: machine.Instant(time.Second), Ref: machine.MakeRef(0, 7), From: machine.A,
				Bytes: c.datagram, Length: len(c.datagram),
			})
			v := j.Opinion(machine.A).Divergence
			switch {
			case c.field == "" && v != nil && v.Rule == judge.HeaderForm:
				t.Errorf("%s, %v: %s", c.name, tap, v.Because)
			case c.field == "":
			case v == nil || v.Rule != judge.HeaderForm:
				t.Errorf("%s, %v: no divergence of the header's form", c.name, tap)
			case v.Mismatch.Field != c.field || v.RestsOn != machine.RestsOnOwn:
				t.Errorf("%s, %v: %s rests on %v, expected %s", c.name, tap, v.Mismatch.Field, v.RestsOn.Words(), c.field)
			}
		}
	}
}
