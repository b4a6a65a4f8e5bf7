package gaffer

import (
	"errors"
	"fmt"

	"github.com/ackscope/ackscope/wire/bits"
)

// Yojimbo says how the connection packets of one game are written: the payload of a
// reliable packet, bit-packed, low bit first.
//
//	packet   [entries 0..channels]{entry}[zero bits to a byte]
//	entry    [channel, absent with one][block 1][...]
//	 block 0 [has 1][count 1..most]{ids}{[type][body]}      reliable-ordered
//	         [has 1][count 1..most]{[type][body][block]}    unreliable
//	 block 1 [id 16][fragments][fragment][size][align][bytes], with fragment 0 [type][body]
//
// A field whose range holds one value takes no bits. The wire does not carry this
// configuration: it comes from a user's file, or from the packets (inference). Validate
// makes it ready for use. After that it must not change.
//
// Source of truth: yojimbo 1.9.1 and serialize 1.6.0.
type Yojimbo struct {
	Channels     []YojimboChannel `yaml:"channels"`
	MessageTypes int              `yaml:"message_types"`
	BlockTypes   []uint32         `yaml:"block_types"` // types whose messages carry a block

	// Bodies knows the bodies of messages. With nil, only the first type can be read.
	Bodies Bodies `yaml:"-"`
	// TypesUnknown says that the number of message types is not known. No type can be read
	// then.
	TypesUnknown bool `yaml:"-"`

	plan struct {
		ready                  bool
		entries, channel, kind int    // widths in bits
		block                  []bool // by type
		channels               []channelPlan
	}
}

// ChannelType is what a channel guarantees.
type ChannelType uint8

const (
	ReliableOrdered ChannelType = iota
	UnreliableUnordered
)

var channelTypeWords = []string{"reliable-ordered", "unreliable-unordered"}

func (c ChannelType) String() string                   { return word(channelTypeWords, c) }
func (c *ChannelType) UnmarshalText(text []byte) error { return read(channelTypeWords, text, c) }
func (c ChannelType) MarshalText() ([]byte, error)     { return []byte(c.String()), nil }

// YojimboChannel is the library's ChannelConfig: the settings that shape packets, and
// those for resends. Zeros mean the library's defaults.
type YojimboChannel struct {
	Type              ChannelType `yaml:"type"`
	DisableBlocks     bool        `yaml:"disable_blocks"`
	MaxMessages       int         `yaml:"max_messages_per_packet"` // 256
	MaxBlockSize      int         `yaml:"max_block_size"`          // bytes; 262144
	BlockFragmentSize int         `yaml:"block_fragment_size"`     // bytes; 1024
	SendQueue         int         `yaml:"send_queue"`              // messages; 1024
	ReceiveQueue      int         `yaml:"receive_queue"`           // messages; 1024
	// PacketBudget is the bytes of a packet that the channel may use; 0: all.
	PacketBudget    int     `yaml:"packet_budget"`
	ResendTime      float64 `yaml:"message_resend_time"`        // seconds; 0.1
	BlockResendTime float64 `yaml:"block_fragment_resend_time"` // seconds; 0.25
	// Doubtful says that the packets do not prove how the channel's entries are written. Then
	// what is read of them is at most likely.
	Doubtful bool `yaml:"-"`
}

// The library's limits. Hostile configurations beyond them are refused.
const (
	MaxChannels       = 64
	MaxBlockFragments = 1 << 16
	maxMessageTypes   = 1 << 16
)

type channelPlan struct {
	count, fragments, size int // widths in bits
	maxFragments           int
}

// MaxFragments returns how many fragments a block can have.
func (c *YojimboChannel) MaxFragments() int {
	return (c.MaxBlockSize + c.BlockFragmentSize - 1) / c.BlockFragmentSize
}

