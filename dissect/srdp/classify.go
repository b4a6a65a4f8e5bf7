package srdp

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// The evidence is acknowledgements that answer data: a datagram of exactly an
// acknowledgement's length, with its command byte, whose id the other side has
// sent and which was not answered before. Nothing else counts for SRDP, since
// everything else (a constant first byte, a counter) others have too; and what
// is foreign does not count against it, since SRDP shares its port.
//
// What an acknowledgement is worth in bits against chance:
const (
	firstMatch  = 8 + 8 + 3 // both command bytes and the length, once: they are constant in many protocols
	matchBits   = 15        // the id, less the bits that tell which of those outstanding it is
	leastBits   = 4         // of that
	againstBits = 8         // for an acknowledgement that answers nothing
	shortBits   = 6         // for a command byte before what cannot be a packet
	stepBits    = 1         // for an id that follows the one before: it tells byte orders apart

	claimBits   = 24
	settleBits  = 60
	settleCount = 4
	settleLead  = 10
)

// maxWeighed bounds the datagrams that are weighed, and so what noise can pile up.
const maxWeighed = 4096

// classifier tries every profile on a flow at once.
type classifier struct {
	hypotheses []hypothesis
	datagrams  int
	empty      int
}

func newClassifier(known []dissect.Profile) *classifier {
	c := &classifier{}
	for i := range known {
		s := settingsOf(known[i].Config)
		c.hypotheses = append(c.hypotheses, hypothesis{config: known[i].Config, wire: &s.Wire})
	}
	return c
}

// hypothesis is one profile, and what speaks for it.
type hypothesis struct {
	config  *dissect.Config
	wire    *wire.Profile
	sides   [2]outstanding
	data    int // datagrams that read as data
	acks    int // and as acknowledgements
	matched int // of them, that answer data for the first time
	again   int // that answer what was answered before
	wrong   int // command bytes before what cannot be a packet
	odd     int // command bytes that contradict the id
	steps   int
	bits    float64
}

// outstanding holds the newest data that one side has sent.
type outstanding struct {
	recent [64]sending
	n      int
	last   uint16
}

// sending is one data packet: its key names source, destination and id.
type sending struct {
	key      uint64
	answered bool
}

// Reset forgets the flow.
func (c *classifier) Reset() {
	for i := range c.hypotheses {
		h := &c.hypotheses[i]
		// The rings are behind their counts: they need no clearing.
		h.sides[0].n, h.sides[1].n = 0, 0
		h.data, h.acks, h.matched, h.again, h.wrong, h.odd, h.steps, h.bits = 0, 0, 0, 0, 0, 0, 0, 0
	}
	c.datagrams, c.empty = 0, 0
}

// Feed weighs one more datagram.
func (c *classifier) Feed(d *machine.Datagram) {
	if c.datagrams == maxWeighed {
		return
	}
	c.datagrams++
	if len(d.Bytes) == 0 {
		c.empty++
		return
	}
	for i := range c.hypotheses {
		c.hypotheses[i].feed(d)
	}
}

func (h *hypothesis) feed(d *machine.Datagram) {
	if b := d.Bytes[0]; b != h.wire.DataCommand && b != h.wire.AckCommand {
		return
	}
	var pk wire.Packet
	if !h.wire.Fits(d.Bytes, max(d.Length, len(d.Bytes)), &pk) {
		h.wrong++
		return
	}
	if h.wire.Contradicts(&pk) {
		h.odd++
	}
	own, peer := &h.sides[d.From], &h.sides[d.From.Other()]
	if !pk.Ack {
		h.data++
		if own.n > 0 && wire.IDs.Distance(uint32(pk.ID), uint32(own.last)) == 1 {
			h.steps++
		}
		own.last = pk.ID
		own.enter(keyOf(pk.Source, pk.Destination, pk.ID))
		return
	}
	h.acks++
	switch open := peer.answer(keyOf(pk.Destination, pk.Source, pk.ID)); {
	case open < 0:
		h.again++
	case open > 0:
		if h.matched++; h.matched == 1 {
			h.bits += firstMatch
		}
		h.bits += max(leastBits, matchBits-math.Log2(float64(open)))
	}
}

