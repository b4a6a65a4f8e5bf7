package judge

import (
	"strings"
	"testing"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TestRelation: which number became which.
func TestRelation(t *testing.T) {
	for _, c := range []struct {
		right, wrong uint32
		width        int
		want         string
	}{
		{83, 21248, 16, "21248 is 83 with its bytes swapped"},
		{339, 83, 16, "83 is the low byte of 339"},
		{83, 339, 16, "339 is 83 + 256"},
		{300, 44, 16, "44 is the low byte of 300"},
		{1300, 1044, 16, "1044 is 1300 - 256"},
		{83, 32851, 16, "32851 is 83 with its top bit flipped"},
		{0x01020304, 0x04030201, 32, "67305985 is 16909060 with its bytes swapped"},
		{83, 84, 16, ""},
		{83, 83, 16, ""},
		{0x101, 0x101, 16, ""}, // its swapped bytes are itself
		{5, 133, 8, ""},
	} {
		if got := relation(c.right, c.wrong, c.width); got != c.want {
			t.Errorf("%d for %d of %d bits: %q, expected %q", c.wrong, c.right, c.width, got, c.want)
		}
	}
}

// TestExplained lets A send one wrong header, and asks what the divergence says of it.
func TestExplained(t *testing.T) {
	const newest = 300
	for _, c := range []struct {
		name string
		play func(p *judgeTape)
		want string
	}{
		{
			"swapped", func(p *judgeTape) { p.regular(machine.A, 1, 0x2c01, 0xffffffff) },
			"11265 is 300 with its bytes swapped",
		},
		{"low byte", func(p *judgeTape) { p.regular(machine.A, 1, 0x2c, 0xffffffff) }, "44 is the low byte of 300"},
		{"256 too large", func(p *judgeTape) { p.regular(machine.A, 1, newest+256, 0xffffffff) }, "556 is 300 + 256"},
		{"of the packet before", func(p *judgeTape) { p.regular(machine.A, 1, newest+255, 0xffffffff) }, "555 is 299 + 256"},
		{
			"a number swapped, near", func(p *judgeTape) { p.regular(machine.A, 0x100, newest, 0xffffffff) },
			"256 is 1 with its bytes swapped",
		},
		{"no relation", func(p *judgeTape) { p.regular(machine.A, 1, newest+3, 0xffffffff) }, ""},
		// 299 + 256 again, but packet 290 is named and did not pass.
		{"what the bits name did not pass, near", func(p *judgeTape) { p.regular(machine.A, 1, newest+255, 0xffffffff) }, ""},
	} {
		for _, vantage := range []machine.Vantage{machine.VantageA, machine.VantageB} {
			if strings.HasSuffix(c.name, "near") && vantage == machine.VantageB {
				continue // there A's numbers may step, and B's may not
			}
			p := newJudgeTape(t, vantage)
			for q := uint32(newest - 40); q <= newest; q++ {
				if q != 290 || !strings.HasPrefix(c.name, "what") {
					p.regular(machine.B, q, 0xffff, 0)
				}
				if q == newest-20 {
					p.regular(machine.A, 0, q, 0xffff)
				}
			}
			c.play(p)
			v := p.judge.Opinion(machine.A).Divergence
			if v == nil {
				t.Fatalf("%s: A does not diverge", c.name)
			}
			_, says, _ := strings.Cut(v.Because, "; ")
			if says != c.want {
				t.Errorf("%s, tap at %v: %s, expected %q", c.name, vantage, v.Because, c.want)
			}
		}
	}
}

// TestGapsBehindFragments: A numbers every fragment, or leaves a number out as well.
func TestGapsBehindFragments(t *testing.T) {
	for _, whole := range []bool{false, true} {
		p := newJudgeTape(t, machine.VantageA)
		q := uint32(0)
		for i := range 12 {
			p.regular(machine.A, q, 0xffff, 0)
			if q++; whole && i == 9 {
				q++
			}
			for id := range 3 {
				k := wire.Packet{Kind: wire.KindFragment, Sequence: q, FragmentID: id, FragmentCount: 3, HasHeader: id == 0}
				k.Header = wire.Header{Sequence: q, Ack: 0xffff}
				p.pass(machine.A, &k, 1024)
			}
			q += 3
		}
		p.judge.Finish()
		v := p.judge.Opinion(machine.A).Divergence
		if v == nil || !strings.Contains(v.Because, "packet 1 came in 3 fragments, and the number steps by as many") {
			t.Fatalf("with a gap elsewhere %v: %+v", whole, v)
		}
		if all := strings.Contains(v.Because, "all 11 gaps come after packets that arrived in fragments"); all == whole {
			t.Errorf("with a gap elsewhere %v: %s", whole, v.Because)
		}
	}
}

// TestRefusedAlike: what the packets have in common that a side did not take.
func TestRefusedAlike(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"late", "all 4 had come late, behind a newer packet, and no late packet was taken"},
		{"late, and one of them taken", "all 3 had come late, behind a newer packet"},
		{"late, and one that was not", "refused by the application, or dropped by its host"},
	} {
		p := newJudgeTape(t, machine.VantageA)
		var bits uint64
		for q := uint32(0); q < 40; q += 2 {
			order := []uint32{q, q + 1}
			if q%10 == 4 {
				order = []uint32{q + 1, q} // q comes late
			}
			for _, k := range order {
				p.regular(machine.B, k, 0xffff, 0)
			}
			taken := uint64(3)
			spared := q == 14 && c.name == "late, and one of them taken"
			if q%10 == 4 && !spared || q == 20 && strings.HasSuffix(c.name, "not") {
				taken = 1
			}
			bits = (bits<<2 | taken) & 0xffffffff
			p.regular(machine.A, q/2, q+1, bits)
		}
		p.judge.Finish()
		o := p.judge.Opinion(machine.A)
		if o.Divergence != nil || !strings.HasSuffix(o.Why, c.want) {
			t.Errorf("%s: %s, expected %s; %+v", c.name, o.Why, c.want, o.Divergence)
		}
	}
}

