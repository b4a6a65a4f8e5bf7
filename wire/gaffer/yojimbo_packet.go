package gaffer

import (
	"errors"
	"fmt"

	"github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
)

// ConnectionPacket is the content of one connection packet. The next Parse into it
// reuses its slices. Positions count bits from the packet's first bit. Offsets count
// bytes.
type ConnectionPacket struct {
	Entries  []ChannelEntry
	Messages []ConnectionMessage // of all entries, in order
	End      int                 // bit after the last field that was read
	Unread   int                 // entries behind the last one that was read

	r bits.Reader // kept here, so that passing it to Bodies does not allocate
}

// ChannelEntry is what one channel put into a packet: messages, or one fragment of a
// block.
type ChannelEntry struct {
	Channel  int
	Bit      int  // where the entry begins
	Block    bool // Fragment is valid; otherwise First and Count
	First    int  // index of the first message in Messages
	Count    int  // messages
	Fragment BlockFragment
}

// ConnectionMessage is one message, or the position of one that could not be read.
type ConnectionMessage struct {
	ID          uint16 // of reliable-ordered channels
	Type        uint32
	Bit         int // where its type begins
	Body, End   int // its body, from bit to bit; Body is 0 if its type was not read
	BlockOffset int // of an unreliable block message
	BlockLen    int // 0: no block
	Read        bool
}

// BlockFragment is one fragment of a block message.
type BlockFragment struct {
	ID     uint16
	Count  int
	Index  int
	Offset int
	Size   int

	// Of fragment 0: the message that the block belongs to.
	Type      uint32
	Body, End int
	Read      bool // Type, Body and End are set
}

// ErrOpaque reports a packet without errors that holds a message with an unknown body.
// What follows that message cannot be read, since a body does not contain its length.
var ErrOpaque = errors.New("the body of this message is not known, so what follows it cannot be read")

var errYojimboUnready = errors.New("gaffer: yojimbo configuration is used before Validate")

// connectionReader reads one connection packet.
type connectionReader struct {
	y   *Yojimbo
	out *ConnectionPacket
	r   *bits.Reader
}

// Parse reads a connection packet, which is all of b. The error is ErrOpaque or a
// *wire.ParseError. Fields that were read before the error are in out.
func (y *Yojimbo) Parse(b []byte, out *ConnectionPacket) error {
	out.Entries, out.Messages, out.End, out.Unread = out.Entries[:0], out.Messages[:0], 0, 0
	if !y.plan.ready {
		return errYojimboUnready
	}
	c := connectionReader{y: y, out: out, r: &out.r}
	c.r.Reset(b, 0)
	err := c.packet()
	out.End = c.r.Pos()
	return err
}

func (c *connectionReader) packet() error {
	n, err := c.ranged("entries", 0, len(c.y.Channels), c.y.plan.entries)
	if err != nil {
		return err
	}
	for i := range n {
		if err := c.entry(); err != nil {
			c.out.Unread = n - 1 - i
			return err
		}
	}
	c.out.End = c.r.Pos()
	if left := c.r.Left(); left > 7 {
		return &wire.ParseError{
			Field: "trailing", Bit: c.r.Pos(), Expected: "the end of the packet",
			Found: fmt.Sprintf("%d more bits", left), Err: wire.ErrTrailing,
		}
	}
	return c.align()
}

func (c *connectionReader) entry() error {
	c.out.Entries = append(c.out.Entries, ChannelEntry{Bit: c.r.Pos(), First: len(c.out.Messages)})
	e := &c.out.Entries[len(c.out.Entries)-1]
	var err error
	if e.Channel, err = c.ranged("channel", 0, len(c.y.Channels)-1, c.y.plan.channel); err != nil {
		return err
	}
	config, plan := &c.y.Channels[e.Channel], &c.y.plan.channels[e.Channel]
	if e.Block, err = c.bit("block"); err != nil {
		return err
	}
	if e.Block {
		if config.DisableBlocks || config.Type != ReliableOrdered {
			return &wire.ParseError{
				Field: "block", Bit: c.r.Pos() - 1, Expected: "0: this channel sends no block fragments",
				Found: "1", Err: wire.ErrRange,
			}
		}
		return c.fragment(config, plan, &e.Fragment)
	}
	has, err := c.bit("has_messages")
	if err != nil || !has {
		return err
	}
	n, err := c.ranged("messages", 1, config.MaxMessages, plan.count)
	if err != nil {
		return err
	}
	if config.Type == ReliableOrdered {
		err = c.ordered(e, n)
	} else {
		err = c.unordered(e, n, config, plan)
	}
	return err
}

// ordered reads n ids, then n messages.
func (c *connectionReader) ordered(e *ChannelEntry, n int) error {
	if n > c.r.Left()+1 { // each further id takes a bit
		return c.short("message_id")
	}
	var id uint16
	for i := range n {
		if i == 0 {
			v, err := c.bits("message_id", 16)
			if err != nil {
				return err
			}
			id = uint16(v)
		} else if err := c.relative(&id); err != nil {
			return err
		}
		c.out.Messages = append(c.out.Messages, ConnectionMessage{ID: id})
		e.Count++
	}
	for i := e.First; i < e.First+n; i++ {
		m := &c.out.Messages[i]
		if err := c.message(&m.Type, &m.Bit, &m.Body, &m.End); err != nil {
			return err
		}
		m.Read = true
	}
	return nil
}

