package judge_test

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/gaffertest"
	"github.com/ackscope/ackscope/machine/gaffer/judge"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

var threeTypes = gaffertest.Schema(`{messages: {
  0: {name: A, fields: [{name: v, type: bits, bits: 8}]},
  1: {name: B, fields: [{name: v, type: bits, bits: 8}]},
  2: {name: C, fields: [{name: v, type: bits, bits: 8}]}}}`)

// section returns a section of two messages, the second of a type. The first has type 0.
func section(s *wire.MessageSection, types ...uint64) []byte {
	w := bits.NewWriter(nil)
	if s.Form == wire.MessagesSimple {
		w.Bits(0xffff, 16)
	}
	w.Bits(uint64(len(types)), s.CountBits())
	if s.Form == wire.MessagesSimple {
		w.Bits(0, 16)
	}
	for id, kind := range types {
		if s.Form == wire.MessagesByID {
			w.Bits(uint64(id), 16)
		}
		w.Bits(kind, s.TypeBits())
		w.Bits(0x55, 8)
	}
	w.Align()
	return w.Data()
}

// TestMessageType sends a packet of A past a tap at B, and an answer of B.
func TestMessageType(t *testing.T) {
	for _, c := range []struct {
		name   string
		form   wire.MessageForm
		schema bool
		types  []uint64
		cut    int  // bytes that a snap length cut off
		acked  bool // the answer names the packet
		a, b   string
	}{
		{"in range", wire.MessagesByID, true, []uint64{0, 2}, 0, true, "", ""},
		{"by id", wire.MessagesByID, true, []uint64{0, 3}, 0, false, "message-type", ""},
		{"simple", wire.MessagesSimple, true, []uint64{0, 3}, 0, false, "message-type", ""},
		{"acked", wire.MessagesByID, true, []uint64{0, 3}, 0, true, "message-type", "ack-never-arrived"},
		{"no schema, first", wire.MessagesByID, false, []uint64{3}, 0, false, "message-type", ""},
		{"no schema, second", wire.MessagesByID, false, []uint64{0, 3}, 0, false, "", ""},
		{"cut off", wire.MessagesByID, true, []uint64{0, 3}, 1, false, "", ""},
	} {
		p := gaffertest.Builtin("article")
		p.Messages = wire.MessageSection{Form: c.form, Types: 3, MaxPerPacket: 8}
		if c.schema {
			p.Messages.Bodies = threeTypes
		}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		j, err := judge.NewConversation(p, machine.Facts{Vantage: machine.VantageB}, [2]string{
			judge.BehaviourArticle,
			judge.BehaviourArticle,
		})
		if err != nil {
			t.Fatal(err)
		}
		send := func(frame uint64, from machine.Side, sequence, ack uint32, ackBits uint64, payload []byte, cut int) {
			b := p.Append(nil, &wire.Packet{
				Sequence: sequence,
				Header:   wire.Header{Sequence: sequence, Ack: ack, AckBits: ackBits},
			}, payload)
			j.Observe(&machine.Datagram{
				At:  machine.Instant(frame) * machine.Instant(20*time.Millisecond),
				Ref: machine.MakeRef(0, frame), From: from, Bytes: b[:len(b)-cut], Length: len(b),
			})
		}
		send(1, machine.B, 0, 0xffff, 0, section(&p.Messages), 0)
		send(2, machine.A, 0, 0xffff, 0, section(&p.Messages), 0)
		send(3, machine.A, 1, 0xffff, 0, section(&p.Messages, c.types...), c.cut)
		send(4, machine.A, 2, 0xffff, 0, section(&p.Messages), 0)
		answer := uint64(0b101)
		if c.acked {
			answer = 0b111
		}
		send(5, machine.B, 1, 2, answer, section(&p.Messages), 0)
		j.Finish()
		for side, want := range []string{c.a, c.b} {
			got := ""
			if v := j.Opinion(machine.Side(side)).Divergence; v != nil {
				got = v.Rule.ID
			}
			if got != want {
				t.Errorf("%s: side %s diverges by %q, expected %q", c.name, machine.Side(side), got, want)
			}
		}
	}
}
