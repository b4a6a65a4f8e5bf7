package judge

import (
	"testing"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"

	wire "github.com/ackscope/ackscope/wire/riptide"
)

// ackTape is a connection that a test writes by hand, in front of a judge. The tap stands at A.
type ackTape struct {
	*testing.T
	judge *Judge
	codec wire.Codec
	frame uint64
}

func newAckTape(t *testing.T) *ackTape {
	p := &ackTape{T: t, codec: wire.Codec{Dialect: wire.V21}}
	s := riptide.Speaker{Codec: p.codec, Builds: wire.BuildsOf(wire.V21)}
	const behaviour = "riptide@2.1.1-2.2.1"
	j, err := New(riptide.Config{Senders: [2]riptide.Speaker{s, s}}, machine.Facts{Vantage: machine.VantageA},
		[2]string{behaviour, behaviour})
	if err != nil {
		t.Fatal(err)
	}
	p.judge = j
	p.send(machine.A, wire.Message{Type: wire.Connect})
	p.send(machine.B, wire.Message{Type: wire.Welcome, Sequence: 1, ClientID: 1})
	p.ack(1, 1, 0b1)
	return p
}

func (p *ackTape) send(from machine.Side, m wire.Message) {
	b, err := p.codec.Append(nil, &m, []byte{1, 0, 0, 0}, 32)
	if m.Type == wire.Ack || m.Type == wire.Welcome || m.Type == wire.Connect {
		b, err = p.codec.Append(nil, &m, nil, 0)
	}
	if err != nil {
		p.Fatal(err)
	}
	p.frame++
	at := machine.Instant(p.frame) * 10_000_000
	p.judge.Observe(&machine.Datagram{Ref: machine.MakeRef(0, p.frame), At: at, From: from, Bytes: b, Length: len(b)})
}

// ask lets B send a reliable message.
func (p *ackTape) ask(id uint16) {
	p.send(machine.B, wire.Message{Type: wire.Reliable, Sequence: id, MessageID: 7})
}

// ack lets A answer a message.
func (p *ackTape) ack(cause, last, bits uint16) {
	p.send(machine.A, wire.Message{
		Type: wire.Ack, Last: last, AckBits: bits, Cause: cause, HasCause: cause != last, Flag: cause != last,
	})
}

func (p *ackTape) note(from machine.Side, id, last uint16, bits uint16) {
	p.send(from, wire.Message{Type: wire.Notify, Sequence: id, Last: last, AckBits: bits})
}

// TestAckRestsOn: what an Ack lacks of its sender's own Acks, no capture that lacks a message
// explains. What it names beyond them, such a capture does explain.
func TestAckRestsOn(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(p *ackTape)
		want machine.RestsOn
	}{
		{"it is right", func(p *ackTape) { p.ask(4); p.ack(4, 4, 0b1110) }, 0},
		{"it is older than what it answers", func(p *ackTape) { p.ask(4); p.ack(4, 3, 0b111) }, machine.RestsOnOwn},
		{"it does not name what it answers", func(p *ackTape) { p.ask(4); p.ack(4, 5, 0b11100) }, machine.RestsOnOwn},
		{"it lacks what an Ack before named", func(p *ackTape) { p.ask(4); p.ack(4, 4, 0b1010) }, machine.RestsOnOwn},
		{"it names an id from before the first", func(p *ackTape) { p.ask(4); p.ack(4, 4, 0b11110) }, machine.RestsOnOwn},
		{"it names more", func(p *ackTape) { p.ask(4); p.ack(4, 4, 0b1111) }, machine.RestsOnBoth},
		{"it is newer, and has all", func(p *ackTape) { p.ask(4); p.ack(4, 5, 0b11101) }, machine.RestsOnBoth},
		{"after a jump that the library's fault spoils", func(p *ackTape) {
			p.ask(41)
			p.ack(41, 41, 0b1100)
			p.ask(42)
			p.ack(42, 42, 0b1)
		}, machine.RestsOnBoth},
		{"a notify header is right", func(p *ackTape) {
			p.note(machine.B, 1, 0, 0)
			p.note(machine.A, 1, 1, 0b1)
			p.note(machine.B, 2, 1, 0b1)
			p.note(machine.A, 2, 2, 0b11)
		}, 0},
		{"a notify header lacks what the one before named", func(p *ackTape) {
			p.note(machine.B, 1, 0, 0)
			p.note(machine.A, 1, 1, 0b1)
			p.note(machine.B, 2, 1, 0b1)
			p.note(machine.A, 2, 2, 0b10)
		}, machine.RestsOnOwn},
		{"a notify header names an id from before the first", func(p *ackTape) {
			p.note(machine.B, 1, 0, 0)
			p.note(machine.A, 1, 1, 0b1000_0000)
		}, machine.RestsOnOwn},
		{"a notify header names more", func(p *ackTape) {
			p.note(machine.B, 1, 0, 0)
			p.note(machine.A, 1, 1, 0b1)
			p.note(machine.B, 3, 1, 0b1)
			p.note(machine.A, 2, 3, 0b111)
		}, machine.RestsOnBoth},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newAckTape(t)
			p.ask(2)
			p.ack(2, 2, 0b11)
			c.play(p)
			v := p.judge.Opinion(machine.A).Divergence
			switch {
			case v == nil && c.want != 0:
				t.Fatal("A does not diverge")
			case v != nil && v.RestsOn != c.want:
				t.Errorf("%s %s, got %s: rests on %v, expected %v", v.Because, v.Expected, v.Got, v.RestsOn.Words(), c.want.Words())
			}
		})
	}
}
