package analyze

import (
	"fmt"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// marks are what a capture itself says about where the packets of one side came from. That
// is the direction in link headers and pcapng flags, the checksum and the TTL. For example,
// cooked packets of A are marked as outgoing, and those of B as incoming. So the machine of A
// captured them.
type marks struct {
	seen              uint16
	outbound, inbound uint16
	unfilled          uint16 // checksums that the sender left to its network card
	leastTTL, mostTTL uint8
}

// How many packets of a side marks look at, at least and at most.
const (
	marksLeast = 8
	marksMost  = 256
)

// note adds a packet of the side.
func (m *marks) note(p *capture.Packet) {
	if m.seen == marksMost {
		return
	}
	if m.seen == 0 {
		m.leastTTL = p.TTL
	}
	m.seen++
	m.leastTTL, m.mostTTL = min(m.leastTTL, p.TTL), max(m.mostTTL, p.TTL)
	switch p.Direction {
	case capture.Outbound:
		m.outbound++
	case capture.Inbound:
		m.inbound++
	case capture.NoDirection:
	}
	if p.Unfilled() {
		m.unfilled++
	}
}

// fresh reports whether no router has forwarded the packets: their TTL is one that hosts
// begin with.
func (m *marks) fresh() bool {
	if m.leastTTL != m.mostTTL {
		return false
	}
	switch m.mostTTL {
	case 64, 128, 255:
		return true
	}
	return false
}

// marked is the side at which marks place the tap, and why.
type marked struct {
	side machine.Side
	why  string
	// strong is set where the capturing machine sent the packets. Otherwise it may be the
	// next one on the same network.
	strong bool
}

// marked returns where the marks of both sides place the tap. It returns false where they do
// not, or contradict each other.
func (f *Flow) marked() (best marked, ok bool) {
	for _, x := range []machine.Side{machine.A, machine.B} {
		own, peer := &f.marks[x], &f.marks[x.Other()]
		if min(own.seen, peer.seen) < marksLeast {
			return best, false
		}
		var m marked
		switch {
		case own.outbound == own.seen && peer.inbound == peer.seen && own.fresh():
			m = marked{x, fmt.Sprintf("the capture marks packets of %v as outgoing and those of %v as incoming", x,
				x.Other()), true}
		case own.unfilled == own.seen && peer.unfilled == 0 && own.fresh():
			m = marked{x, fmt.Sprintf("the checksums of %v are not filled in yet, as only its own machine sees them", x), true}
		case own.fresh() && !peer.fresh():
			m = marked{x, fmt.Sprintf("packets of %v have the TTL %d that hosts begin with, those of %v do not", x, own.mostTTL,
				x.Other()), false}
		default:
			continue
		}
		switch {
		case !ok || m.strong && !best.strong:
			best, ok = m, true
		case m.strong == best.strong:
			return marked{}, false
		}
	}
	return best, ok
}

// weigh lets the marks of a flow place the tap, where what its packets say does not prove
// them wrong.
//
//   - What a side sent came out of order or twice: marks do not place the tap there.
//   - A side has answered at once, so the tap can stand there. Then marks overrule that both
//     sides look away, for a side that lies or is busy looks so. Where the capturing machine
//     sent the packets, they also overrule that the other side looks nearer. The place is
//     likely at most, since a relay on the address may look the same.
//   - A side has never answered at once: a router, or a relay on its address, marks packets
//     too. Then marks place the tap only where nothing else does, and it is likely at most.
func (m *marked) weigh(facts *machine.Facts) {
	at, was := machine.VantageA+machine.Vantage(m.side), facts.Vantage
	prompt := facts.Prompt[m.side]
	switch {
	case facts.Scrambled[m.side], was.Near(m.side), !m.strong && !prompt,
		!prompt && was != machine.VantageUnknown, !m.strong && was.Near(m.side.Other()):
		return
	}
	sure := m.strong && prompt && was == machine.VantageUnknown
	place := fmt.Sprintf("at %v", at)
	if !sure {
		place = fmt.Sprintf("likely at %v, though it may have been some way off", at)
	}
	reason := place + ": " + m.why
	if was != machine.VantageUnknown {
		reason += ", though by its packets it is " + facts.VantageReason
	}
	facts.Vantage, facts.VantageReason, facts.Marked = at, reason, true
	facts.Supposed = [2]bool{}
	facts.Supposed[m.side] = !sure
}
