package stream

import (
	"slices"
	"time"
	"unsafe"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// Message is one message of a stream.
type Message struct {
	From   machine.Side
	At     machine.Instant
	Ref    machine.Ref    // the frame of its last byte
	Index  int            // among the messages of that direction that the frame completed, from 0
	Bytes  []byte         // without the prefix; valid until the next Feed. Shorter than Length if a gap took the rest
	Length int            // from the prefix
	Spans  []capture.Span // where Bytes are, in order; Offset is -1 if the packets did not say. Valid until the next Feed
	// Grade says how sure it is that a message begins here:
	//
	//   - certain in a stream seen from its start, and after several messages in a
	//     row;
	//   - likely for the first message after the framing was found in the middle;
	//   - possible for a message that the protocol cannot read.
	Grade machine.Certainty
	// Behind is set when the receiver cannot have read the message. Bytes before
	// it, or some of its own, had not come when the connection or the capture
	// ended. And the receiver's acks do not show that those bytes reached it some
	// other way.
	Behind bool
	// Gaps is set when bytes that passed before it, in either direction, are missing in the capture.
	Gaps bool
	// Prefix is the size in bytes of the length before it, and BigEndian its byte order.
	Prefix    int
	BigEndian bool
}

// Output is the result of one segment. The caller owns it and reuses it.
type Output struct {
	Messages []Message
	// Restarted is set if the segment opened another connection on the same pair
	// of addresses. Messages before index Before belong to the old one.
	Restarted bool
	Before    int

	spans []capture.Span
	bytes []byte
}

func (o *Output) reset() {
	o.Messages, o.Restarted, o.Before, o.spans, o.bytes = o.Messages[:0], false, 0, o.spans[:0], o.bytes[:0]
}

// Conn is one TCP connection.
type Conn struct {
	formats []Format
	limits  Limits
	halves  [2]half
	acked   [2]uint32 // newest acknowledgement number that each side sent
	acks    [2]bool
	last    [2]machine.Ref // frame of the newest message of each side, for Message.Index
	index   [2]int

	// queue holds messages of one side while the framing of its peer is being
	// searched for. So messages come out in the order in which they passed the
	// tap.
	queue  []Message
	queued int // bytes in queue
}

// Bounds of the queue.
const (
	maxQueue      = 512
	maxQueueBytes = 256 << 10
	maxQueueTime  = 5 * time.Second
)

// New returns a connection without any segment yet. It tries the formats in
// order. Neither the slice nor its functions may change.
func New(formats []Format, limits Limits) *Conn {
	c := &Conn{formats: formats, limits: limits.orDefault()}
	c.reset()
	return c
}

func (c *Conn) reset() {
	for i := range c.halves {
		c.halves[i] = half{framer: framer{format: -1}}
	}
	c.acks, c.last = [2]bool{}, [2]machine.Ref{}
}

// Feed processes the next segment of the connection. It resets out, and stores
// the messages in it that are now complete.
func (c *Conn) Feed(from machine.Side, p *capture.Packet, out *Output) {
	out.reset()
	for i := range c.halves {
		c.halves[i].drop()
	}
	h := &c.halves[from]
	if h.reopened(p) {
		c.finish(out)
		out.Restarted, out.Before = true, len(out.Messages)
		c.reset()
	}
	h.segment(p, &c.limits)
	if p.TCPFlags&ack != 0 {
		c.acked[from], c.acks[from] = p.TCPAck, true
	}
	for side := range c.halves {
		if other := 1 - side; c.acks[other] {
			c.halves[side].checkOverdue(c.acked[other])
		}
	}
	c.scan(out, false)
	c.release(p.At, false, out)
}

// reopened reports whether the segment opens a new connection on the same
// addresses.
func (h *half) reopened(p *capture.Packet) bool {
	return p.TCPFlags&(syn|rst) == syn && h.joined && !(h.whole && p.TCPSeq == h.isn)
}

// Finish stores in out the remaining messages, when the connection or the
// capture ends.
func (c *Conn) Finish(out *Output) {
	out.reset()
	for i := range c.halves {
		c.halves[i].drop()
	}
	c.finish(out)
}

func (c *Conn) finish(out *Output) {
	for i := range c.halves {
		h := &c.halves[i]
		if len(h.pieces) > 0 && c.acks[1-i] && int32(c.acked[1-i]-h.pieces[0].seq) < 0 {
			h.open, h.behind = true, h.end()
		}
		for len(h.pieces) > 0 {
			h.skipHole()
		}
	}
	c.agree()
	c.scan(out, true)
	c.release(0, true, out)
}

// scan cuts both directions into messages. A format found on one side also
// applies to the other.
func (c *Conn) scan(out *Output, final bool) {
	if !final {
		c.forgetFormat()
	}
	for i := range c.halves {
		f, other := &c.halves[i].framer, &c.halves[1-i].framer
		c.scanHalf(machine.Side(i), out, final)
		if f.proven && other.format < 0 {
			other.format, other.searched = f.format, 0
		}
	}
	if c.halves[1].framer.proven && !c.halves[0].framer.synced {
		c.scanHalf(machine.A, out, final)
	}
}

// forgetFormat forgets a format that one side had from the other, once the
// other has lost it.
func (c *Conn) forgetFormat() {
	if c.halves[0].framer.proven || c.halves[1].framer.proven {
		return
	}
	for i := range c.halves {
		c.halves[i].framer.format = -1
	}
}

func (c *Conn) scanHalf(side machine.Side, out *Output, final bool) {
	h := &c.halves[side]
	if h.done == len(h.buf) && len(h.breaks) == 0 {
		return
	}
	h.scan(c.formats, &c.limits, final, func(from, to, length int, grade machine.Certainty) {
		format := &c.formats[h.framer.format]
		m := Message{
			From: side, Bytes: h.buf[from:to:to], Length: length, Grade: grade, Prefix: format.Prefix,
			BigEndian: format.BigEndian, Gaps: c.halves[0].counts.Gaps+c.halves[1].counts.Gaps > 0,
		}
		m.Behind = h.open && (h.base+uint64(to) > h.behind || length > to-from)
		first := len(out.spans)
		i, left, at := h.markAt(h.base+uint64(from)), to-from, h.base+uint64(from)
		for ; ; i++ {
			k := &h.marks[i]
			end := h.end()
			if i+1 < len(h.marks) {
				end = h.marks[i+1].pos
			}
			n := min(left, int(end-at))
			s := capture.Span{Ref: k.frame, Offset: k.offset, Length: n}
			if s.Offset >= 0 {
				s.Offset += int(at - k.pos)
			}
			out.spans = append(out.spans, s)
			left -= n
			at += uint64(n)
			if left == 0 {
				m.At, m.Ref = k.at, k.ref
				break
			}
		}
		m.Spans = out.spans[first:len(out.spans):len(out.spans)]
		if m.Ref == c.last[side] {
			c.index[side]++
		} else {
			c.last[side], c.index[side] = m.Ref, 0
		}
		m.Index = c.index[side]
		out.Messages = append(out.Messages, m)
	})
}

// undecided returns the time and the frame of the oldest bytes whose framing is
// not decided yet. The result open is false if there are none.
func (h *half) undecided() (oldest Message, open bool) {
	if h.framer.foreign || h.framer.synced || h.done >= len(h.buf) {
		return Message{}, false
	}
	k := &h.marks[h.markAt(h.base+uint64(h.done))]
	return Message{At: k.at, Ref: k.ref}, true
}

// release emits messages in the order in which they passed the tap. A message
// of one side waits while older bytes of the other side are undecided.
func (c *Conn) release(now machine.Instant, all bool, out *Output) {
	fresh := out.Messages[out.Before:]
	var horizon Message // only its time and frame are used
	open := false
	for i := range c.halves {
		if oldest, is := c.halves[i].undecided(); is && (!open || before(oldest, horizon) < 0) {
			horizon, open = oldest, true
		}
	}
	if all {
		open = false
	}
	waits := func(m *Message) bool { return open && before(*m, horizon) > 0 }
	if len(c.queue) == 0 && !slices.ContainsFunc(fresh, func(m Message) bool { return waits(&m) }) {
		slices.SortStableFunc(fresh, before)
		return
	}
	for i := range fresh {
		m := fresh[i]
		m.Bytes, m.Spans = slices.Clone(m.Bytes), slices.Clone(m.Spans)
		c.queue = append(c.queue, m)
		c.queued += len(m.Bytes)
	}
	out.Messages = out.Messages[:out.Before]
	slices.SortStableFunc(c.queue, before)
	if len(c.queue) > maxQueue || c.queued > maxQueueBytes || now.Sub(c.queue[0].At) > maxQueueTime {
		open = false
	}
	n := 0
	for n < len(c.queue) && !waits(&c.queue[n]) {
		c.queued -= len(c.queue[n].Bytes)
		n++
	}
	out.Messages = append(out.Messages, c.queue[:n]...)
	if n == len(c.queue) {
		c.queue = nil
	} else {
		c.queue = slices.Delete(c.queue, 0, n)
	}
}

func before(a, b Message) int {
	switch {
	case a.At != b.At:
		if a.At < b.At {
			return -1
		}
		return 1
	case a.Ref != b.Ref:
		if a.Ref < b.Ref {
			return -1
		}
		return 1
	}
	return 0
}

// Format returns the framing, or nil if none was found. Counts then shows how
// far each side got.
func (c *Conn) Format() *Format {
	for i := range c.halves {
		if f := c.halves[i].framer; f.proven {
			return &c.formats[f.format]
		}
	}
	return nil
}

// Foreign reports whether neither direction fits any of the formats.
func (c *Conn) Foreign() bool { return c.halves[0].framer.foreign && c.halves[1].framer.foreign }

// Whole reports whether a side's stream was seen from its first byte. Its
// framing then needed no search.
func (c *Conn) Whole(side machine.Side) bool { return c.halves[side].whole }

// Closed reports whether both sides have finished sending, or one has reset the
// connection.
func (c *Conn) Closed() bool { return c.halves[0].closed && c.halves[1].closed }

// Counts returns what happened to a side's segments.
func (c *Conn) Counts(side machine.Side) Counts { return c.halves[side].counts }

// Clone returns an independent copy. Feeding one does not change the other.
func (c *Conn) Clone() *Conn {
	d := *c
	for i := range d.halves {
		d.halves[i] = c.halves[i].clone()
	}
	d.queue = slices.Clone(c.queue)
	return &d
}

// Size returns the approximate memory of a clone in bytes.
func (c *Conn) Size() int {
	n := int(unsafe.Sizeof(*c)) + c.queued + len(c.queue)*int(unsafe.Sizeof(Message{}))
	for i := range c.halves {
		h := &c.halves[i]
		n += len(h.buf) + h.held + len(h.marks)*int(unsafe.Sizeof(mark{})) + len(h.pieces)*int(unsafe.Sizeof(piece{}))
	}
	return n
}
