package tracker_test

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/gaffertest"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	"github.com/ackscope/ackscope/machine/gaffer/tracker"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TestDeathSpiral sends packets that carry a run of messages from id 0 on, of one byte
// each. Before them stand 8 bytes of header and 44 bits: message ack, count and first id.
// So a packet exceeds the MTU from 1,459 messages on.
func TestDeathSpiral(t *testing.T) {
	const most = messages.PacketMost - 8 - 6
	for _, c := range []struct {
		name    string
		runs    []int // messages of each packet
		payload int   // bytes behind the messages
		schema  bool
		want    int // packets reported
		sure    machine.Certainty
		figures [3]float64
	}{
		{"fits", []int{most - 1, most}, 0, true, 0, 0, [3]float64{}},
		{"one byte too many", []int{most - 1, most, most + 1}, 0, true, 1, machine.Certain, [3]float64{1473, most + 1, most}},
		{"grows on", []int{1000, 1600, 2000}, 0, true, 2, machine.Certain, [3]float64{2014, 2000, 1600}},
		{"all are new", []int{0, 2000}, 0, true, 0, 0, [3]float64{}},
		{"the game's own data is too large", []int{100, 110}, 1472, true, 0, 0, [3]float64{}},
		{"no schema", []int{1000, 1600, 2000}, 0, false, 2, machine.Likely, [3]float64{2014, 2000, 1600}},
	} {
		p := gaffertest.Builtin("article")
		p.Messages = wire.MessageSection{Form: wire.MessagesSimple, Types: 1, MaxPerPacket: 4000}
		if c.schema {
			p.Messages.Bodies = gaffertest.Tiny
		}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		tr := tracker.NewConversation(p, machine.Facts{Vantage: machine.VantageA, VantageReason: "told"})
		var found []machine.Anomaly
		var out machine.Effects
		for n, count := range c.runs {
			w := bits.NewWriter(nil)
			w.Bits(0xffff, 16)
			w.Bits(uint64(count), 12)
			w.Bits(0, 16)
			for range count {
				w.Bits(0x55, 8)
			}
			w.Align()
			b := p.Append(nil, &wire.Packet{Sequence: uint32(n), Header: wire.Header{Sequence: uint32(n), Ack: 0xffff}},
				append(w.Data(), make([]byte, c.payload)...))
			out.Reset()
			tr.Observe(&machine.Datagram{
				At:  machine.Instant(n) * machine.Instant(20*time.Millisecond),
				Ref: machine.MakeRef(0, uint64(n+1)), Bytes: b, Length: len(b),
			}, &out)
			for _, a := range out.Anomalies {
				if a.Rule == messages.MessageSpiral {
					found = append(found, a)
				}
			}
		}
		if len(found) != c.want {
			t.Errorf("%s: %d packets reported, expected %d", c.name, len(found), c.want)
			continue
		}
		if c.want == 0 {
			continue
		}
		last := found[len(found)-1]
		if last.Certainty != c.sure || last.Figures != c.figures || last.About.Frame() != uint64(len(c.runs)-1) {
			t.Errorf("%s: %s, figures %v, after frame %d; expected %s, %v, %d", c.name, last.Certainty, last.Figures,
				last.About.Frame(), c.sure, c.figures, len(c.runs)-1)
		}
	}
}
