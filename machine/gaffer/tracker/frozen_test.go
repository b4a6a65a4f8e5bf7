package tracker

import (
	"testing"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// TestAckFrozen lets B send on with one ack while packets of A pass. The rule must fire at
// the 64th of them, once B has repeated the ack 16 times for a second, and not before.
func TestAckFrozen(t *testing.T) {
	const wrapped = "ack has stayed at 65535 since its peer's numbers wrapped, though 64 packets of its peer were captured"
	const middle = "ack has stayed at 535, though 64 packets of its peer were captured"
	const never = "it has never acked anything, though 64 packets of its peer were captured"
	const ahead = "ack has stayed at 535, ahead of its peer's numbers, though 64 packets of its peer were captured"
	word := func(q uint32) uint64 { return uint64(1)<<min(q+1, 32) - 1 }
	for _, c := range []struct {
		name    string
		vantage machine.Vantage
		first   uint32 // number of A's first packet
		taken   uint32 // how many of A's packets B takes
		come    uint32 // how many of A's packets pass after these
		each    uint32 // B sends one packet for so many of A
		want    string // what it says at the first such header
		old     uint32 // what B acks before it takes the first; 0 for nothing
		sure    machine.Certainty
	}{
		{"since the wrap, near", machine.VantageB, 65500, 36, 80, 1, wrapped, 0, machine.Certain},
		{"since the wrap, far", machine.VantageA, 65500, 36, 80, 1, wrapped, 0, machine.Likely},
		{"in the middle", machine.VantageB, 500, 36, 80, 1, middle, 0, machine.Certain},
		{"never", machine.VantageB, 0, 0, 80, 1, never, 0, machine.Certain},
		{"the peer begins anew", machine.VantageB, 0, 0, 80, 1, ahead, 535, machine.Certain},
		{"few packets", machine.VantageB, 500, 36, 63, 1, "", 0, 0},
		{"few headers", machine.VantageB, 500, 36, 80, 6, "", 0, 0},
		{"the ack moves again", machine.VantageB, 500, 3000, 0, 1, "", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newTape(t, reliable(), c.vantage)
			q, own := c.first, uint32(0)
			ack, ackBits := uint32(nothing), uint64(0)
			if c.old > 0 {
				ack, ackBits = c.old, word(c.old)
			}
			for n := range c.taken + c.come {
				p.pass(machine.A, q&0xffff, nothing, 0)
				if n < c.taken {
					ack, ackBits = q&0xffff, word(n)
				}
				if n%c.each == 0 {
					p.pass(machine.B, own, ack, ackBits)
					own++
				}
				q++
			}
			var found []machine.Anomaly
			for _, a := range p.out.Anomalies {
				if a.Rule == gaffer.AckFrozen && a.Side == machine.B {
					found = append(found, a)
				}
			}
			if c.want == "" {
				if len(found) > 0 {
					t.Fatalf("%d findings, the first of frame %d: expected none", len(found), found[0].Ref)
				}
				return
			}
			if len(found) == 0 {
				t.Fatal("expected a finding, found none")
			}
			first := found[0]
			if says := gaffer.AckFrozen.Say(1, first.Figures); says != c.want {
				t.Errorf("the finding says %q, expected %q", says, c.want)
			}
			if first.Certainty != c.sure {
				t.Errorf("certainty %v, expected %v", first.Certainty, c.sure)
			}
			if moved := machine.Ref(max(2*c.taken, 2)); first.About != moved {
				t.Errorf("refers to frame %d, expected %d: the header that moved the ack last", first.About, moved)
			}
		})
	}
}
