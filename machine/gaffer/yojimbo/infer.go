package yojimbo

import (
	"cmp"
	"errors"
	"math"
	"slices"

	base "github.com/ackscope/ackscope/wire"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Inference is a configuration that was found from packets: the one under which most of
// them read to the last bit. A value that no packet shows stays undecided. The
// configuration then has a value from the range.
//
// The search uses three properties:
//
//  1. Message ids of a reliable-ordered channel rise without gaps. So only the right
//     widths of the fields before them produce such ids (channels, messages per
//     packet).
//  2. Fragments of a block, except the first, are only length and bytes. So only the
//     right widths end where the packet does.
//  3. Bodies have no length. Bodies of fixed size and bodies of counted bytes are
//     learned from packets with one message. They must then add up in all other
//     packets.
type Inference struct {
	Config *wire.Yojimbo

	Packets int // packets that were tried
	Read    int // of these, those that read to the last bit
	Opaque  int // of these, those that read up to a message with an unknown body
	Wrong   int // of these, those that contradict the configuration
	several int // of those that read to the last bit, those of several messages

	TypesLeast, TypesMost int // range of message types; equal if decided, 0 and 0 if nothing is known
	Channels              []InferredChannel
	// Next is the second best number of channels, by packets read. It is 0 if there is
	// none.
	Next, NextRead int
}

// InferredChannel is what was found about a channel. Ranges are inclusive.
type InferredChannel struct {
	Messages                      int // entries of messages that were seen
	MessagesLeast, MessagesMost   int // max_messages_per_packet
	Blocks                        int // block fragments that were seen
	FragmentsLeast, FragmentsMost int // of a block: max_block_size by block_fragment_size
	FragmentSize                  int // block_fragment_size; 0: unknown
	Undecided                     bool
}

const (
	// inferMost is how many packets each try reads at most.
	// Source: bound, the packets that a try reads
	inferMost = 1500
	// inferLeast is how many packets it takes to infer a configuration.
	// Source: measured, TestMarginsYojimbo
	inferLeast = 24
	// mostChannels is the largest number of channels that is tried.
	// Source: bound, the channel counts that are tried
	mostChannels = 16
	// mostCount is the largest width of max_messages_per_packet that is tried, in bits.
	// Source: bound, the bits of max_messages_per_packet that are tried
	mostCount = 12
	// mostKinds is the largest width of a message type that is tried, in bits.
	// Source: bound, the bits of a message type that are tried
	mostKinds = 8
	// idGap is how far ahead of the newest id a packet's first id may lie, in ids. The ids
	// between may have been lost with their packets.
	// Source: measured, TestMarginsYojimbo
	idGap = 64
	// idBack is how far behind the newest id a packet's first id may lie, in ids. It is
	// also the largest step between two ids of one packet.
	// Source: measured, TestMarginsYojimbo
	idBack = 2048
	// risingLeast is how many packets must continue the ids of a channel to show that it is
	// reliable. With fewer, its type counts as undecided.
	// Source: unmeasured, a configuration that was inferred is likely at most
	risingLeast = 8
	// mostTries is how many configurations are tried for one number of channels.
	// Source: bound, the configurations that are tried
	mostTries = 800
)

var errLearnedShort = &base.ParseError{Field: "body", Expected: "as much as such a body has", Err: base.ErrShort}

// Infer searches for the configuration. It returns nil if there are too few packets, or
// none fits.
func (s *Sample) Infer() *Inference {
	if s.inferred != nil && s.of == len(s.packets) || len(s.packets) < inferLeast {
		return s.inferred
	}
	s.of = len(s.packets)
	s.inferred = s.search(nil)
	return s.inferred
}

// InferWith searches for the channels. Its messages are those of known, as a schema has
// them.
func (s *Sample) InferWith(known *wire.Yojimbo) *Inference {
	if s.inferred != nil && s.of == len(s.packets) || len(s.packets) < inferLeast {
		return s.inferred
	}
	s.of = len(s.packets)
	s.inferred = s.search(known)
	return s.inferred
}

// InferLike adopts what was inferred from another flow of the same game, if that reads
// every packet of this flow. Otherwise it returns nil.
func (s *Sample) InferLike(other *Inference) *Inference {
	if len(s.packets) < inferLeast {
		return nil
	}
	t := &trial{skeleton: &skeleton{packets: s.packets[:min(len(s.packets), inferMost)]}}
	i := *other
	t.score(other.Config, &i, math.MinInt)
	if i.Read != i.Packets {
		return nil
	}
	s.inferred, s.of = &i, len(s.packets)
	return &i
}

// search tries every number of channels and ranks the results.
func (s *Sample) search(known *wire.Yojimbo) *Inference {
	packets := s.packets[:min(len(s.packets), inferMost)]
	var found []*Inference
	of := map[*Inference]*skeleton{}
	for n := 1; n <= mostChannels; n++ {
		if k := newSkeleton(packets, n); k.possible() {
			if i := k.infer(known); i != nil {
				found, of[i] = append(found, i), k
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortStableFunc(found, func(a, b *Inference) int { return cmp.Compare(b.merit(), a.merit()) })
	best := found[0]
	if best.Wrong*4 > best.Packets {
		return nil
	}
	if best.Config.TypesUnknown {
		of[best].prove(best.Config)
	}
	if len(found) > 1 {
		best.Next, best.NextRead = len(found[1].Config.Channels), found[1].Read
	}
	return best
}

// merit ranks inferences. Packets that read whole count for it, contradictions count
// against it. With fewer channels the answer is simpler.
func (i *Inference) merit() int {
	return 4*i.Read + i.Opaque - 16*i.Wrong - len(i.Config.Channels)
}

// skeleton is what the heads of packets show, assuming a number of channels.
type skeleton struct {
	packets    []samplePacket
	n          int
	entries    int // widths in bits
	channel    int
	heads      [][]head // by channel: packets whose first entry belongs to the channel
	impossible int      // packets that cannot have this number of channels
	messages   []channelGuess
}

// head is the first entry of a packet.
type head struct {
	packet int
	alone  bool // the packet has no other entry
	block  bool
	pos    int // bit after the block flag
}

// channelGuess is what a channel is assumed to be.
type channelGuess struct {
	kind      wire.ChannelType
	count     int // bits
	ok, bad   int // heads with a plausible id, and heads without
	gaps      int // how often ids were skipped, between packets and within one
	most      int // most messages in a packet
	blocks    blockGuess
	blockBits int // width of a block's size in unreliable messages; 0: the default
	seen      int
	blockSeen int
}

func newSkeleton(packets []samplePacket, n int) *skeleton {
	k := &skeleton{
		packets: packets, n: n, entries: bits.Required(0, uint64(n)), channel: bits.Required(0, uint64(n-1)),
		heads: make([][]head, n),
	}
	var r bits.Reader
	for i := range packets {
		r.Reset(packets[i].payload, 0)
		entries, ok := r.Bits(k.entries)
		if !ok || int(entries) > n {
			k.impossible++
			continue
		}
		if entries == 0 {
			if len(packets[i].payload) > 1 || r.Left() > 0 && !r.Align() {
				k.impossible++
			}
			continue
		}
		channel, ok := r.Bits(k.channel)
		block, ok2 := r.Bits(1)
		if !ok || !ok2 || int(channel) >= n {
			k.impossible++
			continue
		}
		k.heads[channel] = append(k.heads[channel], head{i, entries == 1, block == 1, r.Pos()})
	}
	return k
}

// possible reports whether the heads allow this number of channels.
func (k *skeleton) possible() bool {
	if k.impossible*20 > len(k.packets) {
		return false
	}
	// The last channel must have been seen. Otherwise fewer channels explain the same, or
	// no number does.
	top := 0
	for c, h := range k.heads {
		if len(h) > 0 {
			top = c
		}
	}
	simplest := k.n == 1 || bits.Required(0, uint64(k.n-1)) != k.entries ||
		bits.Required(0, uint64(max(k.n-2, 0))) != k.channel
	return top == k.n-1 || simplest
}

// infer returns the best configuration with this number of channels.
func (k *skeleton) infer(known *wire.Yojimbo) *Inference {
	k.messages = make([]channelGuess, k.n)
	for c := range k.messages {
		k.messages[c] = k.guess(c)
	}
	t := &trial{skeleton: k}
	if known != nil {
		return t.withBodies(known)
	}
	return t.withoutBodies()
}

// guess returns what a channel is. It is reliable if there is a width of the count
// before the ids with which they rise as ids do.
func (k *skeleton) guess(c int) channelGuess {
	best := channelGuess{kind: wire.UnreliableUnordered, count: standardCount}
	blocks := 0
	for _, h := range k.heads[c] {
		if h.block {
			blocks++
		}
	}
	cost := -1
	for count := 0; count <= mostCount; count++ {
		g := k.rising(c, count)
		if g.ok < 4 || g.bad*10 > g.ok {
			continue
		}
		if price := 4*g.bad + g.gaps; cost < 0 || price < cost {
			cost, best = price, g
		}
	}
	best.seen = len(k.heads[c]) - blocks
	best.blockSeen = blocks
	if blocks > 0 && (cost >= 0 || blocks == len(k.heads[c])) {
		best.kind = wire.ReliableOrdered
		best.blocks = k.guessBlocks(c)
	}
	return best
}

// rising reads the ids of a channel's heads, with count bits for the message count.
func (k *skeleton) rising(c, count int) channelGuess {
	g := channelGuess{kind: wire.ReliableOrdered, count: count}
	var top [2]int
	var met [2]bool
	var r bits.Reader
	for _, h := range k.heads[c] {
		p := &k.packets[h.packet]
		if h.block {
			continue
		}
		r.Reset(p.payload, h.pos)
		has, ok := r.Bits(1)
		n, ok2 := r.Bits(count)
		id, ok3 := r.Bits(16)
		if !ok || !ok2 || !ok3 || has == 0 || int(n) > r.Left() {
			g.bad++
			continue
		}
		first, last := int(id), int(id)
		fine, skips := true, 0
		for range n {
			step, ok := relativeStep(&r)
			if !ok || step > idBack {
				fine = false
				break
			}
			if step > 1 {
				skips++
			}
			last += step
		}
		if !fine {
			g.bad++
			continue
		}
		g.most = max(g.most, int(n)+1)
		g.gaps += skips
		if !met[p.from] {
			met[p.from], top[p.from] = true, last
			continue
		}
		ahead := int(int16(uint16(first) - uint16(top[p.from])))
		if ahead > idGap || ahead < -idBack {
			g.bad++
			continue
		}
		g.ok++
		if ahead > 1 {
			g.gaps++
		}
		if end := ahead + last - first; end > 0 {
			top[p.from] += end
		}
	}
	return g
}

// relativeStep reads the distance to the next id.
func relativeStep(r *bits.Reader) (int, bool) {
	one, ok := r.Bits(1)
	if !ok || one == 1 {
		return 1, ok
	}
	for _, s := range [...]struct{ least, most, bits int }{{2, 6, 3}, {7, 23, 5}, {24, 280, 9}, {281, 4377, 13}} {
		here, ok := r.Bits(1)
		if !ok {
			return 0, false
		}
		if here == 1 {
			v, ok := r.Bits(s.bits)
			return s.least + int(v), ok && s.least+int(v) <= s.most
		}
	}
	return 0, false
}

// config returns the configuration that the guesses make.
func (k *skeleton) config(kinds int, bodies wire.Bodies, blockTypes []uint32) (*wire.Yojimbo, error) {
	y := &wire.Yojimbo{MessageTypes: kinds, Bodies: bodies, BlockTypes: blockTypes}
	for i := range k.messages {
		g := &k.messages[i]
		c := wire.YojimboChannel{Type: g.kind, MaxMessages: 1 << g.count}
		switch b := &g.blocks; {
		case b.known:
			c.BlockFragmentSize = max(b.full, b.longest, 1<<(b.size-1)+1)
			if b.full > 0 && bits.Required(1, uint64(b.full)) == b.size {
				c.BlockFragmentSize = b.full
			}
			c.MaxBlockSize = c.BlockFragmentSize << b.fragments
		case g.kind == wire.UnreliableUnordered && g.blockBits > 0:
			c.MaxBlockSize = 1 << g.blockBits
		case g.kind == wire.ReliableOrdered:
			c.DisableBlocks = g.blockSeen == 0
		}
		y.Channels = append(y.Channels, c)
	}
	return y, y.Validate()
}

// trial tries bodies on a skeleton.
type trial struct {
	*skeleton
	entry wire.ConnectionPacket
	tries int // so far; the search ends at mostTries, with the best result so far
}

// score reads all packets by a configuration. It stops early once the merit can no
// longer exceed beat.
func (t *trial) score(y *wire.Yojimbo, i *Inference, beat int) {
	i.Config, i.Packets, i.Read, i.Opaque, i.Wrong, i.several = y, len(t.packets), 0, 0, 0, 0
	for p := range t.packets {
		if left := len(t.packets) - p; i.merit()+4*left <= beat {
			return
		}
		switch err := y.Parse(t.packets[p].payload, &t.entry); {
		case err == nil:
			i.Read++
			if len(t.entry.Messages) > 1 {
				i.several++
			}
		case errors.Is(err, wire.ErrOpaque):
			i.Opaque++
		default:
			i.Wrong++
		}
	}
}

// undecided reports whether the packets of a channel are too few to show its type.
func (g *channelGuess) undecided() bool {
	rises := g.kind == wire.ReliableOrdered && g.blockSeen == 0
	return g.seen+g.blockSeen < learnLeast || rises && g.ok < risingLeast
}

// describe fills in what was found about the channels.
func (t *trial) describe(i *Inference) {
	for c := range t.messages {
		g := &t.messages[c]
		d := InferredChannel{Messages: g.seen, Blocks: g.blockSeen, Undecided: g.undecided()}
		shown := g.kind == wire.ReliableOrdered && g.ok > 0 || g.kind == wire.UnreliableUnordered && i.TypesMost > 0
		if width := bits.Required(1, uint64(i.Config.Channels[c].MaxMessages)); shown && !d.Undecided {
			d.MessagesLeast, d.MessagesMost = max(1<<width/2+1, g.most, 1), 1<<width
		}
		if b := &g.blocks; b.known {
			d.FragmentsLeast, d.FragmentsMost = max(1<<b.fragments/2+1, b.most, 1), 1<<b.fragments
			if b.full > 0 {
				d.FragmentSize = b.full
			}
		}
		i.Channels = append(i.Channels, d)
	}
}
