package messages

import (
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// AddMessages records the messages of a packet, each of which has its id. A packet may
// carry most of them.
func (c *Lane) AddMessages(section *wire.Messages, most int, k *Carrier, contents *Contents, out *machine.Effects) {
	e := c.Evidence
	first := false // the packet is the first that can have carried an id that is new in it
	if e != nil {
		e.begin(k)
		first = c.Started && e.unbrokenFrom(c.topNumber) || !c.Started && c.Fresh && k.Sequence64 == 0
	}
	var m wire.Message
	for section.Next(&m) {
		id, fresh := c.Unwrap(m.ID), !c.Started
		if c.Started {
			fresh = id > c.Top
			c.checkSending(id, k, out)
		}
		if l := c.find(id); e != nil && l != nil && l.sends.count > 0 {
			e.repeated(&l.sends, k, m.End-m.Bit)
		}
		c.addMessage(m.ID, &m, k, contents, out)
		if l := c.find(id); e != nil && l != nil && l.sends.count == 1 {
			l.sends.counted = fresh && first
		}
	}
	if e != nil {
		e.end(k, section, section.Count >= most)
	}
}

// AddRun records the messages of a packet of the simple scheme: all that are not acked.
func (c *Lane) AddRun(section *wire.Messages, k *Carrier, contents *Contents, out *machine.Effects) {
	var r run
	var m wire.Message
	n := 0
	for ; section.Next(&m); n++ {
		r.add(c, m.ID, &m)
		c.addMessage(m.ID, &m, k, contents, out)
	}
	// Without a schema the ids are still known: they are consecutive.
	for ; n < section.Count; n++ {
		id := section.Start + uint16(n)
		r.add(c, id, nil)
		c.addMessage(id, nil, k, contents, out)
	}
	r.report(c, k, out)
}

// addMessage records that a packet carries one message. If only the message's id is known,
// m is nil.
func (c *Lane) addMessage(wireID uint16, m *wire.Message, k *Carrier, contents *Contents, out *machine.Effects) {
	id := c.Unwrap(wireID)
	l := c.carry(id, k, out)
	if l == nil {
		return
	}
	if m != nil {
		l.content.takeType(m.Type)
		if m.End >= 0 {
			l.content.take(k.Payload, m.Body, m.End)
		}
	}
	contents.Reliable = append(contents.Reliable, carriedMessage{0, id, -1})
}

// checkSending checks a message that a sender puts into a packet against the article's
// two rules of sending. It must not be beyond what the receiver can buffer. It must not
// be sent again before its resend policy allows. The check is exact only at the tap.
func (c *Lane) checkSending(id int64, k *Carrier, out *machine.Effects) {
	if l := c.find(id); l != nil && l.sends.count > 0 && k.Near {
		rule := c.Resend
		if rule.Found == nil && c.Evidence != nil {
			rule.Found = c.Evidence.Running()
		}
		least, _, ok := rule.Wait(l.sends.count, l.sends.lastAt, k.At)
		if gap := k.At.Sub(l.sends.lastAt); ok && gap < least {
			out.At(k.At, k.Ref).Report(MessageResentEarly, c.From, machine.Likely, l.sends.lastRef,
				machine.Milliseconds(gap), float64(id))
		}
		return
	}
	if id <= c.Top {
		return
	}
	oldest := id
	for i := range c.lives {
		if l := &c.lives[i]; l.sends.count > 0 && !l.ack.shown {
			oldest = l.id
			break
		}
	}
	if beyond := id - oldest - int64(c.Config.ReceiveQueue); beyond >= 0 {
		sure := machine.Likely // it may know of acks that the capture does not show
		if k.Near {
			sure = machine.Certain
		}
		out.At(k.At, k.Ref).Report(MessageBeyond, c.From, sure, 0, float64(beyond+1), float64(id), float64(oldest))
	}
}
