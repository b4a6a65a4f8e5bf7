package judge

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// TestSteadyMallocs: in steady state a packet that does not diverge allocates nothing. A third of the packets is sent
// again.
func TestSteadyMallocs(t *testing.T) {
	p := wire.Default()
	ends := [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:1")}
	j, err := New(srdp.Config{Profile: p}, machine.Facts{Vantage: machine.VantageA}, ends,
		[2]string{Behaviours[0].Name, Behaviours[0].Name})
	if err != nil {
		t.Fatal(err)
	}
	var buffer [64]byte
	frame := uint64(0)
	say := func(at machine.Instant, from machine.Side, pk wire.Packet) {
		frame++
		body := binary.LittleEndian.AppendUint64(buffer[32:32], uint64(pk.ID))
		b := p.Append(buffer[:0], &pk, body)
		j.Observe(&machine.Datagram{At: at, Ref: machine.MakeRef(0, frame), From: from, Bytes: b, Length: len(b)})
	}
	got := testenv.SteadyMallocs(60_000, func(i int) {
		at := machine.Instant(i+1) * machine.Instant(20*time.Millisecond)
		id := uint16(i) &^ wire.AckMark
		for from := range machine.Side(2) {
			say(at, from, wire.Packet{Command: p.DataCommand, ID: id})
			if i%3 == 0 {
				say(at.Add(8*time.Millisecond), from, wire.Packet{Command: p.DataCommand, ID: id})
				say(at.Add(10*time.Millisecond), from.Other(), wire.Packet{Command: p.AckCommand, Ack: true, ID: id})
			}
			say(at.Add(12*time.Millisecond), from.Other(), wire.Packet{Command: p.AckCommand, Ack: true, ID: id})
		}
	})
	if t.Logf("a step allocates %v times", got); got > testenv.MostMallocs {
		t.Errorf("a step of 4 packets and more allocates %v times", got)
	}
	for x := range j.sides {
		if o := j.Opinion(machine.Side(x)); o.Divergence != nil || o.Compared < 100_000 {
			t.Errorf("side %d: %+v, and %d packets compared", x, o.Divergence, o.Compared)
		}
	}
}
