package messages

import (
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Direction is what one side sends: its packets and what they carried.
type Direction struct {
	From      machine.Side
	Fresh     bool
	Assembler Assembler
	met       bool
	top       uint32
	top64     int64
	Contents  []Contents // by sequence mod len
	Lanes     []Lane     // by channel; for unreliable channels only the channel is used

	near     bool // the tap is at the side, as its newest packet shows
	doubtful bool // an earlier packet of the side contradicts the configuration

	split      uint64 // packets with a block fragment that travelled as several datagrams
	fragmented uint64
}

// ContentsMost is how many packets a Direction remembers, each with the messages it
// carried. yojimbo's own sentPacketBuffer holds as many.
// Source: library, yojimbo 1.9.1: ChannelConfig sentPacketBufferSize
const ContentsMost = 1024

// Contents is what one packet carried.
type Contents struct {
	Sequence   uint32
	Live       bool
	Reliable   []carriedMessage
	unreliable []machine.Message // messages of unreliable channels
	whole      machine.Instant   // when the last datagram of the packet passed the tap
}

// Begin makes c the contents of another packet. It has none yet.
func (c *Contents) Begin(k *Carrier) {
	*c = Contents{
		Sequence: k.Sequence, Live: true, Reliable: c.Reliable[:0], unreliable: c.unreliable[:0], whole: k.At,
	}
}

// carriedMessage is one reliable message, or a fragment of one, in a packet.
type carriedMessage struct {
	channel  int
	id       int64
	fragment int // -1: the whole message
}

// Figures adds the reliable messages of the side to its Summary.
func (s *Direction) Figures(sum *machine.Summary) {
	for i := range s.Lanes {
		sum.Messages += s.Lanes[i].distinct
		sum.Repeated += s.Lanes[i].repeated
	}
}

// Count updates the newest sequence of the side, from which Unwrap counts.
func (s *Direction) Count(pk *wire.Packet) {
	if !s.met {
		s.met, s.top, s.top64 = true, pk.Sequence, int64(pk.Sequence)
		return
	}
	if ahead := int16(pk.Sequence - s.top); ahead > 0 {
		s.top, s.top64 = pk.Sequence, s.top64+int64(ahead)
	}
}

// Unwrap returns the unwrapped number of a sequence of the side.
func (s *Direction) Unwrap(sequence uint32) int64 { return s.top64 + int64(int16(sequence-s.top)) }

// contentsOf returns the contents of a packet. It returns nil if the packet was never
// seen whole, or too many have come since.
func (s *Direction) contentsOf(sequence uint32) *Contents {
	if len(s.Contents) == 0 {
		return nil
	}
	if p := &s.Contents[sequence%ContentsMost]; p.Live && p.Sequence == sequence {
		return p
	}
	return nil
}

// Carry records what a packet carries.
func (s *Direction) Carry(config *wire.Yojimbo, k *Carrier, p *wire.ConnectionPacket, gapless bool,
	out *machine.Effects,
) {
	if s.Contents == nil {
		s.Contents = make([]Contents, ContentsMost)
		s.Lanes = make([]Lane, len(config.Channels))
		for i := range s.Lanes {
			s.Lanes[i] = Lane{
				Channel: i, From: s.From, Config: &config.Channels[i], Fresh: s.Fresh, Copies: copiesWithin,
				Doubtful: s.doubtful || config.Channels[i].Doubtful,
			}
		}
	}
	contents := &s.Contents[k.Sequence%ContentsMost]
	if contents.Live && contents.Sequence == k.Sequence {
		return // a copy
	}
	s.reportUnreliable(contents, out)
	contents.Begin(k)
	s.near = k.Near
	s.doubtUnread(config, p)
	blocks, sure := false, machine.Certain
	for i := range p.Entries {
		e := &p.Entries[i]
		if config.Channels[e.Channel].Type != wire.ReliableOrdered {
			s.carryUnreliable(config, contents, e, k, p)
			continue
		}
		c := &s.Lanes[e.Channel]
		if e.Block {
			blocks, sure = true, c.atMost(sure)
			c.fragment(config, contents, &e.Fragment, k, out)
			continue
		}
		for _, m := range p.Messages[e.First : e.First+e.Count] {
			id := c.Unwrap(m.ID)
			l := c.carry(id, k, out)
			if l == nil {
				continue
			}
			if config.Typed(m.Body) {
				l.content.takeType(m.Type)
			}
			if m.Read {
				l.content.take(k.Payload, m.Body, m.End)
			}
			contents.Reliable = append(contents.Reliable, carriedMessage{e.Channel, id, -1})
		}
		if e.Count > 0 {
			c.Watch(k, gapless, out)
		}
	}
	if blocks {
		s.fragmented++
		if k.Datagrams > 1 {
			s.split++
			out.At(k.At, k.Ref).Report(BlockSplit, s.From, sure, 0, float64(k.Datagrams), float64(len(k.Payload)))
		}
	}
}

// Doubt records that the packets contradict the configuration. From now on, what is found of
// the side's messages is at most likely.
func (s *Direction) Doubt() {
	s.doubtful = true
	for i := range s.Lanes {
		s.Lanes[i].Doubtful = true
	}
}

// doubtUnread doubts the reliable channels that may have an entry behind the last one that was
// read. A packet has its entries in the order of their channels.
func (s *Direction) doubtUnread(config *wire.Yojimbo, p *wire.ConnectionPacket) {
	if p.Unread == 0 {
		return
	}
	for i := p.Entries[len(p.Entries)-1].Channel + 1; i < len(s.Lanes); i++ {
		if config.Channels[i].Type == wire.ReliableOrdered {
			s.Lanes[i].Doubtful = true
		}
	}
}

// takeType stores a message's type.
func (c *content) takeType(kind uint32) {
	if !c.typed {
		c.typed, c.kind = true, kind
	}
}

// take stores a message's body: bits from to to of a payload.
func (c *content) take(payload []byte, from, to int) {
	if c.read {
		return
	}
	c.read, c.bits = true, to-from
	if c.bits <= bodyMost*8 {
		c.body, c.bodyBit = slices.Clone(payload[from/8:(to+7)/8]), uint8(from%8)
	}
}

// fragment records a block fragment.
func (c *Lane) fragment(config *wire.Yojimbo, contents *Contents, f *wire.BlockFragment, k *Carrier,
	out *machine.Effects,
) {
	id := c.Unwrap(f.ID)
	l := c.carry(id, k, out)
	if l == nil {
		return
	}
	if l.block == nil {
		l.block = &transfer{parts: make([]part, f.Count), came: none}
	}
	if len(l.block.parts) != f.Count {
		out.At(k.At, k.Ref).Report(MalformedConnection, c.From, c.atMost(machine.Certain), l.sends.frames[0],
			float64(len(k.Payload)))
		return
	}
	before := l.block.resends
	l.block.carry(f.Index, k.Payload[f.Offset:f.Offset+f.Size], k)
	if before == 0 && l.block.resends > 0 {
		c.repeated++
	}
	if config.Typed(f.Body) {
		l.content.takeType(f.Type)
	}
	if f.Read {
		l.content.take(k.Payload, f.Body, f.End)
	}
	contents.Reliable = append(contents.Reliable, carriedMessage{c.Channel, id, f.Index})
}

// carryUnreliable records the messages of an unreliable channel. They share the fate of
// their packet.
func (s *Direction) carryUnreliable(config *wire.Yojimbo, contents *Contents, e *wire.ChannelEntry, k *Carrier,
	p *wire.ConnectionPacket,
) {
	for _, m := range p.Messages[e.First : e.First+e.Count] {
		msg := machine.Message{
			From: s.From, Mode: machine.ModeUnreliable, Channel: e.Channel, ID: -1, Bits: -1,
			Type: m.Type, Untyped: !config.Typed(m.Body),
			Sequence: k.Sequence, Sequence64: k.Sequence64, Attempts: 1, At: k.At, BlockedBy: -1,
			Sent: k.sent(),
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
		contents.unreliable = append(contents.unreliable, msg)
	}
}

// Settle reports what is settled by now, in every channel.
func (s *Direction) Settle(now machine.Instant, out *machine.Effects) {
	for i := range s.Lanes {
		s.Lanes[i].Settle(now, out)
	}
}

// Received records that the peer accepted a packet, and r when. The tap knows it by now.
func (s *Direction) Received(e *machine.Event, r Receipt, now machine.Instant, out *machine.Effects) {
	contents := s.contentsOf(e.Sequence)
	if contents == nil {
		return
	}
	for _, m := range contents.Reliable {
		c := &s.Lanes[m.channel]
		if l := c.find(m.id); m.fragment >= 0 && l != nil && l.block != nil {
			l.block.arrive(m.fragment, e, r, contents.whole)
		}
		c.arrive(m.id, e, r, contents.whole)
	}
	for _, m := range contents.Reliable {
		s.Lanes[m.channel].deliver(e, out)
		s.Lanes[m.channel].Settle(now, out)
	}
	for i := range contents.unreliable {
		m := &contents.unreliable[i]
		if m.Delivered == machine.Yes {
			continue
		}
		sure := s.Lanes[m.Channel].atMost(e.Certainty)
		m.Delivered, m.Deliveries, m.DeliveredAt, m.DeliveredBy, m.Certainty = machine.Yes, 1, e.At, e.About, sure
		came := r.of(e, e.Sequence, contents.whole, contents.whole)
		m.Arrived, m.Estimate = shown(came.Read, sure), shown(came.Estimate, sure)
		m.InOrder = m.Arrived
		out.Events = append(out.Events, machine.Event{
			Kind: machine.EventDelivered, Side: e.Side, Certainty: sure, Sequence: e.Sequence, Sequence64: e.Sequence64,
			At: e.At, Ref: e.Ref, About: e.About, RTT: -1,
		})
	}
}

// Acked records that the side learned of a packet's arrival. The tap knows it by now.
func (s *Direction) Acked(e *machine.Event, now machine.Instant, out *machine.Effects) {
	contents := s.contentsOf(e.Sequence)
	if contents == nil {
		return
	}
	for _, r := range contents.Reliable {
		c := &s.Lanes[r.channel]
		if l := c.find(r.id); r.fragment >= 0 && l != nil && l.block != nil {
			l.block.ack(r.fragment)
		}
		c.Ack(r.id, e, now)
		c.Settle(now, out)
	}
	for i := range contents.unreliable {
		if m := &contents.unreliable[i]; m.Acked != machine.Yes {
			m.Acked, m.AckedAt, m.AckedBy = machine.Yes, e.At, e.By
		}
	}
}

// Lost records that a packet can no longer be acked.
func (s *Direction) Lost(e *machine.Event, receiverNear bool) {
	contents := s.contentsOf(e.Sequence)
	if contents == nil {
		return
	}
	for i := range contents.unreliable {
		m := &contents.unreliable[i]
		m.Acked = machine.No
		if m.Delivered == machine.Unanswered {
			m.Delivered, m.Certainty = machine.No, machine.Likely
			if receiverNear {
				m.Certainty = s.Lanes[m.Channel].atMost(machine.Certain)
			}
		}
	}
}

// reportUnreliable reports the unreliable messages of a packet whose entry is reused.
func (s *Direction) reportUnreliable(contents *Contents, out *machine.Effects) {
	for i := range contents.unreliable {
		if m := &contents.unreliable[i]; s.near && !m.Sent.Known() {
			m.Sent = machine.At(m.At, machine.Certain) // the tap had not been placed yet
		}
	}
	out.Messages = append(out.Messages, contents.unreliable...)
	clear(contents.unreliable)
	contents.unreliable = contents.unreliable[:0]
}

// Finish reports what is open when the capture ends.
func (s *Direction) Finish(out *machine.Effects) {
	for i := range s.Lanes {
		s.Lanes[i].Finish(out)
	}
	for i := range s.Contents {
		s.reportUnreliable(&s.Contents[i], out)
	}
}

// Clone returns an independent copy.
func (s *Direction) Clone() Direction {
	c := *s
	c.Assembler = s.Assembler.Clone()
	c.Contents = slices.Clone(s.Contents)
	for i := range c.Contents {
		c.Contents[i].Reliable = slices.Clone(s.Contents[i].Reliable)
		c.Contents[i].unreliable = slices.Clone(s.Contents[i].unreliable)
	}
	c.Lanes = slices.Clone(s.Lanes)
	for i := range c.Lanes {
		c.Lanes[i] = s.Lanes[i].clone()
	}
	return c
}

// Size returns the approximate memory, in bytes.
func (s *Direction) Size() int {
	n := 200 + s.Assembler.Size() + cap(s.Contents)*64
	for i := range s.Contents {
		n += cap(s.Contents[i].Reliable)*24 + cap(s.Contents[i].unreliable)*464
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
	Supposed   bool // Near rests on comparison alone: the tap may stand some way off
	// Missing is how many packets of its sender have not passed the tap, of all up to now. It is
	// -1 if that is unknown.
	Missing int64
	// Begun says that the sender's packet 0 has passed the tap, so Missing counts from the start.
	Begun bool
	// After is when the newest packet passed the tap that the sender had read before it sent
	// this one. The sender had sent none of it before then. It is a span of certainty Unknown
	// where the capture does not say, and where Near is set.
	After     machine.Span
	Datagrams int
	Length    int    // bytes of the datagram, or of the packet that its fragments make up
	Payload   []byte // it contains the messages
	// Tick is the sender's frame time, 0 if unknown. It is used where Near is not set.
	Tick time.Duration
}
