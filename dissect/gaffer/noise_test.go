package gaffer

import (
	"math/rand/v2"
	"testing"

	"github.com/ackscope/ackscope/internal/noise"
	"github.com/ackscope/ackscope/machine"
)

// TestNoise: no dialect claims what other protocols send, however much of it there is.
// The reason says why.
func TestNoise(t *testing.T) {
	for name, protocol := range noise.Protocols {
		for seed := range uint64(40) {
			for _, shape := range []string{"both", "one way", "mostly one way"} {
				r := rand.New(rand.NewPCG(seed, 7))
				next := protocol(r)
				c := Protocol.Classify()
				for i := range 64 {
					side := machine.Side(i % 2)
					if shape == "one way" || shape == "mostly one way" && i%20 != 0 {
						side = machine.A
					}
					b := next(i, side)
					c.Feed(&machine.Datagram{From: side, Bytes: b, Length: len(b)})
					if v := c.Verdict(); v.Config != nil && (v.Settled || i == 63) {
						t.Errorf("%s, %s, seed %d: taken for %s after %d datagrams: %.0f bits, %s", name, shape, seed, v.Config.Dialect,
							i+1, v.Bits, v.Reason)
						break
					}
				}
				if v := c.Verdict(); v.Config == nil && v.Reason == "" {
					t.Errorf("%s: no reason is given", name)
				}
			}
		}
	}
}
