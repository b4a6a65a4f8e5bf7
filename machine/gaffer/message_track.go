package gaffer

import (
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Conversation follows a flow whose packets carry the article's message
// section: the packets by a Tracker, and by what it finds out the life of every
// message.
//
//	packet of A passes the tap      its messages are carried once more
//	B is found to have received it  they have arrived: what is in order is delivered
//	A is found to have read an ack  they are settled (simple scheme: by the message ack
//	                                in a packet that A is found to have received)
//
// So a message's facts are as certain as those of the packets that bore it.
type Conversation struct {
	inner   *Tracker
	section *wire.MessageSection
	config  wire.YojimboChannel // the queues, as a lane takes them
	sides   [2]courier
	acks    [2][]messageAck // simple scheme: by the sequence of the side's packet that carried it
	packet  wire.Packet
}

// messageAck is the message ack of one packet, in the simple scheme.
type messageAck struct {
	sequence uint32
	id       uint16
	live     bool
}

// startWithin is how far from zero the first numbers seen of a flow may lie for
// its message ids to have begun at zero within the capture.
const startWithin = 64

// NewConversation gives the tracker of a flow by a profile with a message section.
func NewConversation(p *wire.Profile, facts machine.Facts) *Conversation {
	c := &Conversation{inner: newTracker(p, RulesOf(p), facts), section: &p.Messages}
	c.config = wire.YojimboChannel{SendQueue: p.Messages.SendQueue, ReceiveQueue: p.Messages.ReceiveQueue}
	if p.Messages.Form == wire.MessagesSimple {
		c.config.ReceiveQueue = 0 // the scheme keeps nothing that is not in order
	}
	// Where nothing is said of a queue, nothing is held to be beyond it.
	for _, n := range []*int{&c.config.SendQueue, &c.config.ReceiveQueue} {
		if *n == 0 {
			*n = 1 << (wire.MessageIDBits - 1)
		}
	}
	for i := range c.sides {
		c.sides[i].from = machine.Side(i)
	}
	return c
}

// Observe takes the next datagram.
func (c *Conversation) Observe(d *machine.Datagram, out *machine.Effects) {
	// Messages live by the packets' events, wanted or not.
	quiet, told := out.NoEvents, len(out.Events)
	out.NoEvents = false
	defer func() {
		if out.NoEvents = quiet; quiet {
			out.Events = out.Events[:told]
		}
	}()
	p := &c.packet
	err := c.inner.profile.Parse(d.Bytes, d.Length, p)
	if err == nil && p.Kind <= wire.KindFragment {
		c.start(d.From, p)
	}
	c.inner.Observe(d, out)
	if out.NewSession {
		return
	}
	c.settle(told, out)
	if err != nil || p.Kind > wire.KindFragment || p.PayloadOffset > len(d.Bytes) || d.Length > len(d.Bytes) {
		return // what the packet carried, the capture does not have
	}
	s := &c.sides[d.From]
	s.count(p)
	payload, whole := s.assembler.Add(p, d.Bytes[p.PayloadOffset:min(p.PayloadOffset+p.PayloadLen, len(d.Bytes))])
	if !whole {
		return
	}
	k := carrier{at: d.At, ref: d.Ref, sequence: p.Sequence, sequence64: s.unwrap(p.Sequence), near: c.near(d.From), datagrams: max(p.FragmentCount, 1)}
	c.carry(s, &k, payload, out)
}

func (c *Conversation) near(x machine.Side) bool {
	return c.inner.sides != nil && c.inner.sides[x].near
}

// start looks at a side's first packet: whether the flow was captured from its
// beginning.
func (c *Conversation) start(x machine.Side, p *wire.Packet) {
	s, r := &c.sides[x], c.inner.rules
	if s.parcels != nil || !p.HasHeader {
		return
	}
	acked := (p.Header.Ack + 1) & r.mask() // 0: nothing yet
	s.fresh = p.Sequence < startWithin && acked < startWithin
	s.parcels = make([]parcel, parcelsMost)
	s.lanes = []lane{{channel: -1, from: x, config: &c.config, fresh: s.fresh}}
	if c.section.Form == wire.MessagesSimple {
		c.acks[x] = make([]messageAck, parcelsMost)
	}
}

// carry enters what a packet carries.
func (c *Conversation) carry(s *courier, k *carrier, payload []byte, out *machine.Effects) {
	if s.parcels == nil {
		return // no header of the side was seen yet: a fragment that is not its packet's first
	}
	box := &s.parcels[k.sequence%parcelsMost]
	if box.live && box.sequence == k.sequence {
		return // a copy
	}
	*box = parcel{sequence: k.sequence, live: true, reliable: box.reliable[:0]}
	section, err := c.section.Open(payload, 0)
	if err != nil {
		c.malformed(s, k, payload, out)
		return
	}
	l := &s.lanes[0]
	if c.section.Form == wire.MessagesSimple {
		c.acks[s.from][k.sequence%parcelsMost] = messageAck{k.sequence, section.Ack, true}
	}
	var m wire.Message
	n := 0
	for ; section.Next(&m); n++ {
		l.takes(m.ID, &m, k, c.section.Form, payload, box, out)
	}
	if c.section.Form == wire.MessagesSimple {
		// Without a schema the ids are known all the same: they follow each other.
		for ; n < section.Count; n++ {
			l.takes(section.Start+uint16(n), nil, k, c.section.Form, payload, box, out)
		}
	}
	if section.Err() != nil {
		c.malformed(s, k, payload, out)
	} else if section.Count > 0 && c.gapless(s.from) {
		l.watch(k, true, out)
	}
}

// gapless reports whether every packet of a side has passed the tap: else an id
// that none of them carries may have been in one that was lost.
func (c *Conversation) gapless(x machine.Side) bool {
	if c.inner.sides == nil {
		return false
	}
	s := &c.inner.sides[x]
	return s.near || s.met && s.distinct == uint64(s.top64-s.first64+1)
}

func (c *Conversation) malformed(s *courier, k *carrier, payload []byte, out *machine.Effects) {
	out.Report(malformedMessages, s.from, machine.Certain, k.at, k.ref, 0, float64(len(payload)))
}

// takes enters that a packet carries one message; m is nil where no more is
// known of it than its id.
func (c *lane) takes(wireID uint16, m *wire.Message, k *carrier, form wire.MessageForm, payload []byte, box *parcel, out *machine.Effects) {
	id := c.unwrap(wireID)
	if c.started && form == wire.MessagesByID {
		c.judge(id, k, out)
	}
	l := c.carry(id, k, out)
	if l == nil {
		return
	}
	if m != nil && m.End >= 0 && !l.named {
		l.name(m.Type, payload, m.Body, m.End)
	}
	box.reliable = append(box.reliable, errand{0, id, -1})
}

// judge holds what a sender puts into a packet against the article's two rules
// of sending: not beyond what the receiver can buffer, and not before the
// resend time has passed. Only at the tap is it exact.
func (c *lane) judge(id int64, k *carrier, out *machine.Effects) {
	if l := c.find(id); l != nil && l.attempts > 0 && k.near {
		if gap := k.at.Sub(l.lastAt); gap < resendLeast-tapJitter {
			out.Report(messageResentEarly, c.from, machine.Likely, k.at, k.ref, l.lastRef, machine.Milliseconds(gap), float64(id))
		}
		return
	}
	if id <= c.top {
		return
	}
	oldest := id
	for i := range c.lives {
		if l := &c.lives[i]; l.attempts > 0 && !l.acked {
			oldest = l.id
			break
		}
	}
	if beyond := id - oldest - int64(c.config.ReceiveQueue); beyond >= 0 {
		sure := machine.Likely // it may know of acks that the capture does not show
		if k.near {
			sure = machine.Certain
		}
		out.Report(messageBeyond, c.from, sure, k.at, k.ref, 0, float64(beyond+1), float64(id), float64(oldest))
	}
}

// settle takes the packet tracker's new events to the messages.
func (c *Conversation) settle(from int, out *machine.Effects) {
	for i := from; i < len(out.Events); i++ {
		e := out.Events[i]
		switch e.Kind {
		case machine.EventReceived:
			c.sides[e.Side.Other()].received(&e, out)
			c.readAck(&e, out)
		case machine.EventAcked:
			if c.section.Form == wire.MessagesByID {
				c.sides[e.Side].acked(&e, out)
			}
		default:
		}
	}
}

// readAck takes the message ack that a side has read, in the simple scheme.
func (c *Conversation) readAck(e *machine.Event, out *machine.Effects) {
	acks := c.acks[e.Side.Other()]
	if len(acks) == 0 || len(c.sides[e.Side].lanes) == 0 {
		return
	}
	a := acks[e.Sequence%parcelsMost]
	l := &c.sides[e.Side].lanes[0]
	if !a.live || a.sequence != e.Sequence || !l.started {
		return
	}
	by := *e
	by.By = e.About
	last := l.unwrap(a.id)
	for id := l.base; id <= last && id <= l.top; id++ {
		l.ack(id, &by)
	}
	l.settle(out)
}

// Finish settles what is still open.
func (c *Conversation) Finish(out *machine.Effects) {
	quiet, told := out.NoEvents, len(out.Events)
	out.NoEvents = false
	c.inner.Finish(out)
	c.settle(told, out)
	for i := range c.sides {
		for j := range c.sides[i].lanes {
			c.sides[i].lanes[j].finish(out)
		}
	}
	if out.NoEvents = quiet; quiet {
		out.Events = out.Events[:told]
	}
}

// Inspect draws what a side knew: its packets, and its messages as sender and
// as receiver.
func (c *Conversation) Inspect(x machine.Side, v *machine.View) {
	c.inner.Inspect(x, v)
	if c.inner.sides == nil {
		return
	}
	for i := range c.sides[x].lanes {
		if l := &c.sides[x].lanes[i]; l.started {
			v.Windows = append(v.Windows, l.sendWindow(c.inner.sides[x].known()))
		}
	}
	for i := range c.sides[x.Other()].lanes {
		if l := &c.sides[x.Other()].lanes[i]; l.started {
			v.Windows = append(v.Windows, l.receiveWindow())
		}
	}
}

// Summary gives the packets' figures.
func (c *Conversation) Summary(x machine.Side) machine.Summary { return c.inner.Summary(x) }

// RTT gives what Summary does.
func (c *Conversation) RTT(x machine.Side) time.Duration { return c.inner.RTT(x) }

// Loss gives what Summary does.
func (c *Conversation) Loss(x machine.Side) float64 { return c.inner.Loss(x) }

// Sent gives what Summary does of packets.
func (c *Conversation) Sent(x machine.Side) uint64 { return c.inner.Sent(x) }

// Learned gives what a second run over the same flow can start with.
func (c *Conversation) Learned() machine.Facts { return c.inner.Learned() }

// Clone gives an independent copy.
func (c *Conversation) Clone() machine.Tracker {
	d := *c
	if inner, ok := c.inner.Clone().(*Tracker); ok {
		d.inner = inner
	}
	for i := range d.sides {
		d.sides[i] = c.sides[i].clone()
		for j := range d.sides[i].lanes {
			d.sides[i].lanes[j].config = &d.config
		}
		d.acks[i] = slices.Clone(c.acks[i])
	}
	return &d
}

// Size gives the bytes that a clone takes, about.
func (c *Conversation) Size() int {
	n := c.inner.Size() + 300
	for i := range c.sides {
		n += c.sides[i].size() + len(c.acks[i])*8
	}
	return n
}
