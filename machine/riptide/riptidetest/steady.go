package riptidetest

import (
	"slices"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide/endpoint"
	"github.com/ackscope/ackscope/sim"
)

// Steady returns what a tap at the client sees of a connection of some minutes, on a network that loses and doubles
// packets. The client is A.
func Steady(t testing.TB) (list []machine.Datagram) {
	t.Helper()
	l := New(t, 5, &Setting{
		Version: "2.2.1", Duration: 4 * time.Minute, Rate: 0.4, Limits: endpoint.Limits{Off: true},
		Path: sim.Path{Delay: 20 * time.Millisecond, Jitter: 4 * time.Millisecond, Loss: 0.02, Duplicate: 0.01},
	})
	l.Links[0].Tap(0, func(s sim.Tapped) {
		d := machine.Datagram{At: s.At, Ref: machine.MakeRef(0, uint64(len(list)+1)), Bytes: slices.Clone(s.Bytes)}
		if d.Length = len(d.Bytes); s.From == l.Server {
			d.From = machine.B
		}
		list = append(list, d)
	})
	l.Run(t, 4*time.Minute)
	return list
}
