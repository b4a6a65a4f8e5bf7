package riptide

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// The start of a message that is kept says what the whole message says, in every dialect. A message
// that was captured in part says so too.
func TestLastText(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2))
	cut := 0
	for _, dialect := range wire.Dialects {
		for _, codec := range []wire.Codec{
			{Dialect: dialect}, {Dialect: dialect, BigEndian: true}, {Dialect: dialect, NotifyHeader: true},
		} {
			config := &dissect.Config{Profile: &riptide.Settings{Senders: [2]riptide.Sender{{Codec: codec}, {Codec: codec}}}}
			f := &analyze.Flow{Protocol: riptide.Protocol, Verdict: dissect.Verdict{Config: config}}
			for range 20_000 {
				whole := make([]byte, 1+random.IntN(60))
				for i := range whole {
					whole[i] = byte(random.Uint32()) | byte(random.IntN(2))<<7 // long numbers too
				}
				whole[0] = byte(random.IntN(20))
				d := machine.Datagram{At: 1, Length: len(whole), Bytes: whole}
				if random.IntN(4) == 0 {
					d.Length += 100
				}
				x := &flowEnd{flow: f}
				x.take(&analyze.Record{Flow: f, Datagram: d})
				want := riptide.Protocol.Info(dissect.Context{Config: config}, &d, nil)
				if got := x.lastText(machine.A); !bytes.Equal(got, want) {
					t.Fatalf("%s: %x of %d bytes: %q, expected %q", dialect.Name, whole, d.Length, got, want)
				}
				var m wire.Message
				beats := codec.Fits(whole, d.Length, &m) && m.Type == wire.Heartbeat
				if got := x.beat[machine.A].at != 0; got != beats {
					t.Fatalf("%s: %x of %d bytes: a heartbeat: %v, expected %v", dialect.Name, whole, d.Length, got, beats)
				}
				if len(whole) > lastWordStart {
					cut++
				}
			}
		}
	}
	if cut < 10_000 {
		t.Errorf("only %d messages were cut", cut)
	}
}
