package gaffer_test

import (
	"strings"
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// baseFlow feeds a classifier a flow from its middle on. Each side sends 60 packets, all of
// which pass the tap, and acks what arrives. Those whose number is in lost do not arrive.
// The first sequences are 1000.
func baseFlow(t *testing.T, c dissect.Classifier, of [2]wire.AckBase, lost ...uint32) {
	t.Helper()
	p, _, err := wire.Builtin(wire.Article)
	if err != nil {
		t.Fatal(err)
	}
	var profiles [2]wire.Profile
	var states [2]model.State
	for i := range profiles {
		profiles[i] = *p
		profiles[i].AckBase = of[i]
		if err := profiles[i].Validate(); err != nil {
			t.Fatal(err)
		}
		states[i] = model.NewState(model.RulesOf(&profiles[i]))
		for n := range uint32(40) {
			states[i].Arrive(960+n, false)
		}
	}
	gone := map[uint32]bool{}
	for _, n := range lost {
		gone[n] = true
	}
	for n := range uint32(120) {
		from, sequence := n%2, 1000+n/2
		ack, bits := states[from].Acks()
		h := wire.Header{Sequence: sequence, Ack: ack, AckBits: bits}
		b := profiles[from].Append(nil, &wire.Packet{Header: h, Sequence: sequence}, []byte{byte(n), 7, 7})
		c.Feed(&machine.Datagram{From: machine.Side(from), Bytes: b, Length: len(b)})
		if !gone[sequence] {
			states[1-from].Arrive(sequence, false)
		}
	}
}

// TestAckBaseByHoles: a lost packet shows what bit 0 of ack_bits is, wherever the tap is.
// Without one, the user's profile counts, and the flow is in doubt.
func TestAckBaseByHoles(t *testing.T) {
	below := read(t, "protocol: gaffer\nname: below\nbase: article\nsettings: {ack_base: ack-n-1}\n")
	below.Dialect = "below"
	c := gaffer.WithProfiles([]dissect.Profile{{Name: "below", Config: below}}).Classify()
	const n, under = wire.AckMinusN, wire.AckMinusNMinusOne
	for name, x := range map[string]struct {
		of     [2]wire.AckBase
		lost   []uint32
		found  string
		sure   bool
		reason string
	}{
		"article, nothing lost": {[2]wire.AckBase{n, n}, nil, "below", false, "too little shows"},
		"below, nothing lost":   {[2]wire.AckBase{under, under}, nil, "below", false, "too little shows"},
		"article, one lost": {
			[2]wire.AckBase{n, n},
			[]uint32{1010},
			"article", true,
			"2 headers show that bit 0 of ack_bits is ack",
		},
		"below, one lost": {
			[2]wire.AckBase{under, under},
			[]uint32{1010},
			"below", true,
			"2 headers show that bit 0 of ack_bits is the packet before",
		},
		"they differ": {[2]wire.AckBase{n, under}, []uint32{1010, 1020}, "below", false, "too little shows"},
	} {
		c.Reset()
		baseFlow(t, c, x.of, x.lost...)
		v := c.Verdict()
		if v.Config == nil || v.Config.Dialect != x.found || v.Config.Facts.Doubtful == x.sure || c.Sure() != x.sure ||
			!strings.Contains(v.Reason, x.reason) {
			t.Errorf("%s: %+v, sure %v", name, v, c.Sure())
		}
	}
}
