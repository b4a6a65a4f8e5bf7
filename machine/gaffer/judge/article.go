package judge

import (
	"fmt"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	"github.com/ackscope/ackscope/machine/gaffer/tracker"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// articleJudge holds the messages of a flow against the article's rules of
// sending, where messages bear their ids. What a side knows of acks follows from
// headers alone:
//
//	it may know of an ack    that passed the tap towards it
//	it knows of an ack       in a packet that its own header names: it has read that
//
// So at any place of the tap two rules can be held: a message that is beyond what
// the receiver can buffer, though all acks that the side may know of had been read,
// and one that goes out again, though an ack was read for sure. At the tap the time
// between two copies shows too.
type articleJudge struct {
	headers *Judge
	section *wire.MessageSection
	sides   [2]articleSide
	packet  wire.Packet
}

// articleSide is one side's messages.
type articleSide struct {
	near     bool
	met      bool
	blind    bool // a packet's messages could not be read: what it carried is not known
	top      uint32
	largest  int // bytes of a payload
	packets  []articlePacket
	messages []articleMessage // by id mod their number, from oldest on
	oldest   int64            // of those that the side cannot know to be acked
	next     int64            // after the newest
	broken   *machine.Divergence
}

// articlePacket is a packet of a side: what it acks, and what it carries.
type articlePacket struct {
	ref      machine.Ref
	claims   gaffer.Claims
	sequence uint32
	live     bool
	told     bool // its acks were taken for read
	ids      []int64
}

// articleMessage is one message.
type articleMessage struct {
	id    int64
	at    machine.Instant // of its newest copy
	ref   machine.Ref
	acked machine.Ref // the packet that acks it, which the side has read
	bits  int
	live  bool
	maybe bool // an ack of it has passed the tap towards the side
}

const (
	// articlePackets are kept of each side: as many as a sender knows.
	// Source: law, the article "Reliable Ordered Messages": sequence buffers of 1024 entries
	articlePackets = 1024
	// ResendSlack is how much later than due a message may go out: the clock is
	// asked once a frame, and a frame can be long.
	// Source: measured, TestMarginsGaffer
	ResendSlack = 50 * time.Millisecond
)

func newArticleJudge(headers *Judge, section *wire.MessageSection, facts machine.Facts) *articleJudge {
	j := &articleJudge{headers: headers, section: section}
	for i := range j.sides {
		j.sides[i].near = facts.Vantage.Near(machine.Side(i))
	}
	return j
}

// Observe takes the next datagram.
func (j *articleJudge) Observe(d *machine.Datagram) {
	j.headers.Observe(d)
	p := &j.packet
	s, peer := &j.sides[d.From], &j.sides[d.From.Other()]
	err := j.headers.profile.Parse(d.Bytes, d.Length, p)
	switch {
	case p.Kind > wire.KindFragment || err != nil && p.Kind != wire.KindFragment:
		return
	case p.Kind == wire.KindFragment || d.Length > len(d.Bytes):
		s.blind = true
	}
	if p.HasHeader && err == nil {
		s.takes(j, peer, d, p)
	}
}

// packet returns the place of a packet.
func (s *articleSide) packet(sequence uint32) *articlePacket {
	if s.packets == nil {
		s.packets = make([]articlePacket, articlePackets)
	}
	return &s.packets[sequence%articlePackets]
}

// known returns a packet that passed, nil for none.
func (s *articleSide) known(sequence uint32) *articlePacket {
	if p := s.packet(sequence); p.live && p.sequence == sequence {
		return p
	}
	return nil
}

// takes takes a packet of the side.
func (s *articleSide) takes(j *articleJudge, peer *articleSide, d *machine.Datagram, p *wire.Packet) {
	r := j.headers.sides[d.From].Rules
	ordered := !s.met || r.Newer(p.Sequence, s.top)
	if old := s.known(p.Sequence); old != nil && !ordered {
		return // a copy
	}
	if !s.met {
		s.met = true
		if p.Sequence >= tracker.StartWithin {
			s.blind = true // what was sent before is not known
		}
	}
	c := r.Claims(p.Header.Ack, p.Header.AckBits)
	box := s.packet(p.Sequence)
	*box = articlePacket{ref: d.Ref, claims: c, sequence: p.Sequence, live: true, ids: box.ids[:0]}
	peer.mayKnow(c, r)
	if ordered {
		s.top = p.Sequence
		s.knows(peer, c, r)
	}
	if p.Kind == wire.KindFragment || s.blind && d.Length > len(d.Bytes) {
		return
	}
	// Its peer learns of it all the same once it is broken.
	if v := s.carries(j, d, p, box, ordered); s.broken == nil {
		s.broken = v
	}
}

// mayKnow takes the acks of a packet that passed the tap towards the side.
func (s *articleSide) mayKnow(c gaffer.Claims, r *gaffer.Rules) {
	c.Each(r, func(sequence uint32) {
		p := s.known(sequence)
		if p == nil {
			return
		}
		for _, id := range p.ids {
			if m := s.message(id); m != nil {
				m.maybe = true
			}
		}
	})
	for s.oldest < s.next {
		if m := s.message(s.oldest); m == nil || !m.maybe {
			return
		}
		s.oldest++
	}
}

// knows takes the acks of all packets of the peer that a header of the side names.
func (s *articleSide) knows(peer *articleSide, c gaffer.Claims, r *gaffer.Rules) {
	c.Each(r, func(sequence uint32) {
		x := peer.known(sequence)
		if x == nil || x.told {
			return
		}
		x.told = true
		x.claims.Each(r, func(sequence uint32) {
			p := s.known(sequence)
			if p == nil {
				return
			}
			for _, id := range p.ids {
				if m := s.message(id); m != nil && m.acked == 0 {
					m.acked = x.ref
				}
			}
		})
	})
}

// message returns a message, nil for one that is not kept.
func (s *articleSide) message(id int64) *articleMessage {
	if len(s.messages) == 0 || id < 0 {
		return nil
	}
	if m := &s.messages[id%int64(len(s.messages))]; m.live && m.id == id {
		return m
	}
	return nil
}

// carries takes the messages of a packet, and tells what is wrong with them.
func (s *articleSide) carries(j *articleJudge, d *machine.Datagram, p *wire.Packet, box *articlePacket,
	ordered bool) (v *machine.Divergence) {
	section, err := j.section.Open(d.Bytes[p.PayloadOffset:p.PayloadOffset+p.PayloadLen], 0)
	if err != nil {
		s.blind = true
		return nil
	}
	if s.messages == nil {
		s.messages = make([]articleMessage, max(2*j.section.SendQueue, articlePackets))
	}
	s.largest = max(s.largest, p.PayloadLen)
	diverge := func(rule, expected, got, because string, frames ...machine.Ref) *machine.Divergence {
		return &machine.Divergence{
			Ref: d.Ref, At: d.At, Rule: rule, Field: "gaffer.message.id", Expected: expected, Got: got, Because: because,
			Frames: gaffer.Refs(frames...), Reference: expected, Captured: got,
		}
	}
	var m wire.Message
	for section.Next(&m) {
		id := s.next + int64(int16(m.ID-uint16(s.next)))
		if id < 0 {
			s.blind = true // of before the capture
			continue
		}
		box.ids = append(box.ids, id)
		e := s.message(id)
		switch window := int64(j.section.ReceiveQueue); {
		case v != nil:
		case e == nil && id >= s.next && !s.blind && window > 0 && id >= s.oldest+window:
			v = diverge("message-beyond-window", fmt.Sprintf("at most %d", s.oldest+window-1), fmt.Sprint(uint16(id)),
				fmt.Sprintf("message %d is not acked, and the receiver can buffer %d from it on", uint16(s.oldest), window))
		case e == nil:
		case e.acked != 0 && ordered:
			v = diverge("message-resent-acked", "no message whose packet is acked", fmt.Sprint(m.ID),
				fmt.Sprintf("message %d was acked, and the header names the packet that said so", m.ID), e.ref, e.acked)
		case s.near && d.At.Sub(e.at) < messages.ResendLeast-gaffer.TapJitter:
			v = diverge("message-resent-early", "after 100 ms at the soonest",
				fmt.Sprintf("after %.0f ms", machine.Milliseconds(d.At.Sub(e.at))),
				fmt.Sprintf("message %d goes out again before the resend time has passed", m.ID), e.ref)
		}
		if e == nil {
			e = &s.messages[id%int64(len(s.messages))]
			*e = articleMessage{id: id, live: true}
		}
		e.at, e.ref, e.bits = d.At, d.Ref, m.End-m.Bit
		s.next = max(s.next, id+1)
	}
	if section.Err() != nil {
		s.blind = true
		return nil
	}
	if v == nil && s.near && !s.blind && section.Count < j.section.MaxPerPacket {
		v = s.overdue(j, d, p, diverge)
	}
	return v
}

// overdue looks for a message that ought to be in a packet: it is due, and fits.
func (s *articleSide) overdue(j *articleJudge, d *machine.Datagram, p *wire.Packet,
	diverge func(rule, expected, got, because string, frames ...machine.Ref) *machine.Divergence) *machine.Divergence {
	for id := s.oldest; id < s.next && (j.section.ReceiveQueue == 0 || id < s.oldest+int64(j.section.ReceiveQueue)); id++ {
		m := s.message(id)
		if m == nil || m.maybe || d.At.Sub(m.at) <= messages.ResendLeast+ResendSlack ||
			p.PayloadLen+(m.bits+7)/8+1 > s.largest {
			continue
		}
		return diverge("message-resent-late", fmt.Sprintf("message %d", uint16(id)), "not in this packet",
			fmt.Sprintf("message %d is not acked, went out %.0f ms ago and would fit: it is due after 100 ms", uint16(id),
				machine.Milliseconds(d.At.Sub(m.at))), m.ref)
	}
	return nil
}

// Finish settles what is open.
func (j *articleJudge) Finish() { j.headers.Finish() }

// Opinion returns what is found of a side: the earlier of what its headers and its
// messages show.
func (j *articleJudge) Opinion(s machine.Side) *machine.Opinion {
	o := j.headers.Opinion(s)
	peer := j.headers.Opinion(s.Other()).Divergence
	if v := j.sides[s].broken; v != nil && peer != nil && peer.Ref <= v.Ref {
		return o // what its peer had acked is open
	} else if v != nil && (o.Divergence == nil || v.Ref < o.Divergence.Ref) {
		o.Divergence = v
	}
	return o
}
