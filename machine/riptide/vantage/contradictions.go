package vantage

import (
	"math/bits"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// contradictions counts what speaks against the tap standing at a side, whatever
// the times say. At the tap nothing is lost, doubled or overtaken on the way between
// the tap and the side.
//
// Example: messages 5 and 6 pass the tap towards A. A's Ack names 6 and not 5, so 5
// was lost between the tap and A.
type contradictions struct {
	missed int // messages that passed towards the side and that it had not got when it went on
	extra  int // answers beyond the number of copies that passed towards the side
	gaps   int // messages that the side sent and that had not passed when a later one did

	arrived  passing // reliable messages on their way to the side
	sent     passing // its own, reliable ones and notify messages
	notified passing
	pings    idRun     // of its own heartbeats, where it is the client
	asked    idRun     // of those on their way to it, where it is the server
	copies   int       // reliable copies that passed towards it
	acks     int       // that it sent
	last     uint16    // newest id of its last Ack
	jumped   bool      // that id has leapt as far as a fault of the window needs
	open     [256]bool // ids of heartbeats that passed towards it and have no answer yet
	beats    int       // how many passed
	pongs    int       // answers to them that it sent
}

// count returns how many there are.
func (c *contradictions) count() int { return c.missed + c.extra + c.gaps }

// passing is the newest ids of a sequence that passed the tap, in which order.
type passing struct {
	met    bool
	newest uint16
	order  [passingSpan]int32 // of the first copy, by id; 0 for none, -1 for one that is counted
	ids    [passingSpan]uint16
	n      int32
}

// passingSpan is beyond what an Ack speaks of: its newest id and windowAcks more.
const passingSpan = 32

// pass enters an id, and gives how many ids it steps over; 0 for an old one.
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

// at returns when an id passed; 0 where it did not, or is counted.
func (p *passing) at(id uint16) int32 {
	if slot := id % passingSpan; p.ids[slot] == id {
		return max(p.order[slot], 0)
	}
	return 0
}

// idRun is a run of ids that step by one.
type idRun struct {
	met    bool
	newest uint8
}

// step returns how many ids one steps over; 0 for the first, and -1 for one that is
// not newer.
func (r *idRun) step(id uint8) (over int) {
	if r.met {
		if over = int(int8(id-r.newest)) - 1; over < 0 {
			return -1
		}
	}
	r.met, r.newest = true, id
	return over
}

// contradict takes a message of a side, of which behaviour b is known, into the
// counts of both.
func (e *Evidence) contradict(from machine.Side, b *riptide.Behaviour, is riptide.Beat, m *wire.Message) {
	own, peer := &e.of[from].against, &e.of[from.Other()].against
	switch {
	case m.Type == wire.Connect && from == e.first(from):
		e.begun = e.begun || own.acks+peer.acks+own.copies+peer.copies == 0
	case m.Type == wire.Ack || m.Type == wire.AckExtra:
		own.acks++
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
		if over := own.sent.pass(m.Sequence); over > 0 && !b.OneSequence && !b.MergedSequences {
			own.gaps++
		}
	case m.Type == wire.Notify && !m.Bare:
		if own.notified.pass(m.Sequence) > 0 {
			own.gaps++
		}
	case is == riptide.BeatPing && b.Port:
		// Its answer counts, and so does it; the ids of Pytide's heartbeats tell nothing.
		peer.beats++
	case is == riptide.BeatPing:
		peer.beats++
		peer.open[m.Ping] = true
		if first := !own.pings.met; own.pings.step(m.Ping) > 0 || first && e.begun && m.Ping != 0 {
			own.gaps++
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

// countUnnamed looks for messages that an Ack ought to name.
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
