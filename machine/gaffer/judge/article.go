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

// articleJudge compares the messages of a flow with the article's rules of sending. It
// judges profiles in which messages have ids. For example: message 7 must not leave again
// once its sender has read the ack of its packet.
//
// What a side knows of acks follows from the headers alone:
//
//	it may know of an ack    that passed the tap towards it
//	it knows of an ack       in a packet that its own header names, so it has read that
//
// Two rules hold at every tap. A message must not lie beyond what the receiver can buffer,
// even if the side has read all acks that it may know of. A message must not leave again
// after an ack that the side has certainly read. At a tap at the side, the time between two
// copies shows too.
type articleJudge struct {
	headers *Judge
	section *wire.MessageSection
	sides   [2]articleSide
	packet  wire.Packet
}

// articleSide is the messages of one side.
type articleSide struct {
	near     bool
	resend   messages.ResendRule
	met      bool
	blind    bool // the messages of a packet could not be read, so what the side sent is not known
	top      uint32
	largest  int // the longest payload in bytes
	longest  int // the longest message section in bits
	packets  []articlePacket
	messages []articleMessage // by id modulo their number
	oldest   int64            // the oldest id that the side cannot know to be acked
	next     int64            // the id after the newest
	broken   *machine.Divergence
}

// articlePacket is a packet of a side: what it acks, and which messages it carries.
type articlePacket struct {
	ref      machine.Ref
	claims   gaffer.Claims
	sequence uint32
	live     bool
	told     bool // its acks were recorded as read
	ids      []int64
}

// articleMessage is one message.
type articleMessage struct {
	id    int64
	at    machine.Instant // of its newest copy
	ref   machine.Ref
	acked machine.Ref // the packet with the ack, which the side has read; 0 for none
	bits  int
	sends int // packets that carried it
	live  bool
	maybe bool // an ack of it passed the tap towards the side
}

const (
	// articlePackets is how many packets of each side the judge keeps. A sender keeps as
	// many.
	// Source: law, the article "Reliable Ordered Messages": sequence buffers of 1024 entries
	articlePackets = 1024
	// ResendSlack is how much later than due a message may leave. An endpoint reads its
	// clock once a frame, and a frame can be long.
	// Source: measured, TestMarginsGaffer
	ResendSlack = 50 * time.Millisecond
)

func newArticleJudge(headers *Judge, section *wire.MessageSection, facts machine.Facts) *articleJudge {
	j := &articleJudge{headers: headers, section: section}
	rules := messages.NewResendRules(section, facts.Settings)
	for i := range j.sides {
		j.sides[i].near, j.sides[i].resend = facts.Vantage.Near(machine.Side(i)), rules[i]
	}
	return j
}

// Observe judges the next datagram.
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

// packet returns the entry of a sequence number, which may hold another packet.
func (s *articleSide) packet(sequence uint32) *articlePacket {
	if s.packets == nil {
		s.packets = make([]articlePacket, articlePackets)
	}
	return &s.packets[sequence%articlePackets]
}

// known returns the entry of a packet that passed; nil where it is not kept.
func (s *articleSide) known(sequence uint32) *articlePacket {
	if p := s.packet(sequence); p.live && p.sequence == sequence {
		return p
	}
	return nil
}

