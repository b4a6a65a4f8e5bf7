package whatif

import (
	"cmp"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// network is one direction of the captured network: what became of what left
// when.
type network struct {
	sent []machine.Transit // whose fate is known, by Left
	used []bool
	// Very many can leave at one time: links lead over those that were used.
	next   []int32 // from index k to the first at or after it that is not used
	back   []int32 // from 1 + index k to 1 + the last at or before it that is not used; 0 for none
	oneWay time.Duration
	alike  time.Duration // what left within this of each other left together
}

func newNetwork(x *machine.TraceSide, oneWay time.Duration) network {
	n := network{oneWay: oneWay, alike: max(together, x.Tick/2)}
	for _, d := range x.Sent {
		if d.Fate != machine.Unanswered {
			n.sent = append(n.sent, d)
		}
	}
	n.used = make([]bool, len(n.sent))
	n.next, n.back = make([]int32, len(n.sent)+1), make([]int32, len(n.sent)+1)
	for i := range n.next {
		n.next[i], n.back[i] = int32(i), int32(i)
	}
	return n
}

// use marks a datagram's fate as used.
func (n *network) use(k int) {
	n.used[k] = true
	n.next[k], n.back[k+1] = int32(k+1), int32(k)
}

// unused follows links to the first index that stands for itself, and shortens
// the way for the next one who comes along.
func unused(links []int32, k int) int {
	end := int32(k)
	for links[end] != end {
		end = links[end]
	}
	for at := int32(k); links[at] != end; {
		at, links[at] = links[at], end
	}
	return int(end)
}

// fate is what becomes of one datagram.
type fate struct {
	lost      bool
	travel    time.Duration
	again     time.Duration // of a copy that the network makes; 0 for none
	certainty machine.Certainty
	far       bool // nothing of a known fate left near in time: the fate is a guess
}

const (
	together = 2 * time.Millisecond
	farOff   = time.Second
)

// fate returns what becomes of a datagram that leaves now: the same as became of
// the captured one nearest in time. Of several as near, each serves once.
func (n *network) fate(now machine.Instant) fate {
	i, _ := slices.BinarySearchFunc(n.sent,
		now, func(d machine.Transit, at machine.Instant) int { return cmp.Compare(d.Left, at) })
	best, away := -1, time.Duration(0)
	consider := func(k int) {
		if k < 0 || k >= len(n.sent) {
			return
		}
		off := max(n.sent[k].Left.Sub(now), now.Sub(n.sent[k].Left))
		if best < 0 || off < away || n.used[best] && !n.used[k] && off <= away+n.alike {
			best, away = k, off
		}
	}
	// The nearest on each side, and where that was used already, the next that was not.
	consider(i)
	if i < len(n.sent) && n.used[i] {
		consider(unused(n.next, i))
	}
	consider(i - 1)
	if best >= 0 && n.used[best] {
		consider(unused(n.back, i) - 1)
	}
	if best < 0 || away > farOff {
		return fate{travel: n.oneWay, far: true}
	}
	n.use(best)
	d := &n.sent[best]
	f := fate{lost: d.Fate == machine.No, travel: max(d.Arrives.Sub(d.Left), 0), certainty: d.Certainty}
	if d.Again != 0 {
		f.again = max(d.Again.Sub(d.Arrives)+f.travel, 0)
	}
	return f
}
