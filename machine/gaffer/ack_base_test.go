package gaffer

import (
	"math/rand/v2"
	"testing"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TestAckBaseHonest runs endpoints of both meanings over a network that loses, reorders and
// duplicates. None breaks the law of its own meaning. The other meaning is broken as soon as
// a packet is lost between two headers.
func TestAckBaseHonest(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 7))
		p, _, err := wire.Builtin(wire.Article)
		if err != nil {
			t.Fatal(err)
		}
		p.AckBase = wire.AckBase(seed % 2)
		own, other := int(p.AckBase), 1-int(p.AckBase)
		truth, loss, jitter := RulesOf(p), []float64{0, 0.01, 0.1, 0.5}[seed/2%4], rng.IntN(4)
		p.AckBase = wire.AckBase(rng.IntN(2)) // the tracker may read it by either
		read := RulesOf(p)
		s := NewState(truth)
		var e machine.Readings
		var last Claims
		first := []uint32{0, 7, 65530}[rng.IntN(3)]
		lost, sent := 0, make([]uint32, 0, 300)
		for n := range uint32(300) {
			if rng.Float64() < loss {
				lost++
				continue
			}
			sent = append(sent, (first+n)&0xffff)
		}
		for i := range sent {
			if j := i + rng.IntN(jitter+1); j < len(sent) {
				sent[i], sent[j] = sent[j], sent[i]
			}
		}
		for n, sequence := range sent {
			if n == 0 || rng.IntN(3) > 0 {
				ack, bits := s.Acks()
				read.WeighAckBase(&e, machine.B, &last, ack, bits, first)
				last = read.Claims(ack, bits)
			}
			s.Arrive(sequence, false)
		}
		if e.Broken[machine.B][own] != 0 {
			t.Fatalf("seed %d: %v breaks its own law in %d headers", seed, wire.AckBase(own), e.Broken[machine.B][own])
		}
		if broken := e.Broken[machine.B][other]; loss >= 0.1 && broken < 2 || loss == 0 && jitter == 0 && broken > 1 {
			t.Errorf("seed %d: %d of 300 packets are lost, and %d headers break %v", seed, lost, broken, wire.AckBase(other))
		}
		if loss == 0.5 && !e.Shows(own) {
			t.Errorf("seed %d: half of the packets are lost, and nothing shows %v", seed, wire.AckBase(own))
		}
	}
}

// TestAckBasesDiffer: while nothing is lost, both meanings name the same packets, but for
// the oldest one.
func TestAckBasesDiffer(t *testing.T) {
	p, _, err := wire.Builtin(wire.Article)
	if err != nil {
		t.Fatal(err)
	}
	r := RulesOf(p)
	for _, c := range []struct {
		name    string
		before  Claims
		ack     uint32
		ackBits uint64
		first   uint32
		want    bool
	}{
		{"8 is named already", Claims{39, 0xffffffff, 32}, 40, 0xffffffff, 0, false},
		{"8 is named by none", Claims{}, 40, 0xffffffff, 0, true},
		{"8 is from before the capture", Claims{}, 40, 0xffffffff, 9, false},
		{"a jump over 8", Claims{7, 0xff, 32}, 40, 0xffffffff, 0, true},
		{"a hole", Claims{39, 0xffffffff, 32}, 41, 0xfffffffd, 0, true},
		{"the start", Claims{65535, 0, 32}, 0, 1, 0, false},
	} {
		if got := r.AckBasesDiffer(&c.before, c.ack, c.ackBits, c.first); got != c.want {
			t.Errorf("%s: %v, expected %v", c.name, got, c.want)
		}
	}
}