// keyOf names a packet among all that pass in one direction.
func keyOf(source, destination wire.Address, id uint16) uint64 {
	mix := func(h uint64, a wire.Address) uint64 {
		v := uint64(a.IP[0])<<40 | uint64(a.IP[1])<<32 | uint64(a.IP[2])<<24 | uint64(a.IP[3])<<16 | uint64(a.Port)
		h = (h ^ v) * 0x9E3779B97F4A7C15
		return h ^ h>>29
	}
	return mix(mix(uint64(id)+1, source), destination)
}

// enter takes a data packet. A further copy of one opens it again: each copy is
// acknowledged.
func (o *outstanding) enter(key uint64) {
	for i := range min(o.n, len(o.recent)) {
		if o.recent[i].key == key {
			return
		}
	}
	o.recent[o.n%len(o.recent)] = sending{key: key}
	o.n++
}

// answer takes an acknowledgement: it gives how many packets it could have
// answered, if it answers one; -1 if that was answered before; 0 if there is none.
func (o *outstanding) answer(key uint64) int {
	open := 0
	var found *sending
	for i := range min(o.n, len(o.recent)) {
		s := &o.recent[i]
		if !s.answered {
			open++
		}
		if s.key == key {
			found = s
		}
	}
	switch {
	case found == nil:
		return 0
	case found.answered:
		return -1
	}
	found.answered = true
	return open
}

// total is the evidence for the profile, less what speaks against it.
func (h *hypothesis) total() float64 {
	astray := h.acks - h.matched - h.again
	return h.bits + stepBits*float64(min(h.steps, 32)) - againstBits*float64(astray) - shortBits*float64(h.wrong) -
		float64(h.odd)
}

func (h *hypothesis) convinces() bool {
	astray := h.acks - h.matched - h.again
	return h.matched > 0 && h.bits >= claimBits && h.total() >= claimBits && 2*h.matched > astray
}

// best returns the profile with the most evidence, and how far the next one is
// behind it. Of equals the first one stands: those of a user's file come last.
func (c *classifier) best() (first *hypothesis, lead float64) {
	second := 0.0
	for i := range c.hypotheses {
		h := &c.hypotheses[i]
		switch {
		case first == nil:
			first = h
		case h.total() > first.total():
			first, second = h, first.total()
		case h.wire.Form != first.wire.Form || h.wire.LittleEndian != first.wire.LittleEndian ||
			h.wire.DataCommand != first.wire.DataCommand || h.wire.AckCommand != first.wire.AckCommand:
			second = max(second, h.total())
		}
	}
	return first, first.total() - max(second, 0)
}

// Sure reports whether the profile is found and settled.
func (c *classifier) Sure() bool {
	h, lead := c.best()
	return h.convinces() && h.settled(lead)
}

func (h *hypothesis) settled(lead float64) bool {
	return h.matched >= settleCount && h.total() >= settleBits && lead >= settleLead
}

// Verdict says which form the flow speaks, as far as it is known now.
func (c *classifier) Verdict() dissect.Verdict {
	h, lead := c.best()
	full := c.datagrams == maxWeighed
	if !h.convinces() {
		return dissect.Verdict{Reason: c.whyNot(h), Settled: full}
	}
	v := dissect.Verdict{Config: h.config, Bits: h.total(), Settled: full || h.settled(lead)}
	v.Confidence = 1 - math.Exp2(-min(v.Bits, max(lead, 4))/6)
	v.Reason = fmt.Sprintf("%s of %s answer data of the other side", counted(h.matched+h.again, "acknowledgement"),
		number(h.acks))
	if foreign := c.datagrams - h.data - h.acks - c.empty; foreign > 0 {
		v.Reason += fmt.Sprintf("; %s foreign", counted(foreign, "datagram"))
	}
	return v
}

// whyNot says what is missing.
func (c *classifier) whyNot(h *hypothesis) string {
	switch {
	case c.datagrams == c.empty:
		return "srdp: no datagram carries a payload"
	case h.data+h.acks == 0:
		return "srdp: no datagram begins with a command byte"
	case h.acks == 0:
		return fmt.Sprintf("srdp: %s could be data, but none is acknowledged", counted(h.data, "datagram"))
	}
	return fmt.Sprintf("srdp: %s of %s that could be acknowledgements answer data of the other side",
		number(h.matched+h.again), counted(h.acks, "datagram"))
}

// number formats a count by its magnitude, so that flows share their reasons.
func number(n int) string {
	if n < 8 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d or more", 1<<(bits.Len(uint(n))-1))
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return number(n) + " " + what + "s"
}
