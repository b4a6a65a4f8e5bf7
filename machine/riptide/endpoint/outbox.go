package endpoint

import (
	"maps"
	"slices"

	"github.com/ackscope/ackscope/machine/riptide"
)

// outbox is the reliable messages that a side sends. Messages that are not acked are pending.
//
//   - slots holds the index in pending of each pending message, by its sequence
//   - free holds the other indexes: len(slots)+len(free) = len(pending)
type outbox struct {
	sender  riptide.Sender
	next    int64 // sequence of the next message
	pending []outgoing
	free    []int32
	slots   map[uint16]int32
	sends   riptide.Quality
}

// outgoing is a reliable message that is not acked.
type outgoing struct {
	data     []byte
	sequence int64
	channel  uint8
	attempts int
	sentAt   int64
	copy     uint32 // number of uses of the slot: timers of an earlier use have no effect
	used     bool
}

// hold makes a message pending.
func (o *outbox) hold(sequence int64, channel uint8, data []byte) int32 {
	slot := int32(len(o.pending))
	if n := len(o.free); n > 0 {
		slot, o.free = o.free[n-1], o.free[:n-1]
	} else {
		o.pending = append(o.pending, outgoing{})
	}
	p := &o.pending[slot]
	*p = outgoing{data: append(p.data[:0], data...), sequence: sequence, channel: channel, copy: p.copy + 1, used: true}
	o.slots[uint16(sequence)] = slot
	return slot
}

// release removes a message that is acked, or given up.
func (o *outbox) release(slot int32) {
	p := &o.pending[slot]
	delete(o.slots, uint16(p.sequence))
	p.used = false
	o.free = append(o.free, slot)
}

// forget removes all pending messages.
func (o *outbox) forget() {
	o.pending, o.free = o.pending[:0], o.free[:0]
	clear(o.slots)
}

func (o *outbox) clone() outbox {
	c := *o
	c.sender = o.sender.Clone()
	c.pending, c.free, c.slots = slices.Clone(o.pending), slices.Clone(o.free), maps.Clone(o.slots)
	for i := range c.pending {
		c.pending[i].data = slices.Clone(c.pending[i].data)
	}
	return c
}
