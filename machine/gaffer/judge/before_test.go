package judge

import (
	"strings"
	"testing"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TestNamesBelowTheFirst: the receive buffer of a side takes a slot for used whatever is in it. So
// its first header names the 31 packets before packet 0, which its peer never sent. It diverges
// there, wherever the tap stands. In a capture that begins in the middle the same bits are right.
func TestNamesBelowTheFirst(t *testing.T) {
	p, _, err := wire.Builtin(wire.Reliable)
	if err != nil {
		t.Fatal(err)
	}
	const nothing = 0xffff
	for _, c := range []struct {
		name     string
		tap      machine.Vantage
		from     uint32 // the peer's first packet that passes
		ack      uint32 // of that packet
		diverges bool
	}{
		{"between", machine.VantageBetween, 0, nothing, true},
		{"between, its peer's first packet was lost", machine.VantageBetween, 1, nothing, true},
		{"at its peer", machine.VantageB, 0, nothing, true},
		{"at the side", machine.VantageA, 0, nothing, true},
		{"between, its peer restarted before the capture", machine.VantageBetween, 0, nothing, false},
		{"at the side, its peer restarted before the capture", machine.VantageA, 0, nothing, false},
		{"between, joined", machine.VantageBetween, 0, 700, false},
		{"between, joined later", machine.VantageBetween, 40, 700, false},
	} {
		j, err := New(p, machine.Facts{Vantage: c.tap}, [2]string{"reliable@>=1.3", "reliable@>=1.3"})
		if err != nil {
			t.Fatal(err)
		}
		frame := uint64(0)
		send := func(from machine.Side, sequence, ack uint32, bits uint64) {
			frame++
			k := wire.Packet{Kind: wire.KindRegular, HasHeader: true, Sequence: sequence}
			k.Header = wire.Header{Sequence: sequence, Ack: ack, AckBits: bits}
			b := p.Append(nil, &k, []byte("payload"))
			j.Observe(&machine.Datagram{
				Ref: machine.MakeRef(0, frame), At: machine.Instant(frame) * 10_000_000, From: from, Bytes: b, Length: len(b),
			})
		}
		bits := uint64(0xffffffff)
		if c.ack == nothing {
			bits = 0
		}
		send(machine.B, c.from, c.ack, bits)
		newest := c.from
		if strings.Contains(c.name, "restarted") {
			newest = 0xfff0 // of the session before
		}
		send(machine.A, 700, newest, 0xffffffff)
		j.Finish()
		d := j.Opinion(machine.A).Divergence
		if (d != nil) != c.diverges || d != nil && d.Ref.Frame() != 2 {
			t.Errorf("%s: %+v, expected a divergence in frame 2: %v", c.name, d, c.diverges)
		}
	}
}

// TestLateNumberNamesBelowTheFirst: packet 0 of a side comes after its packet 255, and the headers
// around it are no longer kept. It names packets older than packet 0 of its peer. So it diverges,
// certain: its peer had answered to the side's own first packet. A late packet that names what its
// peer had sent is right.
func TestLateNumberNamesBelowTheFirst(t *testing.T) {
	p, _, err := wire.Builtin(wire.Reliable)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ack      uint32
		diverges bool
	}{{65448, true}, {40, false}} {
		j, err := New(p, machine.Facts{Vantage: machine.VantageB}, [2]string{"reliable@>=1.3", "reliable@>=1.3"})
		if err != nil {
			t.Fatal(err)
		}
		frame := uint64(0)
		send := func(from machine.Side, sequence, ack uint32, bits uint64) {
			frame++
			k := wire.Packet{Kind: wire.KindRegular, HasHeader: true, Sequence: sequence}
			k.Header = wire.Header{Sequence: sequence, Ack: ack, AckBits: bits}
			b := p.Append(nil, &k, []byte("payload"))
			j.Observe(&machine.Datagram{
				Ref: machine.MakeRef(0, frame), At: machine.Instant(frame) * 10_000_000, From: from, Bytes: b, Length: len(b),
			})
		}
		send(machine.A, 0, 0xffff, 0)
		for q := range uint32(254) {
			bits := uint64(1)<<min(q+1, 32) - 1
			send(machine.B, q, q, bits)
			send(machine.A, q+1, q, bits)
		}
		send(machine.A, 255, 253, 0xffffffff)
		send(machine.A, 2, c.ack, 0xffffffff)
		j.Finish()
		d := j.Opinion(machine.A).Divergence
		switch {
		case (d != nil) != c.diverges:
			t.Errorf("ack %d: %+v, expected a divergence: %v", c.ack, d, c.diverges)
		case d != nil && (d.Ref.Frame() != frame || d.Rule != AckUnsent || d.RestsOn != machine.RestsOnPeer):
			t.Errorf("ack %d: frame %d, %s, rests on %v, expected frame %d, ack-unsent and the peer alone", c.ack, d.Ref.Frame(),
				d.Rule.ID, d.RestsOn.Words(), frame)
		}
	}
}
