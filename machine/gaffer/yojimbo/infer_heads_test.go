package yojimbo

import (
	"testing"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TestOnlyNumber: packets of 1 to 4 messages show that there are two channels and no other number.
// If all packets have 3 messages on the first channel, four channels read them as well. Each then
// has one message on the third channel, and the ids rise by 3.
func TestOnlyNumber(t *testing.T) {
	y := &wire.Yojimbo{Channels: make([]wire.YojimboChannel, 2), MessageTypes: 1}
	if err := y.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		messages func(n int) int
		expected bool
	}{
		"1 to 4 messages": {func(n int) int { return 1 + n%4 }, true},
		"3 messages":      {func(int) int { return 3 }, false},
	} {
		var s Sample
		id := uint16(0)
		for n := range 200 {
			p := wire.ConnectionPacket{Entries: []wire.ChannelEntry{{Count: c.messages(n)}}}
			for range c.messages(n) {
				p.Messages = append(p.Messages, wire.ConnectionMessage{ID: id, Read: true})
				id++
			}
			s.Add(machine.A, int64(n), y.Append(nil, &p, make([]byte, 8)))
		}
		if got := newSkeleton(s.packets, 2).onlyNumber(); got != c.expected {
			t.Errorf("%s: %v, expected %v", name, got, c.expected)
		}
		if newSkeleton(s.packets, 1).onlyNumber() {
			t.Errorf("%s: two channels are excluded, and they are right", name)
		}
	}
}
