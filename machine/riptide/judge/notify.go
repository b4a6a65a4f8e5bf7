package judge

import (
	"fmt"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// judgedNotes is the notify messages of a side: its sequence, and what its headers say of the
// peer's notify messages.
type judgedNotes struct {
	arrivals
	base, ahead riptide.NotifyReceiver // ahead has read what is being tried
	known       bool
	next        uint16 // the sequence of its next message
	met         bool
	ref         machine.Ref // the frame of its last message
	newest      uint16      // the peer's newest id
	peerMet     bool
	passed      passedIDs // of a far side: the peer's ids that passed the tap towards it
	far         farNotes
	said        farNote // the last header of a side at the tap, once it is live
	first       uint16  // of a side that is met in the middle: the sequence of its first message
	sentBefore  notesBefore
}

func (n *judgedNotes) begin(b *riptide.Behaviour) {
	n.base, n.ahead, n.next = riptide.NewNotifyReceiver(b), riptide.NewNotifyReceiver(b), 1
}

// sent records that the peer has sent a notify message.
func (n *judgedNotes) sent(id uint16) {
	if !n.peerMet || riptide.GapOf(id, n.newest) > 0 {
		n.newest, n.peerMet = id, true
	}
}

// sendsNotify judges a notify message of s.
func (s *judged) sendsNotify(j *Judge, peer *judged, p *observed) *machine.Divergence {
	n, m := &s.notes, p.m
	defer func() { n.ref = p.ref }()
	if s.ordered {
		due := n.next
		if !n.met && !j.connection.begun {
			due, n.first = m.Sequence, m.Sequence
		}
		if s.supposed && n.sentBefore.explains(p, due) || s.supposed && n.met && s.overtakes(j, p) {
			s.opinion.Undecided++
			return nil
		}
		if s.stream && !s.near && (s.hole || riptide.GapOf(m.Sequence, due) > 0) {
			s.hole = true
			s.opinion.Undecided++
			return nil
		}
		if m.Sequence != due {
			if v := s.unsentNotify(j.config.Senders[s.side].Codec, p, due); s.near && m.Sequence == due+1 && v != nil {
				return v
			}
			return s.diverge(p, difference{
				Sequence, stepsTo(riptide.GapOf(m.Sequence, due)), "riptide.sequence", due, m.Sequence,
				"the notify sequence steps by one from message to message",
			}, n.ref)
		}
		n.met, n.next = true, m.Sequence+1
	}
	if !s.ordered {
		s.opinion.Undecided++
		if peer.near && n.peerMet && riptide.GapOf(m.Last, n.newest) > 0 && riptide.GapOf(m.Last, n.newest) < farAhead {
			return s.diverge(p, difference{
				AckUnsent, machine.RestsOnBoth, "riptide.last", fmt.Sprintf("at most %d", n.newest), m.Last,
				fmt.Sprintf("nothing newer than notify message %d had been sent", n.newest),
			}, n.ref)
		}
		return s.notesSnapshot(p)
	}
	if s.stream && (s.hole || j.sides[s.side.Other()].hole) {
		s.opinion.Undecided++
		return nil
	}
	if !n.known && !j.connection.begun {
		n.known = true
		n.join(m.Last, uint8(m.AckBits))
		s.opinion.Undecided++
		return nil
	}
	n.known = true
	return s.matchNotify(j, p)
}

// notesBefore are the last notify messages of a side that the tap is only supposed to stand at.
// A network may lie between, and bring one of them twice.
type notesBefore struct{ ring []noteBefore } // by sequence; its length is 0 or farNoteRing

type noteBefore struct {
	sequence uint16
	hash     uint64
}

// explains reports whether a message that lies behind the one that is due is a copy of one that
// passed before, and keeps it.
func (n *notesBefore) explains(p *observed, due uint16) (copied bool) {
	if n.ring == nil {
		n.ring = make([]noteBefore, farNoteRing)
	}
	now := noteBefore{p.m.Sequence, machine.Digest(1, p.bytes)}
	e := &n.ring[now.sequence%farNoteRing]
	copied = riptide.GapOf(now.sequence, due) < 0 && *e == now
	*e = now
	return copied
}

// overtakes reports whether a notify message can have been overtaken on its way to the tap by
// those with which the capture began.
func (s *judged) overtakes(j *Judge, p *observed) bool {
	behind := riptide.GapOf(s.notes.first, p.m.Sequence)
	return behind > 0 && behind < farNoteRing && j.settling(p.at)
}

// stepsTo returns what the divergence of a number rests on, by how far it lies ahead of the
// one that is due. If 9 comes where 7 is due, the capture may lack 7 and 8. If 5 comes where
// 7 is due, no missing message explains it.
func stepsTo(ahead int) machine.RestsOn {
	if ahead > 0 {
		return machine.RestsOnAbsence
	}
	return machine.RestsOnOwn
}

// join sets the state of a side that is met in the middle to that of its header.
func (n *judgedNotes) join(last uint16, bits uint8) {
	n.base.Adopt(last, bits)
	n.ahead.Adopt(last, bits)
	open := n.open()
	for i := len(open) - 1; i >= 0; i-- {
		if riptide.GapOf(open[i].sequence, last) <= 0 {
			n.head += i + 1
			return
		}
	}
}

// matchNotify finds how much of what arrived s had read when it sent a header.
func (s *judged) matchNotify(j *Judge, p *observed) *machine.Divergence {
	n, m := &s.notes, p.m
	said := n.said
	n.said = farNote{p.ref, m.Sequence, m.Last, uint8(m.AckBits), true}
	open := n.open()
	read := 0
	for read < len(open) && open[read].place <= s.readTo {
		n.ahead.Take(open[read].sequence)
		read++
	}
	least := read
	for {
		last, bits := n.ahead.Header()
		if last == m.Last && bits == uint8(m.AckBits) {
			for i := range read {
				n.base.Take(open[i].sequence)
				s.readTo = max(s.readTo, open[i].place)
			}
			n.head += read
			return nil
		}
		if read == len(open) {
			break
		}
		n.ahead.Take(open[read].sequence)
		read++
	}
	// The header of the reference that comes nearest.
	want := n.base.Clone()
	frames := []machine.Ref{n.ref}
	for i := range open {
		last, _ := want.Header()
		if i >= least && last == m.Last {
			break
		}
		want.Take(open[i].sequence)
		frames = append(frames[:1], open[i].ref)
	}
	last, bits := want.Header()
	v := s.diverge(p, difference{
		NotifyAck, s.restsOfNotes(j, &said), "riptide.ack_bits", machine.Hex(uint64(bits), 2),
		machine.Hex(uint64(m.AckBits), 2),
		"no part of what was captured on its way to the side leads to this header",
	}, frames...)
	if last != m.Last {
		v.Mismatch = machine.Differ("riptide.last", last, m.Last)
	}
	v.Reference, v.Captured = "received "+window(last, uint64(bits), 8), "received "+window(m.Last, uint64(m.AckBits), 8)
	return v
}
