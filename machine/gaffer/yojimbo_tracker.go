package gaffer

import (
	"errors"
	"slices"

	"github.com/ackscope/ackscope/machine"
	base "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Opener decrypts the datagrams of one netcode flow. Ciphers are no business of
// a machine: who has the keys gives one.
type Opener interface {
	// Request takes a connection request; an error says why its token stays closed.
	Request(d *machine.Datagram) error
	// Open gives the plaintext of any other datagram, valid until the next call.
	// The error is ErrForged where the flow's key is known and does not open it.
	Open(d *machine.Datagram, pk *wire.Packet) ([]byte, error)
	Clone() Opener
}

// ErrForged says that the session's key does not open a datagram.
var ErrForged = errors.New("the session key does not open it: altered on the way, or of another session")

// Layers says how a decrypted flow is to be read. Connection is nil where the
// game's configuration is not known: the tracker then looks for it, with the
// messages that Known has, if it is not nil.
type Layers struct {
	Netcode    *wire.Profile
	Reliable   *wire.Profile
	Connection *wire.Yojimbo
	Known      *wire.Yojimbo
}

// Yojimbo tracks a netcode flow that can be decrypted, through its layers:
//
//	netcode    counters, handshake, replays     netcodeFlow
//	reliable   packets, acks, what arrived      Tracker
//	messages   ids, resends, order, blocks      lanes
//
// A message has arrived when the packet tracker says that a packet which
// carried it was accepted, and is acked when one was acked: yojimbo sends no
// other word about messages.
type Yojimbo struct {
	layers   Layers
	opener   Opener
	flow     netcodeFlow
	inner    *Tracker
	sides    [2]courier // by sender
	sample   *Sample    // connection packets for inference; nil where the configuration is known
	packet   wire.Packet
	inside   wire.Packet
	entry    wire.ConnectionPacket
	plain    machine.Datagram
	out      machine.Effects // of the packet tracker; its events feed the messages
	forged   uint64
	inferred *Inference // by an earlier run, where the configuration is not given
	closed   error      // why the flow's datagrams stay closed
}

// NewYojimboTracker makes the tracker of a flow whose keys are known, or may
// come to be with its connection request.
func NewYojimboTracker(l Layers, o Opener, facts machine.Facts) *Yojimbo {
	y := &Yojimbo{layers: l, opener: o, inner: newTracker(l.Reliable, RulesOf(l.Reliable), facts)}
	if i, ok := facts.Settings.(*Inference); ok && l.Connection == nil {
		y.inferred, y.layers.Connection = i, i.Config
	}
	if y.layers.Connection == nil {
		y.sample = &Sample{}
	}
	for i := range y.sides {
		y.sides[i].from = machine.Side(i)
	}
	return y
}

// carrier is a packet that carries messages, as it passed the tap.
type carrier struct {
	at         machine.Instant
	ref        machine.Ref
	sequence   uint32
	sequence64 int64
	near       bool // the tap is at its sender
	datagrams  int
}

// Observe takes the next datagram.
func (y *Yojimbo) Observe(d *machine.Datagram, out *machine.Effects) {
	pk := &y.packet
	if err := y.layers.Netcode.Parse(d.Bytes, d.Length, pk); err != nil {
		if !errors.Is(err, base.ErrSnapped) {
			report(out, malformedPacket, d.From, machine.Certain, d.At, d.Ref, 0, float64(d.Length))
		}
		return
	}
	if pk.NetcodeType == wire.NetcodeRequestType {
		if y.flow.observe(d, pk, 0, out) == netcodeAnew {
			out.NewSession = true
			return
		}
		if err := y.opener.Request(d); err != nil {
			y.closed = err
			if c := &y.flow.sides[d.From]; c.types[wire.NetcodeRequestType] == 1 {
				report(out, tokenClosed, d.From, machine.Certain, d.At, d.Ref, 0, 1)
			}
		} else {
			y.closed = nil
			y.sides[0].fresh, y.sides[1].fresh = true, true
		}
		return
	}
	plain, err := y.opener.Open(d, pk)
	if errors.Is(err, ErrForged) {
		y.forged++
		report(out, netcodeForged, d.From, machine.Certain, d.At, d.Ref, 0, float64(pk.NetcodeSequence))
		return
	}
	fate := y.flow.observe(d, pk, macOf(d), out)
	if err != nil {
		y.closed = err
		if fate == netcodeFresh && pk.NetcodeType == wire.NetcodePayload {
			out.Events = append(out.Events, machine.Event{
				Kind: machine.EventSent, Side: d.From, Certainty: machine.Certain, Sequence: uint32(pk.NetcodeSequence), Sequence64: int64(pk.NetcodeSequence),
				At: d.At, Ref: d.Ref, About: d.Ref, RTT: -1,
			})
		}
		return
	}
	if pk.NetcodeType == wire.NetcodePayload && fate == netcodeFresh {
		y.payload(d, plain, out)
	}
}

// payload takes what netcode carried: a packet of reliable.
func (y *Yojimbo) payload(d *machine.Datagram, plain []byte, out *machine.Effects) {
	y.plain = machine.Datagram{At: d.At, Ref: d.Ref, From: d.From, Bytes: plain, Length: len(plain)}
	y.out.Reset()
	y.inner.Observe(&y.plain, &y.out)
	if y.out.NewSession {
		out.NewSession = true
		return
	}
	y.pass(out)
	if err := y.layers.Reliable.Parse(plain, len(plain), &y.inside); err != nil {
		return // the packet tracker told it
	}
	s := &y.sides[d.From]
	s.count(&y.inside)
	payload, whole := s.assembler.Add(&y.inside, plain[y.inside.PayloadOffset:])
	if !whole {
		return
	}
	k := carrier{at: d.At, ref: d.Ref, sequence: y.inside.Sequence, sequence64: s.unwrap(y.inside.Sequence), near: y.near(d.From), datagrams: max(y.inside.FragmentCount, 1)}
	if y.sample != nil {
		y.sample.Add(d.From, k.sequence64, payload)
		return
	}
	err := y.layers.Connection.Parse(payload, &y.entry)
	if err != nil && !errors.Is(err, wire.ErrOpaque) {
		report(out, malformedConnection, d.From, machine.Certain, d.At, d.Ref, 0, float64(len(payload)))
		return
	}
	s.carry(y.layers.Connection, &k, &y.entry, payload, y.flow.sides[d.From].missing() == 0, out)
}

// pass hands on what the packet tracker found, and takes it to the messages.
func (y *Yojimbo) pass(out *machine.Effects) {
	out.Anomalies = append(out.Anomalies, y.out.Anomalies...)
	for i := range y.out.Events {
		if !out.NoEvents {
			out.Events = append(out.Events, y.out.Events[i])
		}
		y.settle(&y.out.Events[i], out)
	}
}

// settle takes an event of the packet tracker to the messages.
func (y *Yojimbo) settle(e *machine.Event, out *machine.Effects) {
	if y.sample != nil {
		return
	}
	switch e.Kind {
	case machine.EventReceived:
		y.sides[e.Side.Other()].received(e, out)
	case machine.EventAcked:
		y.sides[e.Side].acked(e, out)
	case machine.EventLost:
		y.sides[e.Side].lost(e, y.near(e.Side.Other()))
	default:
	}
}

// Finish settles what is still open.
func (y *Yojimbo) Finish(out *machine.Effects) {
	y.out.Reset()
	if y.flow.ended {
		y.inner.hangUp(&y.out)
	}
	y.inner.Finish(&y.out)
	y.pass(out)
	for i := range y.sides {
		y.sides[i].finish(out)
	}
	y.flow.finish(out)
}

// hangUp ends a connection: what a side at the tap is not proved to have read by
// then, it most likely never read, since what is queued is thrown away.
func (t *Tracker) hangUp(out *machine.Effects) {
	if t.sides == nil {
		v, reason, _ := judgeVantage(t.rules, t.held)
		t.release(v, reason, out)
	}
	for i := range t.sides {
		t.sides[i].queue = queue{}
	}
}

// near reports whether the tap is known to be at a side.
func (y *Yojimbo) near(x machine.Side) bool { return y.inner.sides != nil && y.inner.sides[x].near }

// packets reports whether any packet of reliable was seen.
func (y *Yojimbo) packets() bool {
	return len(y.inner.held) > 0 || y.inner.sides != nil && (y.inner.sides[0].met || y.inner.sides[1].met)
}

// Summary gives the packets' figures; where nothing could be decrypted, netcode's.
func (y *Yojimbo) Summary(x machine.Side) machine.Summary {
	if !y.packets() {
		return y.flow.summary(x)
	}
	return y.inner.Summary(x)
}

// Learned gives what a second run over the same flow can start with: the
// configuration among it, where it had to be found.
func (y *Yojimbo) Learned() machine.Facts {
	f := y.inner.Learned()
	switch {
	case y.sample != nil:
		if i := y.infer(); i != nil {
			f.Settings = i
		}
	case y.inferred != nil:
		f.Settings = y.inferred
	}
	return f
}

func (y *Yojimbo) infer() *Inference {
	if y.layers.Known != nil {
		return y.sample.InferWith(y.layers.Known)
	}
	return y.sample.Infer()
}

// Clone gives an independent copy.
func (y *Yojimbo) Clone() machine.Tracker {
	c := *y
	c.opener, c.flow = y.opener.Clone(), y.flow.clone()
	inner, ok := y.inner.Clone().(*Tracker)
	if ok {
		c.inner = inner
	}
	c.entry, c.out = wire.ConnectionPacket{}, machine.Effects{}
	if y.sample != nil {
		c.sample = y.sample.clone()
	}
	for i := range c.sides {
		c.sides[i] = y.sides[i].clone()
	}
	return &c
}

// Size gives the bytes that a clone takes, about.
func (y *Yojimbo) Size() int {
	n := y.inner.Size() + y.flow.size()
	for i := range y.sides {
		n += y.sides[i].size()
	}
	if y.sample != nil {
		n += y.sample.bytes
	}
	return n
}

// Closed says why the flow's datagrams could not be decrypted; nil where they were.
func (y *Yojimbo) Closed() error { return y.closed }

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
			report(out, blockSplit, s.from, machine.Certain, k.at, k.ref, 0, float64(k.datagrams), float64(len(payload)))
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
		report(out, malformedConnection, c.from, machine.Certain, k.at, k.ref, l.frames[0], float64(len(payload)))
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
