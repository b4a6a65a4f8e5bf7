package whatif

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// sizeEndpoint is one side of a run, as an endpoint that knows messages by
// their size only. It therefore needs neither a schema nor a key. It uses the
// reference's transitions (gaffer.State, messages.Sender, messages.Receiver).
//
// It transmits a format of its own, little-endian:
//
//		  0        4        8                16       20               n
//		+--------+--------+------------------+--------+----------------+----------+
//		|  seq   |  ack   |     ack_bits     |  len   | acked, by lane | entries  |
//		+--------+--------+------------------+--------+----------------+----------+
//
//	  - len is the size in bytes that the packet would have on the wire.
//	  - acked has 2 bytes for each lane: the newest message id received in order.
//	  - An entry is 8 bytes: lane, kind (1: message, 2: fragment), id, and a
//	    fragment's index and count.
//
// Submit on ChannelPacket sends a packet. Its payload has the size of
// everything beside messages and header. Submit on lane n+1 submits a message
// of Type bits, or a block of the size of its payload.
type sizeEndpoint struct {
	side     machine.Side
	rules    *gaffer.Rules
	state    gaffer.State
	clock    machine.Instant
	next64   int64
	newest64 int64
	rtt      time.Duration
	lanes    []sizeLane
	simple   bool
	fixed    int // bits of a message section without messages
	extra    int // bytes by which the header is longer than that of the capture
	bytes    []byte
	entries  []sizeEntry
	ids      []int64
	waited   []time.Duration
}

// lanePlan holds the settings of one reliable channel.
type lanePlan struct {
	channel     int
	sendQueue   int
	window      int // of the receiver, in messages
	most        int // most messages in a packet
	budget      int // most bits in a packet
	head, first int // bits beside a body: head for each message, first once a packet
	resend      wire.Resend
	blockResend time.Duration
	fragment    int // bytes of each fragment of a block
}

// sizeLane is both ends of a channel at one side.
type sizeLane struct {
	lanePlan
	send     messages.Sender
	receive  messages.Receiver
	waiting  []sizeMessage // submissions that wait for room in the send queue
	blocks   map[int64]*sizeBlock
	coming   map[int64]*sizeBlock
	slices   []sizeSlice       // by packet: the fragment that it carried
	complete []machine.Instant // of the receiver: when a message was complete, by id mod len
}

type sizeMessage struct {
	bits, block int
}

// sizeBlock is a block in flight, at either end.
type sizeBlock struct {
	size   int
	sentAt []machine.Instant
	sent   []bool
	done   []bool // acked, or arrived
	left   int
}

type sizeSlice struct {
	packet, id int64
	index      int
}

type sizeEntry struct {
	lane, kind   uint8
	id           uint16
	index, count uint16
}

const (
	entryMessage  = 1
	entryFragment = 2
)

func newSizeEndpoint(side machine.Side, r *gaffer.Rules, plans []lanePlan,
	simple bool, fixed, extra int,
) *sizeEndpoint {
	u := &sizeEndpoint{
		side: side, rules: r, state: gaffer.NewState(r), newest64: -1, simple: simple, fixed: fixed,
		extra: extra,
	}
	for _, p := range plans {
		o := messages.Options{SendBuffer: p.sendQueue, ReceiveBuffer: p.window, Resend: p.resend}
		u.lanes = append(u.lanes, sizeLane{
			lanePlan: p, send: messages.NewSender(&o, r.Sent), receive: messages.NewReceiver(&o),
			slices: make([]sizeSlice, r.Sent),
			blocks: map[int64]*sizeBlock{}, coming: map[int64]*sizeBlock{},
			complete: make([]machine.Instant, p.window),
		})
	}
	return u
}

// Step takes one input: see machine.Endpoint.
func (u *sizeEndpoint) Step(now machine.Instant, in machine.Input, out *machine.Effects) error {
	u.waited = u.waited[:0]
	switch in := in.(type) {
	case machine.Wake:
		u.clock = now
	case machine.Arrive:
		u.clock = max(u.clock, now)
		u.arrive(now, in.Bytes, out)
	case machine.Submit:
		u.clock = max(u.clock, now)
		if in.Channel == messages.ChannelPacket {
			u.transmit(now, len(in.Payload), out)
			return nil
		}
		if int(in.Channel) > len(u.lanes) {
			return fmt.Errorf("submit: lane %d, expected at most %d", in.Channel, len(u.lanes))
		}
		l := &u.lanes[in.Channel-1]
		l.waiting = append(l.waiting, sizeMessage{int(in.Type), len(in.Payload)})
		out.Events = append(out.Events,
			machine.Event{
				Kind: machine.EventSent, Side: u.side, Channel: in.Channel,
				Sequence64: l.send.Next + int64(len(l.waiting)) - 1, At: now,
			})
		l.admit()
	default:
		return fmt.Errorf("step: %T, expected a datagram, a submission or a wake", in)
	}
	return nil
}

// Deadline returns false: the driver's frames decide when it sends.
func (u *sizeEndpoint) Deadline() (machine.Instant, bool) { return 0, false }