// unordered reads n messages, some of them with a block.
func (c *connectionReader) unordered(e *ChannelEntry, n int, config *YojimboChannel, plan *channelPlan) error {
	for range n {
		c.out.Messages = append(c.out.Messages, ConnectionMessage{})
		e.Count++
		m := &c.out.Messages[len(c.out.Messages)-1]
		if err := c.message(&m.Type, &m.Bit, &m.Body, &m.End); err != nil {
			return err
		}
		if c.y.CarriesBlock(m.Type) {
			size, err := c.ranged("block.size", 1, config.MaxBlockSize, plan.size)
			if err != nil {
				return err
			}
			if m.BlockOffset, err = c.bytes("block.data", size); err != nil {
				return err
			}
			m.BlockLen = size
		}
		m.Read = true
	}
	return nil
}

func (c *connectionReader) fragment(config *YojimboChannel, plan *channelPlan, f *BlockFragment) error {
	id, err := c.bits("block.message_id", 16)
	if err != nil {
		return err
	}
	f.ID = uint16(id)
	if f.Count, err = c.ranged("block.fragments", 1, plan.maxFragments, plan.fragments); err != nil {
		return err
	}
	if f.Index, err = c.ranged("block.fragment", 0, f.Count-1, bits.Required(0, uint64(f.Count-1))); err != nil {
		return err
	}
	if f.Size, err = c.ranged("block.size", 1, config.BlockFragmentSize, plan.size); err != nil {
		return err
	}
	if f.Offset, err = c.bytes("block.data", f.Size); err != nil {
		return err
	}
	if f.Index != 0 {
		return nil
	}
	var at int
	if err = c.message(&f.Type, &at, &f.Body, &f.End); err == nil {
		f.Read = true
	}
	return err
}

// message reads a type and skips the body of that type. If it does not reach the body,
// *body stays as it is.
func (c *connectionReader) message(kind *uint32, at, body, end *int) error {
	*at = c.r.Pos()
	if c.y.TypesUnknown {
		return ErrOpaque
	}
	v, err := c.ranged("message_type", 0, c.y.MessageTypes-1, c.y.plan.kind)
	if err != nil {
		return err
	}
	*kind, *body, *end = uint32(v), c.r.Pos(), c.r.Pos()
	if c.y.Bodies == nil {
		return ErrOpaque
	}
	if err := c.y.Bodies.Skip(uint32(v), c.r); err != nil {
		return err
	}
	*end = c.r.Pos()
	return nil
}

// relativeSteps are the ranges of an id's distance from the previous one. A distance of
// 1 is the bit 1. Each further range has one more 0 bit before its 1 bit, then the
// offset.
var relativeSteps = [...]struct {
	least, most uint32
	bits        int
}{{2, 6, 3}, {7, 23, 5}, {24, 280, 9}, {281, 4377, 13}, {4378, 69914, 17}}

// relative reads the id that follows *id.
func (c *connectionReader) relative(id *uint16) error {
	at := c.r.Pos()
	one, err := c.bit("message_id")
	if err != nil {
		return err
	}
	if one {
		*id++
		return nil
	}
	for _, s := range relativeSteps {
		here, err := c.bit("message_id")
		if err != nil {
			return err
		}
		if !here {
			continue
		}
		v, err := c.bits("message_id", s.bits)
		if err != nil {
			return err
		}
		step := uint32(v) + s.least
		if step > s.most || step > 1<<16 {
			return &wire.ParseError{
				Field: "message_id", Bit: at, Expected: fmt.Sprintf("a step of %d to %d", s.least, s.most),
				Found: fmt.Sprintf("%d", step), Err: wire.ErrRange,
			}
		}
		*id += uint16(step)
		return nil
	}
	v, err := c.bits("message_id", 32)
	if err != nil {
		return err
	}
	if v <= uint64(*id) || v > 1<<17-1 {
		return &wire.ParseError{
			Field: "message_id", Bit: at, Expected: "an id behind the one before",
			Found: fmt.Sprintf("%d", v), Err: wire.ErrRange,
		}
	}
	*id = uint16(v)
	return nil
}

func (c *connectionReader) short(field string) error {
	return &wire.ParseError{Field: field, Bit: c.r.Pos(), Err: wire.ErrShort}
}

func (c *connectionReader) bits(field string, n int) (uint64, error) {
	v, ok := c.r.Bits(n)
	if !ok {
		return 0, c.short(field)
	}
	return v, nil
}

func (c *connectionReader) bit(field string) (bool, error) {
	v, err := c.bits(field, 1)
	return v == 1, err
}

// ranged reads an integer from least to most, n bits wide.
func (c *connectionReader) ranged(field string, least, most, n int) (int, error) {
	v, err := c.bits(field, n)
	if err != nil {
		return 0, err
	}
	if int(v) > most-least {
		return 0, &wire.ParseError{
			Field: field, Bit: c.r.Pos() - n, Expected: fmt.Sprintf("%d to %d", least, most),
			Found: fmt.Sprintf("%d", int(v)+least), Err: wire.ErrRange,
		}
	}
	return int(v) + least, nil
}

func (c *connectionReader) align() error {
	at := c.r.Pos()
	if !c.r.Align() {
		return &wire.ParseError{Field: "padding", Bit: at, Expected: "zero bits", Err: wire.ErrPadding}
	}
	return nil
}

// bytes aligns, skips n bytes and returns where they begin.
func (c *connectionReader) bytes(field string, n int) (int, error) {
	if err := c.align(); err != nil {
		return 0, err
	}
	at := c.r.Pos() / 8
	if _, ok := c.r.Bytes(n); !ok {
		return 0, c.short(field)
	}
	return at, nil
}
