package messages

import (
	"errors"
	"testing"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// TestUnreadEntries: a packet of two channels cannot be read behind the first message, whose body is
// not known. The second channel may have a message there. So from then on nothing of that channel
// is certain.
func TestUnreadEntries(t *testing.T) {
	config := &wire.Yojimbo{Channels: make([]wire.YojimboChannel, 3), MessageTypes: 2}
	config.Channels[2].Type = wire.UnreliableUnordered
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	packet := func(channels ...int) []byte {
		var p wire.ConnectionPacket
		for i, c := range channels {
			p.Entries = append(p.Entries, wire.ChannelEntry{Channel: c, First: i, Count: 1})
			p.Messages = append(p.Messages, wire.ConnectionMessage{Read: true})
		}
		return config.Append(nil, &p, make([]byte, 8))
	}
	for name, c := range map[string]struct {
		first    []int // the channels of the first packet
		channel  int   // of the second packet
		expected machine.Certainty
	}{
		"nothing unread":             {[]int{0}, 1, machine.Certain},
		"the first channel":          {[]int{0, 2}, 0, machine.Certain},
		"a channel behind":           {[]int{0, 2}, 1, machine.Likely},
		"a channel before":           {[]int{1, 2}, 0, machine.Certain},
		"an unreliable channel":      {[]int{0, 1}, 2, machine.Certain},
		"the channel that is unread": {[]int{0, 1}, 1, machine.Likely},
	} {
		s := &Direction{Fresh: true}
		var out machine.Effects
		var p wire.ConnectionPacket
		for n, payload := range [][]byte{packet(c.first...), packet(c.channel)} {
			if err := config.Parse(payload, &p); !errors.Is(err, wire.ErrOpaque) || n == 0 && p.Unread != len(c.first)-1 {
				t.Fatalf("%s: packet %d: %v, %d entries unread", name, n, err, p.Unread)
			}
			s.Carry(config, &Carrier{Sequence: uint32(n), Sequence64: int64(n), Payload: payload}, &p, true, &out)
		}
		s.Received(&machine.Event{Side: machine.B, Certainty: machine.Certain, Sequence: 1}, none, 0, &out)
		s.Finish(&out)
		for i := range out.Messages {
			if m := &out.Messages[i]; m.Channel == c.channel && m.Delivered == machine.Yes && m.Certainty != c.expected {
				t.Errorf("%s: %v, expected %v", name, m.Certainty, c.expected)
			}
		}
		if len(out.Events) != 1 || out.Events[0].Certainty != c.expected {
			t.Errorf("%s: %+v, expected %v", name, out.Events, c.expected)
		}
	}
}
