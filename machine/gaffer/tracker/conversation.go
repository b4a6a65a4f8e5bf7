package tracker

import (
	"slices"
	"strconv"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Conversation follows a flow whose packets carry the article's message section. An
// inner Tracker follows the packets, and its events show what became of each message:
//
//	packet of A passes the tap      its messages were sent once more
//	B is found to have received it  they have arrived; those in order are delivered
//	A is found to have read an ack  they are acked (simple scheme: by the message ack
//	                                in a packet that A is found to have received)
//
// So a message's facts are as certain as those of the packets that carried it.
type Conversation struct {
	inner   *Tracker
	section *wire.MessageSection
	config  wire.YojimboChannel // the sizes of the queues, in the form that a Lane takes
	sides   [2]messages.Direction
	acks    [2][]messageAck // simple scheme: by the sequence of the side's packet that carried it
	packet  wire.Packet
	resend  [2]messages.ResendRule
	learns  bool // it collects what the packets show of the resend policies
}

// messageAck is the message ack of one packet, in the simple scheme.
type messageAck struct {
	sequence uint32
	id       uint16
	live     bool
}

// StartWithin is the number below which the first sequence and ack of a flow must lie
// to show its start. Only then can its message ids have begun at zero within the
// capture.
// Source: measured, TestMarginsGaffer
const StartWithin uint32 = 32

// NewConversation returns the tracker of a flow whose profile has a message section.
func NewConversation(p *wire.Profile, facts machine.Facts) *Conversation {
	c := &Conversation{inner: NewByRules(p, gaffer.RulesOf(p), facts), section: &p.Messages}
	c.inner.WantReceipts()
	c.config = wire.YojimboChannel{SendQueue: p.Messages.SendQueue, ReceiveQueue: p.Messages.ReceiveQueue}
	if p.Messages.Form == wire.MessagesSimple {
		c.config.ReceiveQueue = 0 // the scheme keeps no message that is out of order
	}
	// If the profile has no queue size, no message counts as beyond the queue.
	for _, n := range []*int{&c.config.SendQueue, &c.config.ReceiveQueue} {
		if *n == 0 {
			*n = 1 << (wire.MessageIDBits - 1)
		}
	}
	for i := range c.sides {
		c.sides[i].From = machine.Side(i)
	}
	c.resend = messages.NewResendRules(c.section, facts.Settings)
	c.learns = c.resends() && facts.Settings == nil
	return c
}

// resends reports whether the flow's messages go out again by a policy that packets show.
func (c *Conversation) resends() bool {
	return c.section.Form == wire.MessagesByID && c.section.Bodies != nil
}

// Observe takes the next datagram.
func (c *Conversation) Observe(d *machine.Datagram, out *machine.Effects) {
	// Messages depend on the packets' events, even if the caller wants no events.
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
	c.inner.Receipts() // of a datagram that opened another session
	c.inner.Observe(d, out)
	if out.NewSession {
		return
	}
	c.settle(told, d.At, out)
	if err != nil || p.Kind > wire.KindFragment || p.PayloadOffset > len(d.Bytes) || d.Length > len(d.Bytes) {
		return // the capture lacks what the packet carried
	}
	s := &c.sides[d.From]
	s.Count(p)
	payload, whole := s.Assembler.Add(p, d.Bytes[p.PayloadOffset:min(p.PayloadOffset+p.PayloadLen, len(d.Bytes))])
	if !whole {
		return
	}
	k := c.inner.Carrier(d, p)
	k.Sequence64, k.Length, k.Payload = s.Unwrap(p.Sequence), d.Length, payload
	if p.Kind == wire.KindFragment {
		k.Length = len(payload)
	}
	if c.learns && !k.Near && c.inner.Sides != nil {
		k.Tick = time.Duration(c.inner.Sides[d.From].estimate.clock.tick)
	}
	c.carry(s, &k, out)
}

// start checks on a side's first packet whether the flow was captured from its
// beginning.
func (c *Conversation) start(x machine.Side, p *wire.Packet) {
	s, r := &c.sides[x], c.inner.rules
	if s.Contents != nil || !p.HasHeader {
		return
	}
	acked := (p.Header.Ack + 1) & r.Mask() // 0: nothing received yet
	s.Fresh = p.Sequence < StartWithin && acked < StartWithin
	s.Contents = make([]messages.Contents, messages.ContentsMost)
	s.Lanes = []messages.Lane{{Channel: -1, From: x, Config: &c.config, Fresh: s.Fresh, Resend: c.resend[x]}}
	if c.learns {
		s.Lanes[0].Evidence = &messages.ResendEvidence{}
	}
	if c.section.Form == wire.MessagesSimple {
		c.acks[x] = make([]messageAck, messages.ContentsMost)
	}
}

// carry enters the messages that a packet carries.
func (c *Conversation) carry(s *messages.Direction, k *messages.Carrier, out *machine.Effects) {
	if s.Contents == nil {
		return // no header of the side was seen yet: a fragment that is not its packet's first
	}
	contents := &s.Contents[k.Sequence%messages.ContentsMost]
	if contents.Live && contents.Sequence == k.Sequence {
		return // a copy
	}
	contents.Begin(k)
	section, err := c.section.Open(k.Payload, 0)
	if err != nil {
		c.malformed(s, k, out)
		return
	}
	l := &s.Lanes[0]
	if c.section.Form == wire.MessagesSimple {
		c.acks[s.From][k.Sequence%messages.ContentsMost] = messageAck{k.Sequence, section.Ack, true}
		l.AddRun(&section, k, contents, out)
	} else {
		l.AddMessages(&section, c.section.MaxPerPacket, k, contents, out)
		if e := l.Evidence; e != nil && e.WantsRTT() {
			e.EnterRTT(c.inner.RTT(s.From), k.At)
		}
	}
	if section.Err() != nil {
		c.malformed(s, k, out)
	} else if section.Count > 0 && c.gapless(s.From) {
		l.Watch(k, true, out)
	}
}

// gapless reports whether every packet of a side has passed the tap. If not, a lost
// packet may have carried an id that no captured packet carries.
func (c *Conversation) gapless(x machine.Side) bool {
	if c.inner.Sides == nil {
		return false
	}
	s := &c.inner.Sides[x]
	return s.Near || s.Met && s.sent.complete()
}

func (c *Conversation) malformed(s *messages.Direction, k *messages.Carrier, out *machine.Effects) {
	out.At(k.At, k.Ref).Report(messages.MalformedMessages, s.From, machine.Certain, 0, float64(len(k.Payload)))
}

// settle applies the packet tracker's new events to the messages. The tracker knows them
// by now.
func (c *Conversation) settle(from int, now machine.Instant, out *machine.Effects) {
	receipts := c.inner.Receipts()
	for i := from; i < len(out.Events); i++ {
		e := out.Events[i]
		switch e.Kind {
		case machine.EventReceived:
			c.sides[e.Side.Other()].Received(&e, receipts[0], now, out)
			receipts = receipts[1:]
			c.readAck(&e, now, out)
		case machine.EventAcked:
			if c.section.Form == wire.MessagesByID {
				c.sides[e.Side].Acked(&e, now, out)
			}
		default:
		}
	}
	for i := range c.sides {
		c.sides[i].Settle(now, out)
	}
}

// readAck applies the message ack of a packet that a side has read (simple scheme).
func (c *Conversation) readAck(e *machine.Event, now machine.Instant, out *machine.Effects) {
	acks := c.acks[e.Side.Other()]
	if len(acks) == 0 || len(c.sides[e.Side].Lanes) == 0 {
		return
	}
	a := acks[e.Sequence%messages.ContentsMost]
	l := &c.sides[e.Side].Lanes[0]
	if !a.live || a.sequence != e.Sequence || !l.Started {
		return
	}
	by := *e
	by.By = e.About
	last := l.Unwrap(a.id)
	for id := l.Base; id <= last && id <= l.Top; id++ {
		l.Ack(id, &by, now)
	}
	l.Settle(now, out)
}

// Finish settles what is still open.
func (c *Conversation) Finish(out *machine.Effects) {
	quiet, told := out.NoEvents, len(out.Events)
	out.NoEvents = false
	c.inner.Receipts()
	c.inner.Finish(out)
	c.settle(told, c.inner.last, out)
	for i := range c.sides {
		for j := range c.sides[i].Lanes {
			c.sides[i].Lanes[j].Finish(out)
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
	if c.inner.Sides == nil {
		return
	}
	for i := range c.sides[x].Lanes {
		if l := &c.sides[x].Lanes[i]; l.Started {
			v.Windows = append(v.Windows, l.SendWindow(c.inner.Sides[x].known()))
		}
	}
	for i := range c.sides[x.Other()].Lanes {
		if l := &c.sides[x.Other()].Lanes[i]; l.Started {
			v.Windows = append(v.Windows, l.ReceiveWindow())
		}
	}
	c.tables(x, v)
}

// tables draws a side's message objects.
func (c *Conversation) tables(x machine.Side, v *machine.View) {
	s := &c.inner.Sides[x]
	t := messages.Tables{
		Now: c.inner.last, Section: c.section, Near: s.Near, Grade: c.inner.grade(s.known()),
		RTT: c.inner.RTT(x), Gapless: c.gapless(x), PeerGapless: c.gapless(x.Other()),
		Fate: func(sequence uint32) (string, machine.Certainty) { return c.inner.fate(s, sequence) },
	}
	if sent := &c.sides[x]; len(sent.Lanes) > 0 && sent.Lanes[0].Started {
		t.SendQueue(sent, v)
		t.Packets(sent, v)
		if c.resends() {
			rule := sent.Lanes[0].Rule()
			v.Tables = append(v.Tables, rule.Table())
		}
	}
	if sent := &c.sides[x.Other()]; len(sent.Lanes) > 0 && sent.Lanes[0].Started {
		t.ReceiveQueue(sent, v)
	}
}

// fate says what a side knows of a packet that it sent, and how sure that is.
func (t *Tracker) fate(s *side, sequence uint32) (string, machine.Certainty) {
	e := s.Sent(sequence)
	switch {
	case e == nil:
		return "no longer in the sent buffer", machine.Unknown
	case e.Flags&gaffer.SentAcked != 0:
		return "acked, in frame " + strconv.FormatUint(e.AckedBy.Frame(), 10), t.sentGrade(s, e)
	case e.Flags&gaffer.SentLost != 0:
		return "lost", t.sentGrade(s, e)
	case !s.Near && e.Flags&gaffer.SentArrived != 0:
		return "arrived; whether its ack was read does not show", machine.Unknown
	}
	return "no ack yet", t.sentGrade(s, e)
}

// Summary returns the packets' figures, and how many messages they carried.
func (c *Conversation) Summary(x machine.Side) machine.Summary {
	sum := c.inner.Summary(x)
	c.sides[x].Figures(&sum)
	return sum
}

// RTT returns the smoothed RTT of Summary.
func (c *Conversation) RTT(x machine.Side) time.Duration { return c.inner.RTT(x) }

// Loss returns the loss of Summary.
func (c *Conversation) Loss(x machine.Side) float64 { return c.inner.Loss(x) }

// Sent returns the count of packets of Summary.
func (c *Conversation) Sent(x machine.Side) uint64 { return c.inner.Sent(x) }

// Learned returns what a second run over the same flow can start with.
func (c *Conversation) Learned() machine.Facts {
	f := c.inner.Learned()
	if c.learns {
		var found messages.ResendInferences
		for i := range c.sides {
			if lanes := c.sides[i].Lanes; len(lanes) > 0 {
				found[i] = lanes[0].Evidence.Infer()
			}
		}
		f.Settings = &found
	}
	return f
}

// Clone returns an independent copy.
func (c *Conversation) Clone() machine.Tracker {
	d := *c
	if inner, ok := c.inner.Clone().(*Tracker); ok {
		d.inner = inner
	}
	for i := range d.sides {
		d.sides[i] = c.sides[i].Clone()
		for j := range d.sides[i].Lanes {
			d.sides[i].Lanes[j].Config = &d.config
		}
		d.acks[i] = slices.Clone(c.acks[i])
	}
	return &d
}

// Size returns the approximate size of a clone, in bytes.
func (c *Conversation) Size() int {
	n := c.inner.Size() + 300
	for i := range c.sides {
		n += c.sides[i].Size() + len(c.acks[i])*8
	}
	return n
}
