package machine_test

import (
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// TestReadings lists what packets of both sides show: each pair is how many packets of a
// side break reading 0 and reading 1.
func TestReadings(t *testing.T) {
	for _, c := range []struct {
		name           string
		a, b           [2]uint32
		shows, against [2]bool // reading 0 or 1 is shown; packets speak against it
		disputed       bool
	}{
		{name: "nothing"},
		{name: "one packet", a: [2]uint32{1, 0}, against: [2]bool{true, false}},
		{name: "two of one side", a: [2]uint32{2, 0}, shows: [2]bool{false, true}, against: [2]bool{true, false}},
		{
			name: "one of each", a: [2]uint32{0, 1}, b: [2]uint32{0, 1},
			shows: [2]bool{true, false}, against: [2]bool{false, true},
		},
		{name: "the sides disagree", a: [2]uint32{9, 0}, b: [2]uint32{0, 1}, disputed: true},
		{
			name: "a side breaks both", a: [2]uint32{3, 3}, b: [2]uint32{0, 2},
			shows: [2]bool{true, false}, against: [2]bool{false, true},
		},
		{name: "both break both", a: [2]uint32{3, 3}, b: [2]uint32{7, 7}},
	} {
		e := machine.Readings{Broken: [2][2]uint32{c.a, c.b}}
		for reading := range 2 {
			if got := e.Shows(reading); got != c.shows[reading] {
				t.Errorf("%s: reading %d is shown: %v", c.name, reading, got)
			}
			if got := e.Doubts(reading); got != c.against[reading] {
				t.Errorf("%s: packets speak against reading %d: %v", c.name, reading, got)
			}
		}
		if got := e.Disputed(); got != c.disputed {
			t.Errorf("%s: disputed: %v", c.name, got)
		}
	}
}
