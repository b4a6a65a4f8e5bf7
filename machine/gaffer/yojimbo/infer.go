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

// Inference is a configuration that was found from packets: the one under which
// most of them read to the last bit. What no packet shows stays undecided, and
// the configuration then has a value from the range.
//
// How it is found: message ids of a reliable-ordered channel rise without
// gaps, so of all widths of the fields before them only the right ones give ids
// that do (channels, messages per packet). Fragments of a block but the first
// are all length and bytes, so only the right widths end where the packet does.
// Bodies have no length: those of fixed size, and those of counted bytes, are
// learned from packets with one message, and must then add up in all others.
type Inference struct {
	Config *wire.Yojimbo

	Packets int // that were tried
	Read    int // of them, to the last bit
	Opaque  int // of them, up to a message whose body is not known
	Wrong   int // of them, at odds with the configuration

	TypesLeast, TypesMost int // message types; equal where decided, 0 and 0 where nothing is known
	Channels              []InferredChannel
	// Next is the next best number of channels, by packets read; 0 for none.
	Next, NextRead int
}

// InferredChannel says what of a channel was found. Ranges are inclusive.
type InferredChannel struct {
	Messages                      int // entries of messages that were seen
	MessagesLeast, MessagesMost   int // max_messages_per_packet
	Blocks                        int // block fragments that were seen
	FragmentsLeast, FragmentsMost int // of a block: max_block_size by block_fragment_size
	FragmentSize                  int // block_fragment_size; 0: not known
	Undecided                     bool
}

const (
	inferMost    = 1500 // packets that each try reads
	inferLeast   = 24   // fewer say nothing
	mostChannels = 16
	mostCount    = 12 // bits of max_messages_per_packet
	mostKinds    = 8  // bits of a message type
	idGap        = 64 // ids that may have been lost with their packets
	idBack       = 2048
	mostTries    = 800 // configurations that are tried for one number of channels
)

var errLearnedShort = &base.ParseError{Field: "body", Expected: "as much as such a body has", Err: base.ErrShort}

// Infer searches for the configuration; nil where there are too few packets, or
// none fits.
func (s *Sample) Infer() *Inference {
	if s.inferred != nil && s.of == len(s.packets) || len(s.packets) < inferLeast {
		return s.inferred
	}
	s.of = len(s.packets)
	s.inferred = s.search(nil)
	return s.inferred
}

// InferWith searches with the messages known, as a schema gives them: of known,
// the channels are what is searched for.
func (s *Sample) InferWith(known *wire.Yojimbo) *Inference {
	if s.inferred != nil && s.of == len(s.packets) || len(s.packets) < inferLeast {
		return s.inferred
	}
	s.of = len(s.packets)
	s.inferred = s.search(known)
	return s.inferred
}

// InferLike takes over what was inferred of another flow of the same game, if
// it reads every packet of this one; nil where it does not.
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

// search tries every number of channels and ranks what comes of it.
func (s *Sample) search(known *wire.Yojimbo) *Inference {
	packets := s.packets[:min(len(s.packets), inferMost)]
	var found []*Inference
	for n := 1; n <= mostChannels; n++ {
		if k := newSkeleton(packets, n); k.possible() {
			if i := k.infer(known); i != nil {
				found = append(found, i)
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
	if len(found) > 1 {
		best.Next, best.NextRead = len(found[1].Config.Channels), found[1].Read
	}
	return best
}

// merit ranks inferences: packets that read whole count, those at odds count
// against it, and fewer channels are the simpler answer.
func (i *Inference) merit() int {
	return 4*i.Read + i.Opaque - 16*i.Wrong - len(i.Config.Channels)
}

// skeleton is what the heads of packets show under one number of channels.
type skeleton struct {
	packets    []samplePacket
	n          int
	entries    int // widths in bits
	channel    int
	heads      [][]head // by channel: packets whose first entry is its
	impossible int      // packets of more entries than there are channels
	messages   []channelGuess
}

// head is the first entry of a packet.
type head struct {
	packet int
	alone  bool // the packet has no other entry
	block  bool
	pos    int // bit behind the block flag
}

// channelGuess is what a channel is taken to be.
type channelGuess struct {
	kind      wire.ChannelType
	count     int // bits
	ok, bad   int // heads that give a plausible id, and that do not
	gaps      int // ids that came to be passed over
	most      int // messages of a packet
	blocks    blockGuess
	blockBits int // width of a block's size in unreliable messages; 0: the default
	seen      int
	blockSeen int
}

func newSkeleton(packets []samplePacket, n int) *skeleton {
	k := &skeleton{packets: packets, n: n, entries: bits.Required(0, uint64(n)), channel: bits.Required(0, uint64(n-1)),
		heads: make([][]head, n)}
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

// possible reports whether the heads allow this number of channels at all.
func (k *skeleton) possible() bool {
	if k.impossible*20 > len(k.packets) {
		return false
	}
	// The last channel must have been seen: else fewer channels say the same, or
	// nothing does.
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

// infer makes the best of this number of channels.
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

// guess says what a channel is: reliable if any width before the ids makes them
// rise as ids do.
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

// rising reads the ids of a channel's heads, with that many bits of count.
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
		fine := true
		for range n {
			step, ok := relativeStep(&r)
			if !ok || step > idBack {
				fine = false
				break
			}
			last += step
		}
		if !fine {
			g.bad++
			continue
		}
		g.most = max(g.most, int(n)+1)
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

// relativeStep reads how far the next id lies ahead.
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

// config makes the configuration of the guesses.
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
	tries int // so far; the search ends at mostTries, with the best that there is
}

// score reads all packets by a configuration, or so many that it is clear that
// its merit will not pass beat.
func (t *trial) score(y *wire.Yojimbo, i *Inference, beat int) {
	i.Config, i.Packets, i.Read, i.Opaque, i.Wrong = y, len(t.packets), 0, 0, 0
	for p := range t.packets {
		if left := len(t.packets) - p; i.merit()+4*left <= beat {
			return
		}
		switch err := y.Parse(t.packets[p].payload, &t.entry); {
		case err == nil:
			i.Read++
		case errors.Is(err, wire.ErrOpaque):
			i.Opaque++
		default:
			i.Wrong++
		}
	}
}

// describe fills in what was found of the channels.
func (t *trial) describe(i *Inference) {
	for c := range t.messages {
		g := &t.messages[c]
		d := InferredChannel{Messages: g.seen, Blocks: g.blockSeen, Undecided: g.seen+g.blockSeen < learnLeast}
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
