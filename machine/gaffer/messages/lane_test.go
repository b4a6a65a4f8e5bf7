package messages

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// stream sends messages over a lane, each of them acked and delivered after a delay.
type stream struct {
	lane  Lane
	out   machine.Effects
	k     Carrier
	told  int64
	event machine.Event
}

func newStream(queue int) *stream {
	config := &wire.YojimboChannel{SendQueue: queue, ReceiveQueue: queue}
	return &stream{lane: Lane{Config: config, Fresh: true, Copies: copiesWithin}}
}

// carry sends message id at a time.
func (s *stream) carry(t *testing.T, id int64, at time.Duration) {
	t.Helper()
	s.k.At, s.k.Sequence = machine.Instant(at), uint32(uint16(id))
	if s.lane.carry(id, &s.k, &s.out) == nil {
		t.Fatalf("message %d: its life is over", id)
	}
}

// settle acks and delivers message id at a time.
func (s *stream) settle(t *testing.T, id int64, at time.Duration) {
	t.Helper()
	s.event.At, s.event.Certainty = machine.Instant(at), machine.Certain
	s.lane.arrive(id, &s.event, none, s.k.At)
	s.lane.deliver(&s.event, &s.out)
	s.lane.Ack(id, &s.event, s.event.At)
	s.lane.Settle(s.event.At, &s.out)
	for i := range s.out.Messages {
		if m := &s.out.Messages[i]; m.ID != s.told {
			t.Fatalf("message %d is told, expected %d", m.ID, s.told)
		}
		s.told++
	}
	s.out.Reset()
}

// TestLaneKeepsCopies: a message stays for copies that pass the tap behind its ack, and is told
// two seconds after the ack.
func TestLaneKeepsCopies(t *testing.T) {
	s := newStream(1024)
	s.carry(t, 0, 0)
	s.carry(t, 1, 0)
	s.settle(t, 0, 100*time.Millisecond)
	s.carry(t, 0, 110*time.Millisecond)
	s.carry(t, 0, 2*time.Second)
	s.settle(t, 1, 2099*time.Millisecond)
	if s.told != 0 {
		t.Errorf("%d messages are told within two seconds of the ack", s.told)
	}
	if l := s.lane.find(0); l.sends.count != 3 {
		t.Errorf("%d packets carried message 0, expected 3", l.sends.count)
	}
	if s.lane.open() != 2 {
		t.Errorf("message %d is the oldest that is open, expected 2", s.lane.open())
	}
	s.lane.Settle(machine.Instant(2100*time.Millisecond), &s.out)
	if len(s.out.Messages) != 1 || s.out.Messages[0].Attempts != 3 {
		t.Errorf("two seconds after the ack: %+v", s.out.Messages)
	}
}

// TestLaneOfStream: a long stream keeps the lives of two seconds, and allocates nothing for
// further messages.
func TestLaneOfStream(t *testing.T) {
	const behind = 50 // messages, of a millisecond each
	s := newStream(1024)
	id := int64(0)
	step := func() {
		at := time.Duration(id) * time.Millisecond
		s.carry(t, id, at)
		if id >= behind {
			s.settle(t, id-behind, at)
		}
		id++
	}
	for range 20000 {
		step()
	}
	if n := len(s.lane.lives); n < 2000 || n > 2100 || len(s.lane.room) > 4*n {
		t.Errorf("%d lives in room for %d, expected those of two seconds", n, len(s.lane.room))
	}
	if s.told < 17900 {
		t.Errorf("%d messages are told", s.told)
	}
	if n := testing.AllocsPerRun(10000, step); n > 0 {
		t.Errorf("%.0f allocations for a message", n)
	}
}

// TestLaneMakesRoomOfSettled: where lives exceed the bound, those that are settled go first. None
// that waits for its ack goes with them.
func TestLaneMakesRoomOfSettled(t *testing.T) {
	s := newStream(1 << 15)
	for id := range int64(livesMost) {
		s.carry(t, id, 0)
	}
	for id := range int64(100) {
		s.settle(t, id, time.Millisecond)
	}
	for id := range int64(100) {
		s.carry(t, livesMost+id, 2*time.Millisecond)
	}
	for i := range s.out.Messages {
		if m := &s.out.Messages[i]; m.ID >= 100 {
			t.Fatalf("message %d is told, and has no ack", m.ID)
		}
	}
	if len(s.out.Messages) != 100 {
		t.Errorf("%d messages are told, expected the 100 that are settled", len(s.out.Messages))
	}
}