// TestMalformedNotRefused: a packet whose middle fragment is too short is dropped before the
// application sees it.
func TestMalformedNotRefused(t *testing.T) {
	p := newJudgeTape(t, machine.VantageA)
	bits := uint64(0)
	for q := range uint32(6) {
		for id := range 3 {
			k := wire.Packet{Kind: wire.KindFragment, Sequence: q, FragmentID: id, FragmentCount: 3, HasHeader: id == 0}
			k.Header = wire.Header{Sequence: q, Ack: 0xffff}
			size := 1024
			if q == 3 && id == 1 {
				size = 1000
			}
			p.pass(machine.B, &k, size)
		}
		if bits <<= 1; q != 3 {
			bits |= 1
		}
		p.regular(machine.A, q, q, bits)
	}
	p.judge.Finish()
	a, b := p.judge.Opinion(machine.A), p.judge.Opinion(machine.B)
	if b.Divergence == nil || b.Divergence.Field != "gaffer.payload.length" {
		t.Errorf("B's fragment is too short: %+v", b.Divergence)
	}
	want := "1 packets dropped as malformed: fragments of them are not of the usual size"
	if a.Divergence != nil || a.Inferred.Refused != 0 || a.Why != want && a.Undecided > 0 {
		t.Errorf("A refused %d: %s, %+v", a.Inferred.Refused, a.Why, a.Divergence)
	}
}

// TestShortDatagram: a datagram that is too short is told as that, not as a wrong number.
func TestShortDatagram(t *testing.T) {
	p := newJudgeTape(t, machine.VantageA)
	p.regular(machine.A, 0, 0xffff, 0)
	p.frame++
	short := machine.Datagram{Ref: machine.MakeRef(0, p.frame), From: machine.A, Bytes: []byte{0x3e, 1}, Length: 2}
	p.judge.Observe(&short)
	p.regular(machine.A, 2, 0xffff, 0)
	v := p.judge.Opinion(machine.A).Divergence
	if v == nil || v.Rule != Unreadable || v.Field != "gaffer.prefix" || v.Expected != "at least 4 bytes" ||
		v.Got != "2 bytes: 3e 01" {
		t.Errorf("%+v", v)
	}
}
