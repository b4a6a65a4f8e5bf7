package analyze

import (
	"strings"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// TestMarked gives the marks of 20 packets of each side, and expects the side at which they place
// the tap.
func TestMarked(t *testing.T) {
	out, in := capture.Outbound, capture.Inbound
	type side struct {
		direction capture.Direction
		ttl       uint8
		unfilled  bool
	}
	for _, c := range []struct {
		name   string
		a, b   side
		want   string // "" for nowhere
		strong bool
	}{
		{"nothing is marked", side{ttl: 64}, side{ttl: 64}, "", false},
		{"A is outgoing", side{direction: out, ttl: 64}, side{direction: in, ttl: 57}, "a", true},
		{"B is outgoing", side{direction: in, ttl: 64}, side{direction: out, ttl: 128}, "b", true},
		{"a router sends A's packets on", side{direction: out, ttl: 63}, side{direction: in, ttl: 57}, "", false},
		{"both are outgoing", side{direction: out, ttl: 64}, side{direction: out, ttl: 64}, "", false},
		{"A's checksums are open", side{ttl: 64, unfilled: true}, side{ttl: 64}, "a", true},
		{"both checksums are open", side{ttl: 64, unfilled: true}, side{ttl: 64, unfilled: true}, "", false},
		{"they are at odds", side{direction: out, ttl: 64}, side{direction: in, ttl: 64, unfilled: true}, "", false},
		{"only B has come far", side{ttl: 64}, side{ttl: 57}, "a", false},
		{"both have come far", side{ttl: 60}, side{ttl: 57}, "", false},
	} {
		f := &Flow{}
		for x, s := range [2]side{c.a, c.b} {
			for range 20 {
				p := capture.Packet{Transport: capture.UDP, Direction: s.direction, TTL: s.ttl}
				if f.marks[x].note(&p); s.unfilled {
					f.marks[x].unfilled++
				}
			}
		}
		m, ok := f.marked()
		if got := m.side.String(); ok != (c.want != "") || ok && (got != c.want || m.strong != c.strong) {
			t.Errorf("%s: at %s (%v), strong %v: expected %q, strong %v", c.name, got, ok, m.strong, c.want, c.strong)
		}
	}
}

// TestWeighMarks holds the rule of docs/model.md: when marks place the tap at A, by what the
// packets show.
func TestWeighMarks(t *testing.T) {
	const a, b, between, unknown = machine.VantageA, machine.VantageB, machine.VantageBetween, machine.VantageUnknown
	for _, c := range []struct {
		name              string
		was               machine.Vantage
		strong            bool
		prompt, scrambled bool
		want              machine.Vantage
		supposed          bool
	}{
		{"nothing else places it", unknown, true, true, false, a, false},
		{"nothing else places it, no quick answer", unknown, true, false, false, a, true},
		{"a TTL alone, no quick answer", unknown, false, false, false, unknown, false},
		{"a TTL alone", unknown, false, true, false, a, true},
		{"it seems to be between", between, true, true, false, a, true},
		{"it seems to be between, a TTL alone", between, false, true, false, a, true},
		{"no quick answer: it is between", between, true, false, false, between, false},
		{"out of order: it is between", between, true, true, true, between, false},
		{"it seems to be at the other side", b, true, true, false, a, true},
		{"it seems to be at the other side, a TTL alone", b, false, true, false, b, false},
		{"it is there already", a, true, true, false, a, false},
		{"it is at both", machine.VantageBoth, true, true, false, machine.VantageBoth, false},
	} {
		f := machine.Facts{Vantage: c.was, VantageReason: "by times"}
		f.Prompt[machine.A], f.Scrambled[machine.A] = c.prompt, c.scrambled
		m := marked{machine.A, "marked", c.strong}
		m.weigh(&f)
		if f.Vantage != c.want || f.Supposed[machine.A] != c.supposed {
			t.Errorf("%s: %v, supposed %v: expected %v, %v", c.name, f.Vantage, f.Supposed[machine.A], c.want, c.supposed)
		}
		if placed := f.Vantage != c.was; placed != f.Marked || placed && !strings.Contains(f.VantageReason, "marked") {
			t.Errorf("%s: marked %v, because %q", c.name, f.Marked, f.VantageReason)
		}
	}
}