// takes judges a packet that the side sent.
func (s *articleSide) takes(j *articleJudge, peer *articleSide, d *machine.Datagram, p *wire.Packet) {
	r := j.headers.sides[d.From].Rules
	ordered := !s.met || r.Newer(p.Sequence, s.top)
	if old := s.known(p.Sequence); old != nil && !ordered {
		return // a copy
	}
	if !s.met {
		s.met = true
		if p.Sequence >= tracker.StartWithin {
			s.blind = true // what it sent before is not known
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
	// A side that has diverged is still recorded: its peer may ack what it sends.
	if v := s.carries(j, d, p, box, ordered); s.broken == nil {
		s.broken = v
	}
}

// mayKnow records the acks of a packet that passed the tap towards the side.
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

// knows records the acks of all packets of the peer that a header of the side names.
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

// message returns a message; nil where it is not kept.
func (s *articleSide) message(id int64) *articleMessage {
	if len(s.messages) == 0 || id < 0 {
		return nil
	}
	if m := &s.messages[id%int64(len(s.messages))]; m.live && m.id == id {
		return m
	}
	return nil
}

// carries records the messages of a packet, and returns the divergence that they show.
func (s *articleSide) carries(j *articleJudge, d *machine.Datagram, p *wire.Packet, box *articlePacket,
	ordered bool,
) (v *machine.Divergence) {
	section, err := j.section.Open(d.Bytes[p.PayloadOffset:p.PayloadOffset+p.PayloadLen], 0)
	if err != nil {
		s.blind = true
		return nil
	}
	if s.messages == nil {
		s.messages = make([]articleMessage, max(2*j.section.SendQueue, articlePackets))
	}
	s.largest = max(s.largest, p.PayloadLen)
	var m wire.Message
	for section.Next(&m) {
		id := s.next + int64(int16(m.ID-uint16(s.next)))
		if id < 0 {
			s.blind = true // sent before the capture began
			continue
		}
		box.ids = append(box.ids, id)
		e := s.message(id)
		switch window := int64(j.section.ReceiveQueue); {
		case v != nil:
		case e == nil && id >= s.next && !s.blind && window > 0 && id >= s.oldest+window:
			v = messageDiverges(d, MessageBeyondWindow, machine.RestsOnBoth,
				fmt.Sprintf("at most %d", s.oldest+window-1), fmt.Sprint(uint16(id)),
				fmt.Sprintf("message %d is the oldest unacked one, and the receiver can buffer %d messages from there "+
					"on", uint16(s.oldest), window))
		case e == nil:
		case e.acked != 0 && ordered:
			v = messageDiverges(d, MessageResentAcked, machine.RestsOnPeer,
				"no message whose packet is acked", fmt.Sprint(m.ID),
				fmt.Sprintf("message %d was acked, and this header acks the packet that brought the ack", m.ID), e.ref, e.acked)
		case s.near:
			v = s.early(d, e)
		}
		if e == nil {
			e = &s.messages[id%int64(len(s.messages))]
			*e = articleMessage{id: id, live: true}
		}
		e.at, e.ref, e.bits = d.At, d.Ref, m.End-m.Bit
		e.sends++
		s.next = max(s.next, id+1)
	}
	if section.Err() != nil {
		s.blind = true
		return nil
	}
	s.longest = max(s.longest, section.Pos())
	if v == nil && s.near && !s.blind && section.Count < j.section.MaxPerPacket {
		v = s.overdue(j, d, p, section.Pos())
	}
	return v
}

// overdue looks for a message that is due and would fit, and that a packet leaves out. The
// packet's message section has so many bits. A sender may bound the section or the packet,
// so the message must fit both as they were seen.
func (s *articleSide) overdue(j *articleJudge, d *machine.Datagram, p *wire.Packet, bits int) *machine.Divergence {
	for id := s.oldest; id < s.next && (j.section.ReceiveQueue == 0 || id < s.oldest+int64(j.section.ReceiveQueue)); id++ {
		m := s.message(id)
		if m == nil || m.maybe || p.PayloadLen+(m.bits+7)/8+1 > s.largest || bits+m.bits > s.longest {
			continue
		}
		_, most, ok := s.resend.Wait(m.sends, m.at, d.At)
		if !ok || most == 0 || d.At.Sub(m.at) <= most+ResendSlack {
			continue
		}
		v := messageDiverges(d, MessageResentLate, machine.RestsOnBoth,
			fmt.Sprintf("message %d", uint16(id)), "not in this packet",
			fmt.Sprintf("message %d is unacked and would fit; it was last sent %.0f ms ago and is due again after %.0f "+
				"ms", uint16(id),
				machine.Milliseconds(d.At.Sub(m.at)), machine.Milliseconds(most)), m.ref)
		v.Inferred = s.resend.Inferred()
		return v
	}
	return nil
}

// early returns the divergence of a message that a packet carries again too soon.
func (s *articleSide) early(d *machine.Datagram, m *articleMessage) *machine.Divergence {
	least, _, ok := s.resend.Wait(m.sends, m.at, d.At)
	gap := d.At.Sub(m.at)
	if !ok || gap >= least {
		return nil
	}
	soonest := least
	if set := s.resend.Set; set.IsSet() && set.Policy != wire.ResendRTT {
		soonest += gaffer.TapJitter
	}
	v := messageDiverges(d, MessageResentEarly, machine.RestsOnOwn,
		fmt.Sprintf("at least %.0f ms after the last copy", machine.Milliseconds(soonest)),
		fmt.Sprintf("after %.0f ms", machine.Milliseconds(gap)),
		fmt.Sprintf("message %d goes out again before the resend time has passed", uint16(m.id)), m.ref)
	v.Inferred = s.resend.Inferred()
	return v
}

// messageDiverges returns the divergence of a packet by one of its messages.
func messageDiverges(
	d *machine.Datagram, rule *machine.Rule, rests machine.RestsOn, expected, got, because string, frames ...machine.Ref,
) *machine.Divergence {
	v := machine.Diverge(d, rule, rests, machine.Differ("gaffer.message.id", expected, got), because)
	v.Frames, v.Reference, v.Captured = gaffer.Refs(frames...), expected, got
	return v
}

// Finish ends the flow.
func (j *articleJudge) Finish() { j.headers.Finish() }

// Opinion returns what is found of a side: the divergence of its headers or that of its
// messages, whichever came first.
func (j *articleJudge) Opinion(s machine.Side) *machine.Opinion {
	o := j.headers.Opinion(s)
	if rule := &j.sides[s].resend; !rule.Set.IsSet() && rule.Found.Certainty() > machine.Unknown {
		o.Inferred.Resend, o.Inferred.ResendKnown = rule.Policy().String(), rule.Found.Certainty()
	}
	peer := j.headers.Opinion(s.Other()).Divergence
	if v := j.sides[s].broken; v != nil && peer != nil && peer.Ref <= v.Ref {
		return o // the peer is at fault, so what it acked is open
	} else if v != nil && (o.Divergence == nil || v.Ref < o.Divergence.Ref) {
		o.Divergence = v
	}
	return o
}
