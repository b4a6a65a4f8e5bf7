package cli

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

const (
	messagesFile = "../docs/faults-messages.yaml"
	simpleFile   = "../docs/faults-simple.yaml"
	resendFile   = "../docs/faults-resend.yaml"

	messagesWindow = 64 // the window of the profile
	messagesMost   = 32 // messages of a packet
	messagesResend = 100 * time.Millisecond
	// messagesClock is the longest time between two readings of a game's clock,
	// which it reads once a frame.
	messagesClock = 50 * time.Millisecond
	// messagesInferred is how much longer it may be where the profile says no resend time:
	// the time that a capture shows is not that exact.
	messagesInferred = 5 * time.Millisecond
)

// brokenMessages finds a packet that breaks the rules of sending messages.
// Headers alone show which messages are acked. The endpoint may know of an ack
// that passed the tap towards it. It surely knows of an ack in a packet that
// its own headers ack.
func brokenMessages(t *testing.T, v *view) (frame uint64) {
	type message struct {
		id          int64
		at          machine.Instant
		maybe, sure bool // acked
		bytes       int
	}
	var own, peer numbers
	messages, open := map[int64]*message{}, map[int64]*message{} // open: no ack of them has passed
	carriedBy := map[int64][]*message{}                          // key: the number of the endpoint's packet
	acks := map[int64][]int64{}                                  // key: the peer's packet; value: what it acks
	largest, oldest, ids := 0, int64(0), numbers{met: true}
	profile := v.profile(t)
	latest := messagesResend + messagesClock
	if !profile.Messages.Resend.IsSet() {
		latest += messagesInferred
	}
	v.packets(t, func(i int, k *wire.Packet) bool {
		at := v.sightings[i].at
		if !v.sightings[i].own {
			q := peer.take(k.Header.Sequence)
			acks[q] = namedBy(&own, k.Header)
			for _, n := range acks[q] {
				for _, m := range carriedBy[n] {
					m.maybe = true
					delete(open, m.id)
				}
			}
			return false
		}
		number := own.take(k.Header.Sequence)
		for _, q := range namedBy(&peer, k.Header) {
			for _, n := range acks[q] {
				for _, m := range carriedBy[n] {
					m.sure = true
				}
			}
		}
		section, err := profile.Messages.Open(v.sightings[i].b[k.PayloadOffset:], 0)
		if err != nil {
			t.Fatal(err)
		}
		size := k.PayloadLen
		largest = max(largest, size)
		carried := map[int64]bool{}
		for messages[oldest] != nil && messages[oldest].maybe {
			oldest++
		}
		bad := false
		var m wire.Message
		for section.Next(&m) {
			id := ids.take(uint32(m.ID))
			carried[id] = true
			known := messages[id]
			if known == nil {
				bad = bad || id >= oldest+messagesWindow
				known = &message{id: id, bytes: (m.End - m.Bit + 7) / 8}
				messages[id], open[id] = known, known
			} else {
				bad = bad || known.sure || v.at == tapNear && at.Sub(known.at) < messagesResend-time.Millisecond
			}
			known.at = at
			carriedBy[number] = append(carriedBy[number], known)
		}
		for _, m := range open {
			due := !carried[m.id] && at.Sub(m.at) > latest && m.id < oldest+messagesWindow
			bad = bad || due && v.at == tapNear && len(carried) < messagesMost && size+m.bytes+1 <= largest
		}
		if bad {
			frame = v.frames[i]
		}
		return bad
	})
	return frame
}

// unknownType finds a packet with a message of a type that the game does not have. In
// the simple scheme a packet has a message ack of 16 bits, a count of 11 bits and a first
// id of 16 bits. Then each message has a type of 2 bits, of which 3 is none, and a body.
func unknownType(t *testing.T, v *view) (frame uint64) {
	bodies := []int{11 + 11, 4, 8 * 32} // bits, by type
	v.packets(t, func(i int, k *wire.Packet) bool {
		if !v.sightings[i].own {
			return false
		}
		b := v.sightings[i].b[k.PayloadOffset:]
		read := func(at, n int) (value int) {
			for bit := range n {
				value |= int(b[(at+bit)/8]>>((at+bit)%8)&1) << bit
			}
			return value
		}
		at := 16 + 11 + 16
		for range read(16, 11) {
			kind := read(at, 2)
			if kind >= len(bodies) {
				frame = v.frames[i]
				return true
			}
			at += 2 + bodies[kind]
		}
		return false
	})
	return frame
}

// namedBy returns the numbers that a header acks, unwrapped relative to those
// so far.
func namedBy(of *numbers, h wire.Header) (list []int64) {
	if !of.met {
		return nil
	}
	for n := range uint32(32) {
		if h.AckBits>>n&1 == 1 {
			list = append(list, of.of((h.Ack-n)&0xffff))
		}
	}
	return list
}
