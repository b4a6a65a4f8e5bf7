package vantage

import (
	"math/bits"
	"slices"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// contradictions counts what speaks against the tap being at a side, whatever the times show.
// Nothing is lost, duplicated or overtaken between the tap and a side at it.
//
// Example: messages 5 and 6 pass the tap towards A. A's Ack names 6 and not 5, so 5 was lost
// between the tap and A.
type contradictions struct {
	missed int // messages that passed towards the side and had not reached it when it went on
	extra  int // answers beyond the number of copies that passed towards the side
	gaps   int // messages that the side sent and that had not passed when a later one did
	late   int // messages that it sends once, and that passed after a later one or again

	arrived  passing   // reliable messages on their way to the side
	sent     passing   // its own reliable messages
	notified passing   // its own notify messages
	pings    idRun     // its own heartbeats, if it is the client
	asked    idRun     // heartbeats on their way to it, if it is the server
	copies   int       // reliable copies that passed towards it
	acks     int       // Acks that it sent
	owed     owed      // copies that passed towards it and that it left without an Ack
	skips    int       // jumps of its own reliable ids, whatever the reason
	last     uint16    // newest id of its last Ack
	jumped   bool      // that id has jumped as far as a fault of the window needs
	open     [256]bool // ids of heartbeats that passed towards it and have no answer yet
	beats    int       // heartbeats that passed towards it
	pongs    int       // answers to them that it sent
}

// count returns the number of contradictions.
func (c *contradictions) count() int { return c.missed + c.extra + c.gaps }

// owed is how many copies a side has left without an Ack, as its last Acks show it.
type owed struct {
	answers int             // Acks that the side sent
	after   [owedSpan]int32 // copies without an Ack, after each of its last Acks
}

// owedSpan is over how many Acks copies must stay unanswered. A side answers all that it finds in its socket
// in one go, so after one of these Acks it has answered all.
// Source: bound, the Acks that are looked back at
const owedSpan = 8

func (o *owed) answer(copies int) {
	o.answers++
	o.after[o.answers%owedSpan] = int32(copies - o.answers)
}

// least returns how many copies stayed unanswered over the last Acks. It is 0 while these are few.
func (o *owed) least() int {
	if o.answers < owedSpan {
		return 0
	}
	return int(slices.Min(o.after[:]))
}

// passing holds the newest ids of a sequence that passed the tap, and their order.
type passing struct {
	met    bool
	newest uint16
	order  [passingSpan]int32 // position of the first copy, by id; 0 for none, -1 for one that is counted
	ids    [passingSpan]uint16
	n      int32
}

// passingSpan is how many ids a passing holds. An Ack covers fewer: its newest and WindowAcks more.
// Source: bound, the ids that are kept: more than an Ack covers
const passingSpan = 32

// pass records an id. It returns how many ids it skips, or 0 for an old one.
func (p *passing) pass(id uint16) (over int) {
	p.n++
	slot := id % passingSpan
	if p.order[slot] == 0 || riptide.GapOf(id, p.ids[slot]) > 0 {
		p.ids[slot], p.order[slot] = id, p.n
	}
	if step := riptide.GapOf(id, p.newest); !p.met || step > 0 {
		if p.met {
			over = step - 1
		}
		p.met, p.newest = true, id
	}
	return over
}

// at returns the position at which an id passed. It returns 0 where the id did not pass, or is
// counted.
func (p *passing) at(id uint16) int32 {
	if slot := id % passingSpan; p.ids[slot] == id {
		return max(p.order[slot], 0)
	}
	return 0
}

// idRun is a run of ids that increase by one.
type idRun struct {
	met    bool
	newest uint8
}

// step records an id. It returns how many ids it skips: 0 for the first, and -1 for one that is not
// newer.
func (r *idRun) step(id uint8) (over int) {
	if r.met {
		if over = int(int8(id-r.newest)) - 1; over < 0 {
			return -1
		}
	}
	r.met, r.newest = true, id
	return over
}

// contradict adds a message to the counts of both sides. The sender behaves as b.
func (e *Evidence) contradict(from machine.Side, b *riptide.Behaviour, is riptide.Beat, m *wire.Message) {
	own, peer := &e.of[from].against, &e.of[from.Other()].against
	switch {
	case m.Type == wire.Connect && from == e.first(from):
		e.begun = e.begun || own.acks+peer.acks+own.copies+peer.copies == 0
	case m.Type == wire.Ack || m.Type == wire.AckExtra:
		own.acks++
		own.owed.answer(own.copies)
		if e.begun && own.acks > own.copies && !b.OneSequence {
			own.extra++
			own.acks--
		}
		own.jumped = own.jumped || riptide.GapOf(m.Last, own.last) >= riptide.JumpList
		own.last = m.Last
		if b.Receive == riptide.ReceiveList && !(b.ShiftFault && own.jumped) || b.Receive == riptide.ReceiveNotes {
			own.countUnnamed(m)
		}
	case m.Type.Reliable():
		peer.copies++
		peer.arrived.pass(m.Sequence)
		over := own.sent.pass(m.Sequence)
		if over > 0 {
			own.skips++
		}
		if over > 0 && !b.OneSequence && !b.MergedSequences {
			own.gaps++
		}
	case m.Type == wire.Notify && !m.Bare:
		if own.notified.met && riptide.GapOf(m.Sequence, own.notified.newest) <= 0 {
			own.late++
		}
		if own.notified.pass(m.Sequence) > 0 {
			own.gaps++
		}
	case is == riptide.BeatPing && b.Port:
		// Its answers are counted, so the ping is too. The ids of Pytide's heartbeats mean nothing.
		peer.beats++
	case is == riptide.BeatPing:
		peer.beats++
		peer.open[m.Ping] = true
		first := !own.pings.met
		switch over := own.pings.step(m.Ping); {
		case over > 0 || first && e.begun && m.Ping != 0:
			own.gaps++
		case over < 0:
			own.late++
		}
	case is == riptide.BeatAnswer && !b.Port:
		for k := own.asked.step(m.Ping); k >= 0; k-- {
			if id := m.Ping - uint8(k); own.open[id] {
				own.open[id] = false
				if k > 0 {
					own.missed++
				}
			}
		}
		if own.pongs++; e.begun && own.pongs > own.beats {
			own.extra++
			own.pongs--
		}
	}
}

// countUnnamed counts messages that an Ack should name and does not.
func (c *contradictions) countUnnamed(m *wire.Message) {
	last := c.arrived.at(m.Last)
	for todo := ^m.AckBits; last > 0 && todo != 0; todo &= todo - 1 {
		id := m.Last - 1 - uint16(bits.TrailingZeros16(todo))
		if at := c.arrived.at(id); at > 0 && at < last {
			c.missed++
			c.arrived.order[id%passingSpan] = -1
		}
	}
}
