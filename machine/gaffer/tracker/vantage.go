package tracker

import (
	"fmt"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// How many datagrams are held back while the vantage is open. The tap is placed at each
// power of two from holdLeast on, and for good at holdMost.
const (
	// holdLeast is how many datagrams are held back before the tap is first placed.
	// Source: measured, TestMarginsGaffer
	holdLeast = 64
	// holdMost is how many datagrams are held back at most. Then the tap is placed for
	// good.
	// Source: measured, TestMarginsGaffer
	holdMost = 1024
	// PlaceLeast is how many datagrams it takes to place the tap. With fewer the vantage
	// is unknown.
	// Source: measured, TestMarginsGaffer
	PlaceLeast = 16
)

// reach is how far one side's headers show it to be from the tap. For example, packet
// 50 of the peer passes the tap at 100 ms. A header of the side at 130 ms does not name
// 50, one at 145 ms does. So a round trip from the tap to the side and back takes at
// least 30 ms (lower) and at most 45 ms (upper).
type reach struct {
	named   int  // packets of the peer that its headers named
	follows bool // a session of the peer before this one is known
	// upper is the shortest time from a packet passing the tap to the first header that
	// names it. In that time the packet reached the side and the header came back.
	upper time.Duration
	// late has an entry for each header that missed a packet. The packet had passed the
	// tap before the header, which does not name it; a later header does. The entry is the
	// time between the two. So the header was written before the packet was read. A side
	// at the tap writes its headers right after it has read its socket.
	late  []time.Duration
	lower time.Duration // what only a few of late exceed; a machine that halts at the wrong moment causes a few

	// behind is how far the side lags behind what passes the tap: the median over all its
	// headers. For example, a header acks packet 80, and packets 81 to 95 have passed the
	// tap. Packet 81 passed 40 ms before: the header is 40 ms behind. If the peer sends so
	// much more that most packets are never named, behind is the only evidence.
	behind time.Duration

	interval time.Duration // median time between its packets
	spread   time.Duration // of the middle 80 % of those times

	packets   int
	gaps      int // sequences that did not pass the tap
	overtaken int // packets that came after a newer one of the same side, or again
}

// peerPacket is a packet of the peer, while a reach is measured.
type peerPacket struct {
	at       machine.Instant
	skipped  time.Duration // its age at the last header that did not name it
	by       int           // index of that header
	have     uint64        // fragments that passed, the first 64 of them
	sequence uint32
	missing  int // fragments that have not passed
	live     bool
	named    bool
}

// fewPeers is for how many packets of the peer measureReach needs no memory from the heap.
// Source: bound, 32 packets take less than 2 kB of the stack
const fewPeers = 32

func measureReach(r *gaffer.Rules, held []sighting, x machine.Side) reach {
	var m reach
	size := uint32(16)
	for int(size) < min(2*len(held), 1024) {
		size *= 2
	}
	var few [fewPeers]peerPacket // of most flows, in captures with very many
	peer := few[:min(size, fewPeers)]
	if size > fewPeers {
		peer = make([]peerPacket, size)
	}
	at := func(q uint32) *peerPacket {
		if e := &peer[q&(size-1)]; e.live && e.sequence == q && e.missing == 0 {
			return e
		}
		return nil
	}
	var top, peerTop uint32
	var met, peerMet bool
	var before uint32 // the newest before one that jumped ahead
	var jumped bool   // the packet before did so
	var topAt machine.Instant
	var lags, behind, spacing []time.Duration // of each header
	for i := range held {
		p := &held[i]
		if p.from != x {
			e := &peer[p.sequence&(size-1)]
			if !e.live || e.sequence != p.sequence {
				*e = peerPacket{at: p.at, sequence: p.sequence, live: true, missing: int(p.count)}
			}
			if bit := uint64(1) << (p.id & 63); p.count > 0 && e.have&bit == 0 && e.missing > 0 {
				// Its time is the moment at which it became whole.
				e.have |= bit
				e.missing--
				e.at, e.skipped = p.at, 0
			}
			if !peerMet || r.Newer(p.sequence, peerTop) {
				peerTop, peerMet = p.sequence, true
			}
			continue
		}
		if p.count == 0 || p.header {
			m.packets++
			if jumped && p.sequence == (before+2)&r.Mask() {
				// The numbers go on as if the packet before had its own number. That number is
				// wrong; the others are not late.
				m.gaps -= r.Distance(top, before) - 1
				m.overtaken++
				top = (before + 1) & r.Mask()
			}
			jumped = false
			if met && !r.Newer(p.sequence, top) {
				m.overtaken++
				continue
			}
			if met {
				ahead := r.Distance(p.sequence, top)
				m.gaps += ahead - 1
				jumped, before = ahead > 1, top
				spacing = append(spacing, p.at.Sub(topAt))
			}
			top, topAt, met = p.sequence, p.at, true
		}
		if !p.header || !peerMet {
			continue
		}
		lags, behind = append(lags, 0), append(behind, 0)
		c := r.Claims(p.ack, p.ackBits)
		newest := (*peerPacket)(nil)
		from, to := c.Width-1, -min(max(r.Distance(peerTop, c.Newest), 0), 64)
		if c.Nothing(r) {
			from, to = -1, to-1
		}
		for n := from; n >= to; n-- {
			e := at((c.Newest - uint32(n)) & r.Mask())
			switch {
			case e == nil || e.named:
			case n >= 0 && c.Named>>uint(n)&1 != 0:
				e.named = true
				m.named++
				lags[e.by] = max(lags[e.by], e.skipped)
				if newest == nil || e.at > newest.at {
					newest = e
				}
			case n >= 0 && r.Silent(c)>>uint(n)&1 != 0:
			default:
				e.skipped, e.by = p.at.Sub(e.at), len(lags)-1
				if n < 0 {
					behind[e.by] = max(behind[e.by], e.skipped)
				}
			}
		}
		if newest != nil {
			if wait := p.at.Sub(newest.at); m.upper == 0 || wait < m.upper {
				m.upper = max(wait, 1)
			}
		}
	}
	for _, lag := range lags {
		if lag > 0 {
			m.late = append(m.late, lag)
		}
	}
	slices.Sort(m.late)
	if few := min(len(lags), m.named)/20 + 2; len(m.late) > few {
		m.lower = m.late[len(m.late)-1-few]
	}
	if slices.Sort(behind); len(behind) >= 12 {
		m.behind = behind[len(behind)/2]
	}
	if len(spacing) >= 12 {
		slices.Sort(spacing)
		m.interval = spacing[len(spacing)/2]
		m.spread = spacing[len(spacing)*9/10] - spacing[len(spacing)/10]
	}
	return m
}

// worst returns the third largest entry of late: at least three headers were that late.
// It returns 0 if there are fewer than three entries.
func (m *reach) worst() time.Duration {
	if len(m.late) < 3 {
		return 0
	}
	return m.late[len(m.late)-3]
}

// turnaround is the longest time that a machine at the tap needs between reading and
// sending.
// Source: measured, TestMarginsGaffer
const turnaround = 2 * time.Millisecond

// shows reports whether the side names a packet soon enough to stand at the tap.
func (m *reach) shows() bool { return m.upper > 0 && m.upper <= machine.NearProof }

// reason formats why the tap is placed at a side, and how surely.
func (m *reach) reason(x machine.Side, why string) string {
	if m.shows() {
		return fmt.Sprintf("at %v: %s", x, why)
	}
	return fmt.Sprintf("likely at %v, though it may have been some way off: %s", x, why)
}

// unknownReason is shared by the many flows that end early.
const unknownReason = "unknown: the sides ack too few packets, or too evenly, to show which side is nearer"

// placement is where the held datagrams place the tap, and why.
type placement struct {
	vantage  machine.Vantage
	reason   string
	sure     bool    // more datagrams would hardly change that
	supposed bool    // the named side may as well stand some way off
	prompt   [2]bool // the side has answered so soon that it can stand at the tap
}

// placeTap returns where the held datagrams place the tap.
func (t *Tracker) placeTap() (p placement) {
	if t.Held.len() < PlaceLeast {
		return placement{vantage: machine.VantageUnknown, reason: unknownReason}
	}
	held := t.Held.list()
	var m [2]reach
	for i := range m {
		x := machine.Side(i)
		m[i] = measureReach(t.rules, held, x)
		m[i].follows = t.facts.Earlier[x.Other()][0].Known
	}
	p.vantage, p.reason, p.sure, p.supposed = compareReach(&m)
	p.prompt = [2]bool{m[machine.A].shows(), m[machine.B].shows()}
	return p
}

// compareReach returns the fields of a placement, but for prompt.
func compareReach(m *[2]reach) (v machine.Vantage, reason string, sure, supposed bool) {
	// A side that is at the tap shows all that it sends, once and in order.
	var far [2]string
	for i := range m {
		s := &m[i]
		switch {
		case s.lower > turnaround:
			far[i] = fmt.Sprintf("%v is a round trip of %v or more away", machine.Side(i), machine.Rounded(s.lower))
		case s.behind > turnaround:
			far[i] = fmt.Sprintf("%v is about %v behind what is captured", machine.Side(i), machine.Rounded(s.behind))
		case s.interval > 0 && s.upper > 2*s.interval+turnaround:
			far[i] = fmt.Sprintf("%v sends every %v and names no packet within %v of its capture", machine.Side(i),
				machine.Rounded(s.interval), machine.Rounded(s.upper))
		case s.overtaken > 1+s.packets/100:
			far[i] = fmt.Sprintf("%d packets of %v come out of order or repeated", s.overtaken, machine.Side(i))
		case s.gaps > 1+s.packets/100 && s.gaps > 4*m[1-i].gaps:
			far[i] = fmt.Sprintf("%d packets of %v are missing", s.gaps, machine.Side(i))
		}
	}
	enough := min(m[0].named, m[1].named) >= 12
	for i := range m {
		side := machine.Side(i)
		near, other := &m[i], &m[1-i]
		at := machine.VantageA + machine.Vantage(i)
		// A side that names none may hold a late packet of its peer's session before, and all others are
		// too old for it. Then nothing shows how far away it is.
		silent := near.named == 0 && near.follows
		if far[i] == "" && far[1-i] != "" && !silent {
			return at, near.reason(side,
					fmt.Sprintf("%s; %v names packets %v after they are captured", far[1-i], side, machine.Rounded(near.upper))),
				enough, !near.shows()
		}
		if far[i] == "" && enough && other.lower > turnaround/10 && other.lower > 4*near.lower {
			return at, near.reason(side,
				fmt.Sprintf("%v is a round trip of %v or more away, %v of %v", side.Other(), machine.Rounded(other.lower), side,
					machine.Rounded(near.lower))), false, !near.shows()
		}
		if far[i] == "" && near.named > 0 && near.upper < turnaround/4 && (other.named == 0 || other.upper > 4*near.upper) {
			return at, fmt.Sprintf("at %v: it names packets %v after they are captured, %v after %v", side,
				machine.Rounded(near.upper), side.Other(), machine.Rounded(other.upper)), false, false
		}
	}
	a, b := &m[0], &m[1]
	for i := range m {
		near, other := &m[i], &m[1-i]
		if enough && far[0] == far[1] && near.interval > 0 && other.spread > turnaround/2 && other.spread > 4*near.spread {
			return machine.VantageA + machine.Vantage(i),
				near.reason(machine.Side(i),
					fmt.Sprintf("its packets come evenly (within %v), those of %v within %v", machine.Rounded(near.spread),
						machine.Side(1-i), machine.Rounded(other.spread))), false, !near.shows()
		}
	}
	switch {
	case far[0] != "" && far[1] != "":
		return machine.VantageBetween, "between: " + far[0] + "; " + far[1],
			enough && min(a.lower, b.lower) > turnaround, false
	case enough && max(a.upper, b.upper) < turnaround/8 && max(a.worst(), b.worst()) < turnaround/12:
		return machine.VantageBoth,
			fmt.Sprintf("at both: each names packets within %v of their capture",
				machine.Rounded(max(a.upper, b.upper))), false, false
	}
	return machine.VantageUnknown, unknownReason, false, false
}
