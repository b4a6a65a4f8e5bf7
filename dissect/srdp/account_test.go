package srdp

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// TestAccountAgreesWithFields charges random datagrams in both ways: whole ones without a dissection,
// and all by their fields. Bills must be the same.
func TestAccountAgreesWithFields(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 1))
	for _, p := range builtin() {
		whole := 0
		for range 20000 {
			b := make([]byte, rng.IntN(40))
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			if len(b) > 0 {
				b[0] = "SA\x80"[rng.IntN(3)]
			}
			dg := &machine.Datagram{Bytes: b, Length: len(b)}
			if rng.IntN(4) == 0 {
				dg.Length += rng.IntN(20) // a snap length cut it
			}
			ctx := dissect.Context{Config: p.Config, From: machine.Side(rng.IntN(2))}
			var short, long dissect.Dissection
			var got, want dissect.Bill
			account(ctx, dg, &short, &got)
			Dissect(ctx, dg, &long)
			accountFields(ctx, dg, &long, &want)
			if got.Type != want.Type || got.Acks != want.Acks || !reflect.DeepEqual(got.Bodies, want.Bodies) {
				t.Fatalf("%s %x of %d bytes: charged %q %d %v, by fields %q %d %v", p.Name, b, dg.Length,
					got.Type, got.Acks, got.Bodies, want.Type, want.Acks, want.Bodies)
			}
			if len(short.Fields) == 0 {
				whole++
			}
		}
		if whole < 1000 || whole > 19000 {
			t.Errorf("%s: %d of 20,000 datagrams are whole: expected both kinds", p.Name, whole)
		}
	}
}
