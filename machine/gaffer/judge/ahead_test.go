package judge

import (
	"testing"

	"github.com/ackscope/ackscope/machine"

	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// judgeTape is a flow of reliable that a test writes by hand, in front of a judge.
type judgeTape struct {
	*testing.T
	profile *wire.Profile
	judge   *Judge
	frame   uint64
}

func newJudgeTape(t *testing.T, vantage machine.Vantage) *judgeTape {
	profile, _, err := wire.Builtin(wire.Reliable)
	if err != nil {
		t.Fatal(err)
	}
	j, err := New(profile, machine.Facts{Vantage: vantage}, [2]string{"reliable@>=1.3", "reliable@>=1.3"})
	if err != nil {
		t.Fatal(err)
	}
	return &judgeTape{T: t, profile: profile, judge: j}
}

// pass lets a packet pass the tap.
func (p *judgeTape) pass(from machine.Side, k *wire.Packet, payload int) {
	p.frame++
	b := p.profile.Append(nil, k, make([]byte, payload))
	at := machine.Instant(p.frame) * 5_000_000
	p.judge.Observe(&machine.Datagram{Ref: machine.MakeRef(0, p.frame), At: at, From: from, Bytes: b, Length: len(b)})
}

// regular lets a packet with a header pass the tap.
func (p *judgeTape) regular(from machine.Side, sequence, ack uint32, ackBits uint64) {
	k := wire.Packet{Kind: wire.KindRegular, HasHeader: true, Sequence: sequence}
	k.Header = wire.Header{Sequence: sequence, Ack: ack, AckBits: ackBits}
	p.pass(from, &k, 20)
}

// TestClaimAhead lets A name a packet far ahead of all that passed. The numbers of B that pass
// afterwards decide whether a capture that lacks that packet would show the same.
func TestClaimAhead(t *testing.T) {
	const (
		before, lie = 100, 356
		middle      = 500 // B's first number where the capture begins in the middle
	)
	for _, c := range []struct {
		name    string
		vantage machine.Vantage
		named   bool   // A named a packet of B before
		late    uint32 // B's packet so far behind came after the others, once
		after   uint32 // packets of B that pass after the lie
		from    uint32 // the first of them
		want    machine.RestsOn
	}{
		{"the numbers go on below it, near", machine.VantageA, true, 0, 40, before, machine.RestsOnPeer},
		{"the numbers go on below it, far", machine.VantageB, true, 0, 40, before, machine.RestsOnPeer},
		{"few packets follow", machine.VantageA, true, 0, 20, before, machine.RestsOnBoth},
		{"the numbers go on behind it: the capture may lack it", machine.VantageA, true, 0, 40, lie + 1, machine.RestsOnBoth},
		{"packets are overtaken by many", machine.VantageA, true, 20, 60, before, machine.RestsOnBoth},
		{"packets are overtaken by many, and many follow", machine.VantageA, true, 20, 80, before, machine.RestsOnPeer},
		{"it may speak of a session before", machine.VantageB, false, 0, 40, before, machine.RestsOnBoth},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newJudgeTape(t, c.vantage)
			base := uint32(0)
			if !c.named {
				base = middle
			}
			for q := range uint32(before) {
				if c.late == 0 || q != 40 {
					p.regular(machine.B, base+q, 0xffff, 0)
				}
				if c.late > 0 && q == 40+c.late {
					p.regular(machine.B, 40, 0xffff, 0)
				}
			}
			if c.named {
				p.regular(machine.A, 0, before-1, 0xffffffff)
			}
			p.regular(machine.A, 1, base+lie, 0xffffffff)
			for q := range c.after {
				p.regular(machine.B, base+c.from+q, 0xffff, 0)
			}
			v := p.judge.Opinion(machine.A).Divergence
			if v == nil {
				t.Fatal("A does not diverge")
			}
			if v.RestsOn != c.want {
				t.Errorf("%v rests on %v, expected %v", v.Rule, v.RestsOn.Words(), c.want.Words())
			}
		})
	}
}

// TestFragmentsRestOn: no packet that the capture lacks explains a fragment of another size, or a
// number that is given to two packets.
func TestFragmentsRestOn(t *testing.T) {
	fragment := func(p *judgeTape, sequence uint32, id, payload int) {
		k := wire.Packet{Kind: wire.KindFragment, Sequence: sequence, FragmentID: id, FragmentCount: 3, HasHeader: id == 0}
		k.Header = wire.Header{Sequence: sequence, Ack: 0xffff}
		p.pass(machine.A, &k, payload)
	}
	for _, c := range []struct {
		name string
		play func(p *judgeTape)
		want machine.RestsOn
	}{
		{"a fragment is larger", func(p *judgeTape) { fragment(p, 5, 1, 1025) }, machine.RestsOnOwn},
		{"the next packet has another fragment size", func(p *judgeTape) {
			fragment(p, 5, 1, 1024)
			fragment(p, 5, 2, 100)
			fragment(p, 6, 0, 1000)
		}, machine.RestsOnOwn},
		{"a whole packet has the same number", func(p *judgeTape) {
			p.regular(machine.A, 5, 0xffff, 0)
		}, machine.RestsOnOwn},
		{"an older one comes in between", func(p *judgeTape) { p.regular(machine.A, 4, 0xffff, 0) }, machine.RestsOnOwn},
		{"the next one comes too early", func(p *judgeTape) { p.regular(machine.A, 6, 0xffff, 0) }, machine.RestsOnAbsence},
		{"a fragment is left out", func(p *judgeTape) { fragment(p, 5, 2, 100) }, machine.RestsOnAbsence},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newJudgeTape(t, machine.VantageA)
			p.regular(machine.A, 4, 0xffff, 0)
			fragment(p, 5, 0, 1024)
			c.play(p)
			v := p.judge.Opinion(machine.A).Divergence
			if v == nil {
				t.Fatal("A does not diverge")
			}
			if v.RestsOn != c.want {
				t.Errorf("%s: rests on %v, expected %v", v.Because, v.RestsOn.Words(), c.want.Words())
			}
		})
	}
}
