package whatif

import (
	"cmp"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// network is one direction of the captured network: the fate of each datagram,
// by when it left.
type network struct {
	sent []machine.Transit // those whose fate is known, in order of Left
	used []bool
	// Many datagrams can leave at one time: these links skip the used ones.
	next   []int32 // from index k to the first unused one at or after it
	back   []int32 // from 1 + index k to 1 + the last unused one at or before it; 0 if there is none
	oneWay time.Duration
	alike  time.Duration // datagrams that left within this time of each other count as simultaneous
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

// unused follows links to the first index that links to itself. It shortens the
// path for later calls.
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

// fate is what happens to one datagram.
type fate struct {
	lost      bool
	travel    time.Duration
	duplicate time.Duration // travel time of the network's second copy; 0 if there is none
	certainty machine.Certainty
	far       bool // no datagram of known fate left near in time: the fate is a guess
}

const (
	together = 2 * time.Millisecond
	farOff   = time.Second
)

// fate returns what happens to a datagram that leaves now: the fate of the
// captured one nearest in time. Of several simultaneous ones, each is used
// once.
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
	// Consider the nearest one on each side; if it was used, also the next
	// unused one.
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
	if d.Duplicate != 0 {
		f.duplicate = max(d.Duplicate.Sub(d.Arrives)+f.travel, 0)
	}
	return f
}
