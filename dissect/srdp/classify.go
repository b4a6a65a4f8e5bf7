package srdp

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// The only evidence is acknowledgements that answer data. Such a datagram has
// the length and the command byte of an acknowledgement. The other side has
// sent its id, and no acknowledgement answered that before.
//
// Other protocols also have a constant first byte and a counter, so these are
// not enough. Foreign datagrams do not count against SRDP, since SRDP shares
// its port.
//
// The constants are what an acknowledgement is worth in bits, against chance.
const (
	firstMatch  = 8 + 8 + 3 // both command bytes and the length, once: many protocols have constant ones
	matchBits   = 15        // the id, less the bits that choose it among the outstanding ones
	leastBits   = 4         // the least of matchBits
	againstBits = 8         // against, for an acknowledgement that answers nothing
	shortBits   = 6         // against, for a command byte before bytes that cannot be a packet
	stepBits    = 1         // for an id that follows the one before: it distinguishes byte orders

	claimBits   = 24
	settleBits  = 60
	settleCount = 4
	settleLead  = 10
)

// maxWeighed is the most datagrams that are weighed, so that noise cannot
// accumulate.
const maxWeighed = 4096

// classifier tries all profiles on a flow at once.
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

// hypothesis is one profile, and the evidence for it.
type hypothesis struct {
	config  *dissect.Config
	wire    *wire.Profile
	sides   [2]outstanding
	data    int // datagrams that parse as data
	acks    int // datagrams that parse as acknowledgements
	matched int // of acks: those that answer data for the first time
	again   int // of acks: those that answer data that was answered before
	wrong   int // command bytes before bytes that cannot be a packet
	odd     int // command bytes that contradict the id
	steps   int
	bits    float64
}

// outstanding holds the newest data packets that one side has sent.
type outstanding struct {
	recent [64]sending
	n      int
	last   uint16
}

// sending is one data packet. Its key identifies source, destination and id.
type sending struct {
	key      uint64
	answered bool
}

// Reset prepares for another flow.
func (c *classifier) Reset() {
	for i := range c.hypotheses {
		h := &c.hypotheses[i]
		// Entries of the rings beyond their counts are not read: they need no
		// clearing.
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

// keyOf returns a key that identifies a packet among all of one direction.
func keyOf(source, destination wire.Address, id uint16) uint64 {
	mix := func(h uint64, a wire.Address) uint64 {
		v := uint64(a.IP[0])<<40 | uint64(a.IP[1])<<32 | uint64(a.IP[2])<<24 | uint64(a.IP[3])<<16 | uint64(a.Port)
		h = (h ^ v) * 0x9E3779B97F4A7C15
		return h ^ h>>29
	}
	return mix(mix(uint64(id)+1, source), destination)
}

// enter records a data packet. A further copy changes nothing.
func (o *outstanding) enter(key uint64) {
	for i := range min(o.n, len(o.recent)) {
		if o.recent[i].key == key {
			return
		}
	}
	o.recent[o.n%len(o.recent)] = sending{key: key}
	o.n++
}

// answer takes an acknowledgement. It returns how many unanswered packets there
// were, if the acknowledgement answers one of them. It returns -1 when that
// packet was answered before, and 0 when there is no such packet.
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

// total returns the evidence for the profile, less the evidence against it.
func (h *hypothesis) total() float64 {
	astray := h.acks - h.matched - h.again
	return h.bits + stepBits*float64(min(h.steps, 32)) - againstBits*float64(astray) - shortBits*float64(h.wrong) -
		float64(h.odd)
}

func (h *hypothesis) convinces() bool {
	astray := h.acks - h.matched - h.again
	return h.matched > 0 && h.bits >= claimBits && h.total() >= claimBits && 2*h.matched > astray
}

// best returns the profile with the most evidence, and its lead over the next
// one. Of equal profiles it returns the first: those of a user's file come
// last.
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

// Sure reports whether a profile is found and settled.
func (c *classifier) Sure() bool {
	h, lead := c.best()
	return h.convinces() && h.settled(lead)
}

// SureFrom returns the least number of datagrams after which Sure can be true: the answers that
// settle it, and data that they answer.
func (c *classifier) SureFrom() int { return settleCount + 1 }

func (h *hypothesis) settled(lead float64) bool {
	return h.matched >= settleCount && h.total() >= settleBits && lead >= settleLead
}

// Verdict returns the form of the flow, as far as it is known now.
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

// whyNot returns the reason why the flow is not SRDP so far.
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
