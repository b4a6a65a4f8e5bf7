package gaffer

import (
	"slices"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// courier is what one side sends: its packets and what they carried.
type courier struct {
	from      machine.Side
	fresh     bool
	assembler Assembler
	met       bool
	top       uint32
	top64     int64
	parcels   []parcel // by sequence mod len
	lanes     []lane   // by channel; of unreliable ones only the channel is used

	split      uint64 // packets with a block fragment that travelled as several datagrams
	fragmented uint64
}

const parcelsMost = 1024 // packets of which it is remembered what they carried: yojimbo's own sentPacketBuffer

// parcel is what one packet carried.
type parcel struct {
	sequence uint32
	live     bool
	reliable []errand
	loose    []machine.Message // unreliable ones
}

// errand is one reliable message, or a fragment of one, in a packet.
type errand struct {
	channel  int
	id       int64
	fragment int // -1: the message whole
}

// count keeps the side's numbers unwrapped.
func (s *courier) count(pk *wire.Packet) {
	if !s.met {
		s.met, s.top, s.top64 = true, pk.Sequence, int64(pk.Sequence)
		return
	}
	if ahead := int16(pk.Sequence - s.top); ahead > 0 {
		s.top, s.top64 = pk.Sequence, s.top64+int64(ahead)
	}
}

func (s *courier) unwrap(sequence uint32) int64 { return s.top64 + int64(int16(sequence-s.top)) }

// parcel gives the entry of a packet, nil where it was never seen whole.
func (s *courier) parcel(sequence uint32) *parcel {
	if len(s.parcels) == 0 {
		return nil
	}
	if p := &s.parcels[sequence%parcelsMost]; p.live && p.sequence == sequence {
		return p
	}
	return nil
}

// carry enters what a packet carries.
func (s *courier) carry(config *wire.Yojimbo, k *carrier, p *wire.ConnectionPacket, payload []byte, gapless bool, out *machine.Effects) {
	if s.parcels == nil {
		s.parcels = make([]parcel, parcelsMost)
		s.lanes = make([]lane, len(config.Channels))
		for i := range s.lanes {
			s.lanes[i] = lane{channel: i, from: s.from, config: &config.Channels[i], fresh: s.fresh}
		}
	}
	box := &s.parcels[k.sequence%parcelsMost]
	if box.live && box.sequence == k.sequence {
		return // a copy
	}
	s.leave(box, out)
	*box = parcel{sequence: k.sequence, live: true, reliable: box.reliable[:0], loose: box.loose[:0]}
	blocks := false
	for i := range p.Entries {
		e := &p.Entries[i]
		if config.Channels[e.Channel].Type != wire.ReliableOrdered {
			s.loose(config, box, e, k, p, payload)
			continue
		}
		c := &s.lanes[e.Channel]
		if e.Block {
			blocks = true
			c.fragment(box, &e.Fragment, k, payload, out)
			continue
		}
		for _, m := range p.Messages[e.First : e.First+e.Count] {
			id := c.unwrap(m.ID)
			l := c.carry(id, k, out)
			if l == nil {
				continue
			}
			if m.Read && !l.named {
				l.name(m.Type, payload, m.Body, m.End)
			}
			box.reliable = append(box.reliable, errand{e.Channel, id, -1})
		}
		if e.Count > 0 {
			c.watch(k, gapless, out)
		}
	}
	if blocks {
		s.fragmented++
		if k.datagrams > 1 {
			s.split++
			out.Report(blockSplit, s.from, machine.Certain, k.at, k.ref, 0, float64(k.datagrams), float64(len(payload)))
		}
	}
}

// name notes a message's type and body.
func (l *life) name(kind uint32, payload []byte, from, to int) {
	l.named, l.kind, l.bits = true, kind, to-from
	if l.bits <= bodyMost*8 {
		l.body, l.bodyBit = slices.Clone(payload[from/8:(to+7)/8]), uint8(from%8)
	}
}

// fragment enters a block fragment.
func (c *lane) fragment(box *parcel, f *wire.BlockFragment, k *carrier, payload []byte, out *machine.Effects) {
	id := c.unwrap(f.ID)
	l := c.carry(id, k, out)
	if l == nil {
		return
	}
	if l.block == nil {
		l.block = &transfer{parts: make([]part, f.Count)}
	}
	if len(l.block.parts) != f.Count {
		out.Report(malformedConnection, c.from, machine.Certain, k.at, k.ref, l.frames[0], float64(len(payload)))
		return
	}
	l.block.carry(f.Index, payload[f.Offset:f.Offset+f.Size], k)
	if f.Read && !l.named {
		l.name(f.Type, payload, f.Body, f.End)
	}
	box.reliable = append(box.reliable, errand{c.channel, id, f.Index})
}

// loose enters the messages of an unreliable channel: they live and die with
// their packet.
func (s *courier) loose(config *wire.Yojimbo, box *parcel, e *wire.ChannelEntry, k *carrier, p *wire.ConnectionPacket, payload []byte) {
	for _, m := range p.Messages[e.First : e.First+e.Count] {
		msg := machine.Message{
			From: s.from, Mode: machine.ModeUnreliable, Channel: e.Channel, ID: -1, Type: m.Type, Bits: -1,
			Sequence: k.sequence, Sequence64: k.sequence64, Attempts: 1, At: k.at, BlockedBy: -1,
		}
		msg.Frames[0] = k.ref
		if m.Read {
			msg.Bits = m.End - m.Body
			if msg.Bits <= bodyMost*8 {
				msg.Body, msg.BodyBit = slices.Clone(payload[m.Body/8:(m.End+7)/8]), uint8(m.Body%8)
			}
			if config.CarriesBlock(m.Type) {
				msg.Block = m.BlockLen
				msg.Data = slices.Clone(payload[m.BlockOffset : m.BlockOffset+m.BlockLen])
			}
		}
		box.loose = append(box.loose, msg)
	}
}

// received takes it that the peer accepted a packet.
func (s *courier) received(e *machine.Event, out *machine.Effects) {
	box := s.parcel(e.Sequence)
	if box == nil {
		return
	}
	for _, r := range box.reliable {
		c := &s.lanes[r.channel]
		if l := c.find(r.id); r.fragment >= 0 && l != nil && l.block != nil {
			l.block.arrive(r.fragment, e.At)
		}
		c.arrive(r.id, e)
	}
	for _, r := range box.reliable {
		s.lanes[r.channel].deliver(e, out)
		s.lanes[r.channel].settle(out)
	}
	for i := range box.loose {
		m := &box.loose[i]
		if m.Delivered == machine.Yes {
			continue
		}
		m.Delivered, m.Deliveries, m.DeliveredAt, m.DeliveredBy, m.Certainty = machine.Yes, 1, e.At, e.About, e.Certainty
		out.Events = append(out.Events, machine.Event{
			Kind: machine.EventDelivered, Side: e.Side, Certainty: e.Certainty, Sequence: e.Sequence, Sequence64: e.Sequence64,
			At: e.At, Ref: e.Ref, About: e.About, RTT: -1,
		})
	}
}

// acked takes it that the side learned of a packet's arrival.
func (s *courier) acked(e *machine.Event, out *machine.Effects) {
	box := s.parcel(e.Sequence)
	if box == nil {
		return
	}
	for _, r := range box.reliable {
		c := &s.lanes[r.channel]
		if l := c.find(r.id); r.fragment >= 0 && l != nil && l.block != nil {
			l.block.ack(r.fragment)
		}
		c.ack(r.id, e)
		c.settle(out)
	}
	for i := range box.loose {
		if m := &box.loose[i]; m.Acked != machine.Yes {
			m.Acked, m.AckedAt, m.AckedBy = machine.Yes, e.At, e.By
		}
	}
}

// lost takes it that a packet can no longer be acked.
func (s *courier) lost(e *machine.Event, receiverNear bool) {
	box := s.parcel(e.Sequence)
	if box == nil {
		return
	}
	for i := range box.loose {
		m := &box.loose[i]
		m.Acked = machine.No
		if m.Delivered == machine.Unanswered {
			m.Delivered, m.Certainty = machine.No, machine.Likely
			if receiverNear {
				m.Certainty = machine.Certain
			}
		}
	}
}

// leave tells the unreliable messages of a packet that makes room.
func (s *courier) leave(box *parcel, out *machine.Effects) {
	out.Messages = append(out.Messages, box.loose...)
	clear(box.loose)
	box.loose = box.loose[:0]
}

func (s *courier) finish(out *machine.Effects) {
	for i := range s.lanes {
		s.lanes[i].finish(out)
	}
	for i := range s.parcels {
		s.leave(&s.parcels[i], out)
	}
}

func (s *courier) clone() courier {
	c := *s
	c.assembler = s.assembler.Clone()
	c.parcels = slices.Clone(s.parcels)
	for i := range c.parcels {
		c.parcels[i].reliable = slices.Clone(s.parcels[i].reliable)
		c.parcels[i].loose = slices.Clone(s.parcels[i].loose)
	}
	c.lanes = slices.Clone(s.lanes)
	for i := range c.lanes {
		c.lanes[i] = s.lanes[i].clone()
	}
	return c
}

func (s *courier) size() int {
	n := 200 + s.assembler.Size() + cap(s.parcels)*64
	for i := range s.parcels {
		n += cap(s.parcels[i].reliable)*24 + cap(s.parcels[i].loose)*360
	}
	for i := range s.lanes {
		n += s.lanes[i].size()
	}
	return n
}
