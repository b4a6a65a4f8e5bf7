package srdp

import (
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp/tracker"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// FuzzFlow dissects, classifies and tracks any datagrams at any times, in every
// form. Nothing may panic or hang. Fields must lie within the datagram, memory
// must stay in proportion, and the view must keep every acknowledged id.
func FuzzFlow(f *testing.F) {
	for _, p := range builtin() {
		w := settingsOf(p.Config).Wire
		var seed []byte
		for id := range uint16(6) {
			pk := wire.Packet{Command: w.DataCommand, ID: 32764 + id*3, Flags: uint8(id)}
			for _, b := range [][]byte{
				w.Append(nil, &pk, []byte("data")), w.Append(nil, ptr(w.AckOf(&pk)), nil),
				w.Append(nil, &pk, []byte("data")),
			} {
				seed = append(append(seed, uint8(id&1), 40, uint8(len(b))), b...)
			}
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, p := range builtin() {
			s := settingsOf(p.Config)
			tr := newTracker(p.Config)
			scopes := [2]*tracker.Counter{tracker.NewCounter(&s.Wire), tracker.NewCounter(&s.Wire)}
			c := Protocol.Classify()
			var d dissect.Dissection
			var out machine.Effects
			var line []byte
			at, n := machine.Instant(0), 0
			for rest := data; len(rest) >= 3; n++ {
				side, wait, length := machine.Side(rest[0]&1), machine.Instant(rest[1])<<(20+rest[0]>>5), int(rest[2])
				b := rest[3:min(3+length, len(rest))]
				rest = rest[3+len(b):]
				at += wait
				dg := machine.Datagram{At: at, Ref: machine.MakeRef(0, uint64(n+1)), From: side, Bytes: b, Length: length}
				c.Feed(&dg)
				d.Reset()
				Dissect(dissect.Context{Config: p.Config, From: side}, &dg, &d)
				for _, x := range d.Fields {
					if int(x.Bit+x.Bits) > max(length, len(b))*8 {
						t.Fatalf("%s lies at bits %d to %d of %d bytes", x.Spec.Name, x.Bit, x.Bit+x.Bits, length)
					}
				}
				line = Info(dissect.Context{Config: p.Config, From: side}, &dg, line[:0])
				dg.Place = scopes[side].Observe(1, &dg)
				out.Reset()
				tr.Observe(&dg, &out)
				if len(out.Events) > 1<<16 || len(out.Anomalies) > 1<<16 {
					t.Fatal("one datagram told more than it can")
				}
			}
			c.Verdict()
			var v machine.View
			for _, side := range []machine.Side{machine.A, machine.B} {
				tr.Inspect(side, &v)
				scopes[side].Inspect(&v)
				tr.Summary(side)
			}
			if size := tr.Size() + scopes[0].Size() + scopes[1].Size(); size > 1<<14+n*4096+4*wholeIDs {
				t.Fatalf("%d bytes of state after %d datagrams", size, n)
			}
			out.Reset()
			tr.Finish(&out)
		}
	})
}

// wholeIDs is the most ids that the counters of both sides hold, at 4 bytes
// each.
const wholeIDs = 2 * wire.AckMark

func ptr[T any](v T) *T { return &v }
