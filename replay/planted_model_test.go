package replay_test

import (
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// socketModel finds the first datagram of a side at the tap that no correct endpoint of the
// Gaffer family can have sent. It shares only the codec with the judges. It keeps plain lists,
// and looks for a way to read the socket.
//
// The side reads what came, in order. Before each of its packets it reads as much as it likes,
// and its application refuses what it likes. A header names what was read and taken. So a packet
// that a header names for the first time was read after the header before it, if that header
// reached back to it.
//
// It is best to have read as little as possible: what explains the headers with more read also
// explains them with less.
type socketModel struct {
	profile *wire.Profile
	came    []cameIn
	read    int // of what came
	named   map[uint16]bool
	started bool
	joined  bool
	ack     uint16
	next    uint16 // its own number
	met     bool
	part    struct{ id, count, size int } // the fragment that is due; count 0: none
}

// cameIn is a datagram that passed the tap towards the side.
type cameIn struct {
	at        int
	sequence  uint16
	id, count int // of a fragment; count 0: a whole packet
}

// firstWrong returns the place of that datagram; -1 for none.
func (m *socketModel) firstWrong(list []machine.Datagram, side machine.Side) int {
	m.named = map[uint16]bool{}
	for i := range list {
		var p wire.Packet
		err := m.profile.Parse(list[i].Bytes, list[i].Length, &p)
		if p.Kind > wire.KindFragment || err != nil && (p.Kind != wire.KindFragment || p.FragmentCount == 0) {
			if list[i].From == side {
				return i // an endpoint sends nothing else
			}
			continue
		}
		if list[i].From != side {
			if err != nil {
				continue
			}
			c := cameIn{at: i, sequence: uint16(p.Sequence)}
			if p.Kind == wire.KindFragment {
				c.id, c.count = p.FragmentID, p.FragmentCount
			}
			m.came = append(m.came, c)
			continue
		}
		if !m.numbered(&p) {
			return i
		}
		if p.HasHeader && err == nil && !m.explains(i, uint16(p.Sequence), p.Header) {
			return i
		}
	}
	return -1
}

// numbered holds the number of a packet, and its fragments.
func (m *socketModel) numbered(p *wire.Packet) bool {
	q := uint16(p.Sequence)
	due := m.next
	if m.part.count > 0 {
		due--
	}
	ok := !m.met || q == due
	m.met, m.next = true, q+1
	if p.Kind != wire.KindFragment {
		ok = ok && m.part.count == 0
		return ok
	}
	if m.part.count == 0 {
		m.part.count, m.part.id, m.part.size = p.FragmentCount, p.FragmentID, p.PayloadLen
		ok = ok && p.FragmentID == 0
	}
	last := p.FragmentID == m.part.count-1
	ok = ok && p.FragmentCount == m.part.count && p.FragmentID == m.part.id
	ok = ok && (last && p.PayloadLen <= m.part.size || !last && p.PayloadLen == m.part.size)
	if m.part.id++; m.part.id >= m.part.count {
		m.part.count = 0
	}
	return ok
}

// explains has the side read what its header needs.
func (m *socketModel) explains(at int, sequence uint16, h wire.Header) bool {
	ack := uint16(h.Ack)
	fixed := m.profile.Form == wire.FormFixed
	if h.AckBits == 0 && (ack == 0xffff || fixed && ack == 0) && !m.started {
		return true
	}
	if !m.started {
		m.started, m.ack = true, ack
		if sequence != 0 {
			m.joined = true
			for n := range uint16(32) {
				if h.AckBits>>n&1 == 1 {
					m.named[ack-n] = true
				}
			}
			return true
		}
		m.ack = 0xffff
	}
	if int16(ack-m.ack) < 0 {
		return false
	}
	for q := range m.named {
		switch behind := ack - q; {
		case int16(behind) < 0:
			return false
		case behind >= 32:
			delete(m.named, q)
		case h.AckBits>>behind&1 == 0:
			return false // it was received, and still is
		}
	}
	read := m.read
	for n := range uint16(32) {
		q := ack - n
		if h.AckBits>>n&1 == 0 || m.named[q] {
			continue
		}
		k := m.whole(q, at)
		if k < 0 {
			if m.joined {
				continue // it may have come before the capture
			}
			return false
		}
		read = max(read, k+1)
		m.named[q] = true
	}
	if h.AckBits&1 == 0 && ack != m.ack {
		// Only a packet of which a fragment came moves ack without having been received.
		k := m.begun(ack, at)
		if k < 0 && !m.joined {
			return false
		}
		read = max(read, k+1)
	}
	for _, c := range m.came[m.read:read] {
		if c.count > 0 && int16(c.sequence-ack) > 0 {
			return false // a newer fragment was read, and no application can refuse that
		}
	}
	m.read, m.ack = read, ack
	return true
}

// whole returns the place, among what came and was not read, at which a packet is
// whole; -1 where it is not by then.
func (m *socketModel) whole(q uint16, before int) int {
	have := map[int]bool{}
	for k, c := range m.came {
		switch {
		case c.at > before:
			return -1
		case c.sequence != q:
		case c.count == 0:
			if k >= m.read {
				return k
			}
		default:
			if have[c.id] = true; len(have) == c.count {
				if k >= m.read {
					return k
				}
				clear(have)
			}
		}
	}
	return -1
}

func (m *socketModel) begun(q uint16, before int) int {
	for k, c := range m.came {
		if c.at < before && c.sequence == q && c.count > 0 && k >= m.read {
			return k
		}
	}
	return -1
}
