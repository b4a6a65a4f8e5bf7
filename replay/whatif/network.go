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
	sent   []machine.Transit // whose fate is known, by Left
	used   []bool
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
	return n
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

// fate gives what becomes of a datagram that leaves now: the same as became of
// the captured one nearest in time. Of several as near, each serves once.
func (n *network) fate(now machine.Instant) fate {
	i, _ := slices.BinarySearchFunc(n.sent, now, func(d machine.Transit, at machine.Instant) int { return cmp.Compare(d.Left, at) })
	best, away := -1, time.Duration(0)
	consider := func(k int) bool {
		off := max(n.sent[k].Left.Sub(now), now.Sub(n.sent[k].Left))
		switch {
		case best < 0, off < away, n.used[best] && !n.used[k] && off <= away+n.alike:
			best, away = k, off
		}
		return off <= away+n.alike && n.used[best]
	}
	for k := i; k < len(n.sent) && consider(k); k++ {
	}
	for k := i - 1; k >= 0 && consider(k); k-- {
	}
	if best < 0 || away > farOff {
		return fate{travel: n.oneWay, far: true}
	}
	n.used[best] = true
	d := &n.sent[best]
	f := fate{lost: d.Fate == machine.No, travel: max(d.Arrives.Sub(d.Left), 0), certainty: d.Certainty}
	if d.Again != 0 {
		f.again = max(d.Again.Sub(d.Arrives)+f.travel, 0)
	}
	return f
}
