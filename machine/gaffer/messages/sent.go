package messages

import "github.com/ackscope/ackscope/machine"

// sent bounds when the packet left its sender.
func (k *Carrier) sent() machine.Span {
	switch {
	case k.Near && k.Supposed:
		return machine.At(k.At, machine.Likely)
	case k.Near:
		return machine.At(k.At, machine.Certain)
	case k.After.Known() && k.After.From <= k.At:
		return machine.Span{From: k.After.From, To: k.At, Certainty: k.After.Certainty}
	}
	return machine.Span{}
}

// sent bounds when a message first left that packet k carries. Its first copy may be missing,
// where a packet was lost before the tap or by the capture. For example, packet 7 carries the
// messages 20 and 22, and packet 12 the first copy of 21 that passes. Then 21 first left after
// message 19, and no later than packet 7.
func (c *Lane) sent(id int64, l *life, k *Carrier) machine.Span {
	s := k.sent()
	switch {
	case l != nil && l.sends.count == 0 && l.sent.Known() && !k.Near && k.Sequence64 > l.sends.number:
		return l.sent // skip knows more
	case k.Missing == 0 && (c.Fresh && k.Begun || c.late(id)):
		return s
	case c.Started && (k.Sequence64 == c.topNumber || k.Missing != c.topMissing) && c.topSent.Known() && s.Known():
		// A packet is missing since the top was first carried, or the two came together.
		s.From = min(s.From, c.topSent.From)
	}
	s.Certainty = min(s.Certainty, machine.Likely)
	return s
}

// skip bounds when the messages between the top and a newer one first left, of which packet k
// carries none. A sender sends them in the order of their ids.
func (c *Lane) skip(id int64, k *Carrier) {
	if !c.topSent.Known() {
		return
	}
	for between := max(c.Top+1, c.Base); between < id; between++ {
		if l := c.find(between); l != nil && l.sends.count == 0 {
			l.sends.number = k.Sequence64
			l.sent = machine.Span{From: min(c.topSent.From, k.At), To: k.At, Certainty: machine.Likely}
		}
	}
}