// Weigh returns the size in bytes of the packet that a transmission represents.
func (u *sizeEndpoint) Weigh(b []byte) int { return int(binary.LittleEndian.Uint32(b[16:])) }

// Waited returns how long a delivered message had been complete.
func (u *sizeEndpoint) Waited(n int) time.Duration { return u.waited[n] }

// admit moves submissions into the send queue while it has room.
func (l *sizeLane) admit() {
	for len(l.waiting) > 0 && l.send.Next-l.send.Oldest < int64(len(l.send.Queue)) {
		m := l.waiting[0]
		l.waiting = l.waiting[1:]
		if m.block > 0 {
			n := max(1, (m.block+l.fragment-1)/max(l.fragment, 1))
			l.blocks[l.send.Next] = &sizeBlock{
				size: m.block, sentAt: make([]machine.Instant, n), sent: make([]bool, n),
				done: make([]bool, n), left: n,
			}
		}
		_ = l.send.Submit(uint32(m.bits), nil) // there is room
	}
}

// transmit sends a packet with the messages that are due.
func (u *sizeEndpoint) transmit(now machine.Instant, payload int, out *machine.Effects) {
	h := u.state.Header()
	used := u.fixed
	u.entries = u.entries[:0]
	again := 0
	for i := range u.lanes {
		bits, n := u.pick(uint8(i))
		used += bits
		again += n
	}
	weight := payload + u.extra + (used+7)/8
	b := binary.LittleEndian.AppendUint32(u.bytes[:0], h.Sequence)
	b = binary.LittleEndian.AppendUint32(b, h.Ack)
	b = binary.LittleEndian.AppendUint64(b, h.AckBits)
	b = binary.LittleEndian.AppendUint32(b, uint32(max(weight, 0)))
	for i := range u.lanes {
		b = binary.LittleEndian.AppendUint16(b, uint16(u.lanes[i].receive.Next-1))
	}
	for _, e := range u.entries {
		b = append(b, e.lane, e.kind)
		for _, v := range []uint16{e.id, e.index, e.count} {
			b = binary.LittleEndian.AppendUint16(b, v)
		}
	}
	u.bytes = b
	out.Send(0, machine.SendDatagram, b)
	for range again {
		out.Events = append(out.Events,
			machine.Event{Kind: machine.EventResent, Side: u.side, Sequence64: u.next64, At: now, RTT: -1})
	}
	u.state.Send(gaffer.Sent{At: u.clock, Ack: h.Ack, AckBits: h.AckBits, Flags: gaffer.SentHeader})
	u.next64++
}

// pick adds what is due of a lane to the packet. It returns the bits that it
// added, and how many of the messages were sent before.
func (u *sizeEndpoint) pick(lane uint8) (bits, again int) {
	l := &u.lanes[lane]
	if block := l.blocks[l.send.Oldest]; block != nil && l.send.Oldest < l.send.Next {
		return u.pickFragment(lane, block)
	}
	budget := l.budget - u.fixed
	blocked := false
	fits := func(m *messages.Message) bool {
		// A message behind a block waits for the block.
		if blocked = blocked || l.blocks[m.ID] != nil; blocked {
			return false
		}
		n := l.head + int(m.Kind)
		if bits == 0 {
			n += l.first
		}
		if bits+n > budget {
			return false
		}
		bits += n
		return true
	}
	if u.simple {
		u.ids = l.send.PickRun(u.ids[:0], l.most, fits)
	} else {
		u.ids = l.send.Pick(u.ids[:0], u.clock, u.rtt, l.most, fits)
	}
	for _, id := range u.ids {
		if l.send.Entry(id).Attempts > 0 {
			again++
		}
		u.entries = append(u.entries, sizeEntry{lane: lane, kind: entryMessage, id: uint16(id)})
	}
	l.send.Sent(u.next64, u.clock, u.ids)
	return bits, again
}

// pickFragment adds the first fragment of a block that is due to the packet.
func (u *sizeEndpoint) pickFragment(lane uint8, block *sizeBlock) (bits, again int) {
	l := &u.lanes[lane]
	id := l.send.Oldest
	l.send.Sent(u.next64, u.clock, nil)
	for i := range block.done {
		if block.done[i] || block.sent[i] && u.clock.Sub(block.sentAt[i]) < l.blockResend {
			continue
		}
		if block.sent[i] {
			again = 1
		}
		block.sent[i], block.sentAt[i] = true, u.clock
		size := min(l.fragment, block.size-i*l.fragment)
		l.slices[u.next64%int64(len(l.slices))] = sizeSlice{u.next64, id, i + 1}
		u.entries = append(u.entries,
			sizeEntry{lane: lane, kind: entryFragment, id: uint16(id), index: uint16(i), count: uint16(len(block.done))})
		return l.first + l.head + 8*size, again
	}
	return 0, 0
}

