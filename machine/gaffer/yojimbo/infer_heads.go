package yojimbo

import (
	"bytes"

	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Without the number of message types, no packet with messages reads to its last bit. What
// stands before the first type is read all the same: the channel, the count of messages and
// their ids. This file asks whether the packets prove that reading. They do if
//
//  1. the ids behave as those of a reliable channel and as nothing else does,
//  2. no other width of the count gives such ids,
//  3. no other number of channels is possible.

const (
	// severalLeast is how many packets must hold several messages whose new ids continue those
	// before. One in two fits by chance.
	// Source: unmeasured, TestProvedHeads proves no wrong reading of games made at random
	severalLeast = 24
	// aloneLeast is how many packets of one message must differ where a packet of several has
	// its second id. Else a constant bit of the body could pass for that id.
	// Source: unmeasured, TestProvedHeads proves no wrong reading of games made at random
	aloneLeast = 8
	// repeatedLeast is how many packets must repeat an older one of their side, from the id to
	// the last bit, behind newer ids. Only a reliable channel sends so.
	// Source: unmeasured, TestProvedHeads proves no wrong reading of games made at random
	repeatedLeast = 8
	// atOdds is how many packets must contradict a reading, besides one in atOddsShare, to
	// exclude it. The packets are authentic, so a single one would do if nothing was lost.
	// Source: unmeasured, TestProvedHeads proves no wrong reading of games made at random
	atOdds = 8
	// atOddsShare is the share of packets that must contradict a reading, as one in so many.
	// Source: unmeasured, TestProvedHeads proves no wrong reading of games made at random
	atOddsShare = 32
	// fragmentsLeast is how many block fragments must end where their packets do.
	// Source: unmeasured, TestProvedHeads proves no wrong reading of games made at random
	fragmentsLeast = 8
	// widestCount is the largest width of max_messages_per_packet, in bits.
	// Source: bound, the bits of max_messages_per_packet that are compared
	widestCount = 16
)

// prove takes the doubt from the channels whose entries are proved to begin as y says.
func (k *skeleton) prove(y *wire.Yojimbo) {
	if !k.onlyNumber() {
		return
	}
	for c := range y.Channels {
		g := &k.messages[c]
		if g.blockSeen > 0 && !k.onlyBlocks(c) {
			return // an entry behind such a block may begin elsewhere
		}
		if g.kind == wire.ReliableOrdered && k.reliable(c) && k.onlyCount(c) {
			y.Channels[c].Doubtful = false
		}
	}
}

// reliable reports whether the ids of a channel behave as those of a reliable channel. The
// messages of an unreliable one may begin with a number that rises as well.
func (k *skeleton) reliable(c int) bool {
	var (
		r        bits.Reader
		top      [2]int
		met      [2]bool
		once     [2]map[uint16][]byte // packets of one message and one entry, by id
		several  int                  // packets whose new ids, one of them not the first, continue those before
		broken   int                  // packets of several messages whose new ids do not
		alone    int                  // packets of one message with a 0 behind its id
		repeated int
	)
	once[0], once[1] = map[uint16][]byte{}, map[uint16][]byte{}
	count := k.messages[c].count
	for _, h := range k.heads[c] {
		if h.block {
			continue
		}
		p := &k.packets[h.packet]
		r.Reset(p.payload, h.pos)
		r.Bits(1)
		n, _ := r.Bits(count)
		id, ok := r.Bits(16)
		if !ok || int(n) > r.Left() {
			continue
		}
		if !met[p.from] {
			met[p.from], top[p.from] = true, int(id)
		}
		ahead := int(int16(uint16(id) - uint16(top[p.from])))
		if n == 0 {
			if bit, ok := r.Bits(1); ok && bit == 0 {
				alone++
			}
			if was, ok := once[p.from][uint16(id)]; h.alone && ok && ahead < 0 && bytes.Equal(was, p.payload) {
				repeated++
			}
			if h.alone {
				once[p.from][uint16(id)] = p.payload
			}
			top[p.from] += max(ahead, 0)
			continue
		}
		newest, last, fits := top[p.from], top[p.from]+ahead, true
		if last > newest {
			fits, newest = last == newest+1, last
		}
		for range n {
			step, ok := relativeStep(&r)
			if last += step; !ok {
				fits = false
				break
			}
			if last > newest {
				fits, newest = fits && last == newest+1, last
			}
		}
		switch {
		case !fits:
			broken++
		case last > top[p.from]:
			several++
		}
		if last-top[p.from] <= idBack {
			top[p.from] = max(top[p.from], last)
		}
	}
	return repeated >= repeatedLeast || several >= severalLeast && broken*4 <= several && alone >= aloneLeast
}

// onlyCount reports whether no other width of the count gives ids that rise without gaps.
func (k *skeleton) onlyCount(c int) bool {
	g := &k.messages[c]
	if g.ok < inferLeast {
		return false
	}
	for count := 0; count <= widestCount; count++ {
		if count == g.count {
			continue
		}
		rival := k.rising(c, count)
		odds := 4*rival.bad + rival.gaps
		if odds < 2*(4*g.bad+g.gaps)+atOdds || odds*4 < g.ok+g.bad {
			return false
		}
	}
	return true
}

// onlyBlocks reports whether no other widths give fragments that end where their packets do.
func (k *skeleton) onlyBlocks(c int) bool {
	g := &k.messages[c].blocks
	if !g.known {
		return false
	}
	for size := 1; size <= 16; size++ {
		for fragments := 0; fragments <= 16; fragments++ {
			rival := blockGuess{fragments: fragments, size: size}
			ends := k.fragmentsEnd(c, &rival)
			if same := fragments == g.fragments && size == g.size; same && ends < fragmentsLeast || !same && ends >= 0 {
				return false
			}
		}
	}
	return true
}

// onlyNumber reports whether the packets contradict every other number of channels. Numbers
// whose fields have the same widths read alike.
func (k *skeleton) onlyNumber() bool {
	for n := 1; n <= wire.MaxChannels; n++ {
		entries, channel := bits.Required(0, uint64(n)), bits.Required(0, uint64(n-1))
		if n < wire.MaxChannels && bits.Required(0, uint64(n+1)) == entries && bits.Required(0, uint64(n)) == channel {
			continue // the next number reads alike, and allows more
		}
		if entries == k.entries && channel == k.channel {
			continue
		}
		if newSkeleton(k.packets, n).odds() < atOdds+len(k.packets)/atOddsShare {
			return false
		}
	}
	return true
}

// odds counts the packets that contradict the number of channels. Some cannot have it. Some have
// an entry with neither messages nor a block. In some, the id of a block does not rise.
func (k *skeleton) odds() int {
	odds := k.impossible
	var r bits.Reader
	for _, heads := range k.heads {
		var met [2]bool
		var top [2]uint16
		for _, h := range heads {
			p := &k.packets[h.packet]
			r.Reset(p.payload, h.pos)
			if !h.block {
				if has, ok := r.Bits(1); !ok || has == 0 {
					odds++
				}
				continue
			}
			id, ok := r.Bits(16)
			ahead := int(int16(uint16(id) - top[p.from]))
			switch {
			case !ok:
				odds++
			case !met[p.from]:
				met[p.from], top[p.from] = true, uint16(id)
			case ahead > idGap || ahead < -idBack:
				odds++
			case ahead > 0:
				top[p.from] = uint16(id)
			}
		}
	}
	return odds
}
