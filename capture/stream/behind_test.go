package stream

import (
	"bytes"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// TestBehind: Behind is set on messages after a hole that remains at the end,
// unless the receiver's acks show that it had the missing bytes. Gaps is set on all behind it.
func TestBehind(t *testing.T) {
	for _, acks := range []bool{false, true} {
		f := &toyFormats[0]
		s := newSource(3, 40, 60, f)
		c, hole := New(toyFormats, Limits{}), s.ends[19]
		var out Output
		c.Feed(machine.A, s.syn(), &out)
		c.Feed(machine.A, s.packet(0, hole, 0), &out)
		ahead := len(out.Messages)
		if ahead > 0 && out.Messages[ahead-1].Gaps {
			t.Error("Gaps before the hole")
		}
		c.Feed(machine.A, s.packet(s.ends[20], len(s.stream), 0), &out)
		if len(out.Messages) > 0 {
			t.Fatal("told before the hole is given up")
		}
		answer := s.packet(0, 0, 0)
		answer.TCPAck = s.isn + 1 + uint32(hole)
		if acks {
			answer.TCPAck = s.isn + 1 + uint32(len(s.stream))
		}
		c.Feed(machine.B, answer, &out)
		c.Finish(&out)
		for _, m := range out.Messages {
			if !m.Gaps {
				t.Errorf("acked %v: a message behind the hole without Gaps", acks)
			}
		}
		if ahead != 20 || len(out.Messages) < 10 {
			t.Fatalf("%d messages before the hole, %d behind it", ahead, len(out.Messages))
		}
		for _, m := range out.Messages {
			if m.Behind == acks {
				t.Errorf("acked %v: behind %v", acks, m.Behind)
			}
		}
	}
}

// TestSentAgainBeforeAHole: a retransmitted segment fills a hole while another
// hole stays open. The bytes after it were sent before, but are read after it.
// The messages come out in the order of the stream.
func TestSentAgainBeforeAHole(t *testing.T) {
	s := newSource(4, 40, 60, &toyFormats[0])
	c := New(toyFormats, Limits{})
	var out Output
	c.Feed(machine.A, s.syn(), &out)
	c.Feed(machine.A, s.packet(0, s.ends[9], 0), &out)
	late := s.packet(s.ends[19], s.ends[20], 0)
	c.Feed(machine.A, s.packet(s.ends[20], len(s.stream), 0), &out)
	late.Ref, late.At = machine.MakeRef(0, s.frame+1), machine.Instant(s.frame+1)*1000
	c.Feed(machine.A, late, &out)
	c.Finish(&out)
	for i, m := range out.Messages {
		if want := s.messages[len(s.messages)-len(out.Messages)+i]; !bytes.Equal(m.Bytes, want) {
			t.Errorf("message %d of %d is another one: the stream's order is lost", i, len(out.Messages))
		}
	}
	if len(out.Messages) < 20 {
		t.Errorf("%d messages behind the hole, expected at least 20", len(out.Messages))
	}
}