// Validate fills in defaults, checks the settings and makes y ready for use. Its error
// names a setting as a profile file does.
func (y *Yojimbo) Validate() error {
	if len(y.Channels) < 1 || len(y.Channels) > MaxChannels {
		return fmt.Errorf("channels: expected 1 to %d, found %d", MaxChannels, len(y.Channels))
	}
	if y.MessageTypes < 1 || y.MessageTypes > maxMessageTypes {
		return fmt.Errorf("message_types: expected 1 to %d, found %d", maxMessageTypes, y.MessageTypes)
	}
	l := &y.plan
	l.block = make([]bool, y.MessageTypes)
	for _, t := range y.BlockTypes {
		if int64(t) >= int64(y.MessageTypes) {
			return fmt.Errorf("block_types: expected types below %d, found %d", y.MessageTypes, t)
		}
		l.block[t] = true
	}
	l.channels = make([]channelPlan, len(y.Channels))
	var faults []error
	for i := range y.Channels {
		c := &y.Channels[i]
		if err := c.validate(&l.channels[i]); err != nil {
			faults = append(faults, fmt.Errorf("channels[%d].%w", i, err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	l.entries = bits.Required(0, uint64(len(y.Channels)))
	l.channel = bits.Required(0, uint64(len(y.Channels)-1))
	l.kind = bits.Required(0, uint64(y.MessageTypes-1))
	l.ready = true
	return nil
}

func (c *YojimboChannel) validate(l *channelPlan) error {
	for _, v := range []struct {
		name                  string
		value                 *int
		least, most, standard int
	}{
		{"max_messages_per_packet", &c.MaxMessages, 1, 1 << 16, 256},
		{"max_block_size", &c.MaxBlockSize, 1, 1 << 28, 256 * 1024},
		{"block_fragment_size", &c.BlockFragmentSize, 1, 1 << 16, 1024},
		{"send_queue", &c.SendQueue, 1, 1 << 15, 1024},
		{"receive_queue", &c.ReceiveQueue, 1, 1 << 15, 1024},
		{"packet_budget", &c.PacketBudget, 0, 1 << 20, 0},
	} {
		if *v.value == 0 {
			*v.value = v.standard
		}
		if *v.value < v.least || *v.value > v.most {
			return fmt.Errorf("%s: expected %d to %d, found %d", v.name, v.least, v.most, *v.value)
		}
	}
	for _, v := range []struct {
		name     string
		value    *float64
		standard float64
	}{{"message_resend_time", &c.ResendTime, 0.1}, {"block_fragment_resend_time", &c.BlockResendTime, 0.25}} {
		if *v.value == 0 {
			*v.value = v.standard
		}
		if !(*v.value > 0 && *v.value <= 3600) {
			return fmt.Errorf("%s: expected more than 0 and at most 3600 seconds, found %v", v.name, *v.value)
		}
	}
	if c.Type > UnreliableUnordered {
		return fmt.Errorf("type: unknown type %d", c.Type)
	}
	if c.MaxFragments() > MaxBlockFragments {
		return fmt.Errorf("max_block_size: %d fragments of block_fragment_size, expected at most %d", c.MaxFragments(),
			MaxBlockFragments)
	}
	l.maxFragments = c.MaxFragments()
	l.count = bits.Required(1, uint64(c.MaxMessages))
	l.fragments = bits.Required(1, uint64(l.maxFragments))
	l.size = bits.Required(1, uint64(c.BlockFragmentSize))
	if c.Type == UnreliableUnordered {
		l.size = bits.Required(1, uint64(c.MaxBlockSize))
	}
	return nil
}

// CarriesBlock reports whether messages of a type carry a block.
func (y *Yojimbo) CarriesBlock(kind uint32) bool {
	return int64(kind) < int64(len(y.plan.block)) && y.plan.block[kind]
}

// Typed reports whether the type of a message is known. Its body is at a bit of its packet,
// or at 0 if the packet was not read up to there.
func (y *Yojimbo) Typed(body int) bool {
	return body > 0 || y.MessageTypes == 1 && !y.TypesUnknown
}

// EntryBits returns the width of the count of channel entries.
func (y *Yojimbo) EntryBits() int { return y.plan.entries }

// ChannelBits returns the width of a channel's index.
func (y *Yojimbo) ChannelBits() int { return y.plan.channel }