// arrive takes a packet of the other endpoint.
func (u *sizeEndpoint) arrive(now machine.Instant, b []byte, out *machine.Effects) {
	sequence := binary.LittleEndian.Uint32(b)
	if !u.state.Arrive(sequence, false).Delivered() {
		return
	}
	if u.newest64 < 0 {
		u.newest64 = int64(sequence)
	}
	u.newest64 = max(u.newest64, u.newest64+int64(u.rules.Distance(sequence, uint32(u.newest64)&u.rules.Mask())))
	u.readAcks(binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint64(b[8:]))
	b = b[20:]
	for i := range u.lanes {
		l := &u.lanes[i]
		if u.simple {
			last := l.send.Oldest - 1 + int64(int16(binary.LittleEndian.Uint16(b)-uint16(l.send.Oldest-1)))
			u.ids = l.send.AckedUpTo(last, u.ids[:0])
			l.admit()
		}
		b = b[2:]
	}
	for ; len(b) >= 8; b = b[8:] {
		l := &u.lanes[b[0]]
		id := l.receive.Unwrap(binary.LittleEndian.Uint16(b[2:]))
		if id < l.receive.Next || id >= l.receive.Next+int64(l.window) || u.simple && id > l.receive.Next {
			continue
		}
		if b[1] == entryFragment &&
			!l.piece(id, int(binary.LittleEndian.Uint16(b[4:])), int(binary.LittleEndian.Uint16(b[6:]))) {
			continue
		}
		if l.receive.Buffer[id%int64(l.window)].ID != id {
			l.complete[id%int64(l.window)] = now
			l.receive.Put(messages.Message{ID: id})
		}
		u.hand(now, b[0], out)
	}
}

// piece records a fragment that arrived and reports whether its block is
// complete.
func (l *sizeLane) piece(id int64, index, count int) bool {
	block := l.coming[id]
	if block == nil {
		block = &sizeBlock{done: make([]bool, count), left: count}
		l.coming[id] = block
	}
	if !block.done[index] {
		block.done[index] = true
		block.left--
	}
	if block.left > 0 {
		return false
	}
	delete(l.coming, id)
	return true
}

// hand delivers the messages that are in order.
func (u *sizeEndpoint) hand(now machine.Instant, lane uint8, out *machine.Effects) {
	l := &u.lanes[lane]
	for m, ok := l.receive.Take(); ok; m, ok = l.receive.Take() {
		u.waited = append(u.waited, now.Sub(l.complete[m.ID%int64(l.window)]))
		out.Hand(machine.Delivery{Channel: lane + 1, ID: uint64(m.ID)})
	}
}

// readAcks takes the acks of a header.
func (u *sizeEndpoint) readAcks(ack uint32, ackBits uint64) {
	c := u.rules.Claims(ack, ackBits)
	told := u.state.ReadAcks(c, u.clock, 0)
	for n := 0; told != 0; n, told = n+1, told>>1 {
		if told&1 == 0 {
			continue
		}
		sequence := (c.Newest - uint32(n)) & u.rules.Mask()
		sample := u.clock.Sub(u.state.Sent(sequence).At)
		if u.rtt == 0 {
			u.rtt = sample
		}
		u.rtt += (sample - u.rtt) / 10
		packet := u.next64 - 1 + int64(u.rules.Distance(sequence, (u.state.NextSequence()-1)&u.rules.Mask()))
		if u.simple {
			continue
		}
		for i := range u.lanes {
			u.lanes[i].acked(packet)
			u.lanes[i].admit()
		}
	}
}

// acked takes the ack of a packet.
func (l *sizeLane) acked(packet int64) {
	_ = l.send.Acked(packet, nil)
	s := &l.slices[packet%int64(len(l.slices))]
	if s.packet != packet || s.index == 0 {
		return
	}
	block, index, id := l.blocks[s.id], s.index-1, s.id
	s.index = 0
	if block == nil || block.done[index] {
		return
	}
	block.done[index] = true
	if block.left--; block.left > 0 {
		return
	}
	delete(l.blocks, id)
	*l.send.Entry(id) = messages.Queued{Message: messages.Message{ID: -1}}
	l.send.Advance()
}

// Inspect draws nothing: a run only reads what the endpoint transmits.
func (u *sizeEndpoint) Inspect(v *machine.View) { *v = machine.View{} }

// Clone returns an independent copy.
func (u *sizeEndpoint) Clone() machine.Endpoint {
	c := *u
	c.state = u.state.Clone()
	c.lanes = slices.Clone(u.lanes)
	for i := range c.lanes {
		l := &c.lanes[i]
		l.send, l.receive = l.send.Clone(), l.receive.Clone()
		l.waiting, l.slices, l.complete = slices.Clone(l.waiting), slices.Clone(l.slices), slices.Clone(l.complete)
		l.blocks, l.coming = cloneBlocks(l.blocks), cloneBlocks(l.coming)
	}
	c.bytes, c.entries, c.ids, c.waited = nil, nil, nil, nil
	return &c
}

func cloneBlocks(m map[int64]*sizeBlock) map[int64]*sizeBlock {
	c := make(map[int64]*sizeBlock, len(m))
	for id, b := range m {
		d := *b
		d.sentAt, d.sent, d.done = slices.Clone(b.sentAt), slices.Clone(b.sent), slices.Clone(b.done)
		c[id] = &d
	}
	return c
}
