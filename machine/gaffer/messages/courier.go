package messages

import (
	"slices"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Courier is what one side sends: its packets and what they carried.
type Courier struct {
	From      machine.Side
	Fresh     bool
	Assembler Assembler
	met       bool
	top       uint32
	top64     int64
	Parcels   []Parcel // by sequence mod len
	Lanes     []Lane   // by channel; of unreliable ones only the channel is used

	split      uint64 // packets with a block fragment that travelled as several datagrams
	fragmented uint64
}

const ParcelsMost = 1024 // packets of which it is remembered what they carried: yojimbo's own sentPacketBuffer

// Parcel is what one packet carried.
type Parcel struct {
	Sequence uint32
	Live     bool
	Reliable []errand
	loose    []machine.Message // unreliable ones
}

// errand is one reliable message, or a fragment of one, in a packet.
type errand struct {
	channel  int
	id       int64
	fragment int // -1: the message whole
}

// Count keeps the side's numbers unwrapped.
func (s *Courier) Count(pk *wire.Packet) {
	if !s.met {
		s.met, s.top, s.top64 = true, pk.Sequence, int64(pk.Sequence)
		return
	}
	if ahead := int16(pk.Sequence - s.top); ahead > 0 {
		s.top, s.top64 = pk.Sequence, s.top64+int64(ahead)
	}
}

// Unwrap returns the unwrapped number of a sequence of the side.
func (s *Courier) Unwrap(sequence uint32) int64 { return s.top64 + int64(int16(sequence-s.top)) }

// parcel returns the entry of a packet, nil where it was never seen whole.
func (s *Courier) parcel(sequence uint32) *Parcel {
	if len(s.Parcels) == 0 {
		return nil
	}
	if p := &s.Parcels[sequence%ParcelsMost]; p.Live && p.Sequence == sequence {
		return p
	}
	return nil
}

// Carry enters what a packet carries.
func (s *Courier) Carry(config *wire.Yojimbo, k *Carrier, p *wire.ConnectionPacket, gapless bool,
	out *machine.Effects) {
	if s.Parcels == nil {
		s.Parcels = make([]Parcel, ParcelsMost)
		s.Lanes = make([]Lane, len(config.Channels))
		for i := range s.Lanes {
			s.Lanes[i] = Lane{Channel: i, From: s.From, Config: &config.Channels[i], Fresh: s.Fresh}
		}
	}
	box := &s.Parcels[k.Sequence%ParcelsMost]
	if box.Live && box.Sequence == k.Sequence {
		return // a copy
	}
	s.leave(box, out)
	*box = Parcel{Sequence: k.Sequence, Live: true, Reliable: box.Reliable[:0], loose: box.loose[:0]}
	blocks := false
	for i := range p.Entries {
		e := &p.Entries[i]
		if config.Channels[e.Channel].Type != wire.ReliableOrdered {
			s.loose(config, box, e, k, p)
			continue
		}
		c := &s.Lanes[e.Channel]
		if e.Block {
			blocks = true
			c.fragment(box, &e.Fragment, k, out)
			continue
		}
		for _, m := range p.Messages[e.First : e.First+e.Count] {
			id := c.Unwrap(m.ID)
			l := c.carry(id, k, out)
			if l == nil {
				continue
			}
			if m.Read {
				l.content.take(m.Type, k.Payload, m.Body, m.End)
			}
			box.Reliable = append(box.Reliable, errand{e.Channel, id, -1})
		}
		if e.Count > 0 {
			c.Watch(k, gapless, out)
		}
	}
	if blocks {
		s.fragmented++
		if k.Datagrams > 1 {
			s.split++
			out.At(k.At, k.Ref).Report(BlockSplit, s.From, machine.Certain, 0, float64(k.Datagrams), float64(len(k.Payload)))
		}
	}
}

// take notes a message's type and body, which lies in a payload at these bits.
func (c *content) take(kind uint32, payload []byte, from, to int) {
	if c.read {
		return
	}
	c.read, c.kind, c.bits = true, kind, to-from
	if c.bits <= bodyMost*8 {
		c.body, c.bodyBit = slices.Clone(payload[from/8:(to+7)/8]), uint8(from%8)
	}
}

// fragment enters a block fragment.
func (c *Lane) fragment(box *Parcel, f *wire.BlockFragment, k *Carrier, out *machine.Effects) {
	id := c.Unwrap(f.ID)
	l := c.carry(id, k, out)
	if l == nil {
		return
	}
	if l.block == nil {
		l.block = &transfer{parts: make([]part, f.Count)}
	}
	if len(l.block.parts) != f.Count {
		out.At(k.At, k.Ref).Report(MalformedConnection, c.From, machine.Certain, l.sends.frames[0], float64(len(k.Payload)))
		return
	}
	l.block.carry(f.Index, k.Payload[f.Offset:f.Offset+f.Size], k)
	if f.Read {
		l.content.take(f.Type, k.Payload, f.Body, f.End)
	}
	box.Reliable = append(box.Reliable, errand{c.Channel, id, f.Index})
}

// loose enters the messages of an unreliable channel: they live and die with
// their packet.
func (s *Courier) loose(config *wire.Yojimbo, box *Parcel, e *wire.ChannelEntry, k *Carrier, p *wire.ConnectionPacket) {
	for _, m := range p.Messages[e.First : e.First+e.Count] {
		msg := machine.Message{
			From: s.From, Mode: machine.ModeUnreliable, Channel: e.Channel, ID: -1, Type: m.Type, Bits: -1,
			Sequence: k.Sequence, Sequence64: k.Sequence64, Attempts: 1, At: k.At, BlockedBy: -1,
		}
		msg.Frames[0] = k.Ref
		if m.Read {
			msg.Bits = m.End - m.Body
			if msg.Bits <= bodyMost*8 {
				msg.Body, msg.BodyBit = slices.Clone(k.Payload[m.Body/8:(m.End+7)/8]), uint8(m.Body%8)
			}
			if config.CarriesBlock(m.Type) {
				msg.Block = m.BlockLen
				msg.Data = slices.Clone(k.Payload[m.BlockOffset : m.BlockOffset+m.BlockLen])
			}
		}
		box.loose = append(box.loose, msg)
	}
}

// Received takes it that the peer accepted a packet.
func (s *Courier) Received(e *machine.Event, out *machine.Effects) {
	box := s.parcel(e.Sequence)
	if box == nil {
		return
	}
	for _, r := range box.Reliable {
		c := &s.Lanes[r.channel]
		if l := c.find(r.id); r.fragment >= 0 && l != nil && l.block != nil {
			l.block.arrive(r.fragment, e.At)
		}
		c.arrive(r.id, e)
	}
	for _, r := range box.Reliable {
		s.Lanes[r.channel].deliver(e, out)
		s.Lanes[r.channel].Settle(out)
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

// Acked takes it that the side learned of a packet's arrival.
func (s *Courier) Acked(e *machine.Event, out *machine.Effects) {
	box := s.parcel(e.Sequence)
	if box == nil {
		return
	}
	for _, r := range box.Reliable {
		c := &s.Lanes[r.channel]
		if l := c.find(r.id); r.fragment >= 0 && l != nil && l.block != nil {
			l.block.ack(r.fragment)
		}
		c.Ack(r.id, e)
		c.Settle(out)
	}
	for i := range box.loose {
		if m := &box.loose[i]; m.Acked != machine.Yes {
			m.Acked, m.AckedAt, m.AckedBy = machine.Yes, e.At, e.By
		}
	}
}

// Lost takes it that a packet can no longer be acked.
func (s *Courier) Lost(e *machine.Event, receiverNear bool) {
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
func (s *Courier) leave(box *Parcel, out *machine.Effects) {
	out.Messages = append(out.Messages, box.loose...)
	clear(box.loose)
	box.loose = box.loose[:0]
}

// Finish settles what is open when the capture ends.
func (s *Courier) Finish(out *machine.Effects) {
	for i := range s.Lanes {
		s.Lanes[i].Finish(out)
	}
	for i := range s.Parcels {
		s.leave(&s.Parcels[i], out)
	}
}

// Clone returns an independent copy.
func (s *Courier) Clone() Courier {
	c := *s
	c.Assembler = s.Assembler.Clone()
	c.Parcels = slices.Clone(s.Parcels)
	for i := range c.Parcels {
		c.Parcels[i].Reliable = slices.Clone(s.Parcels[i].Reliable)
		c.Parcels[i].loose = slices.Clone(s.Parcels[i].loose)
	}
	c.Lanes = slices.Clone(s.Lanes)
	for i := range c.Lanes {
		c.Lanes[i] = s.Lanes[i].clone()
	}
	return c
}

// Size returns the bytes of memory that it takes, about.
func (s *Courier) Size() int {
	n := 200 + s.Assembler.Size() + cap(s.Parcels)*64
	for i := range s.Parcels {
		n += cap(s.Parcels[i].Reliable)*24 + cap(s.Parcels[i].loose)*360
	}
	for i := range s.Lanes {
		n += s.Lanes[i].size()
	}
	return n
}

// Carrier is a packet that carries messages, as it passed the tap.
type Carrier struct {
	At         machine.Instant
	Ref        machine.Ref
	Sequence   uint32
	Sequence64 int64
	Near       bool // the tap is at its sender
	Datagrams  int
	Payload    []byte // in which its messages lie
}
