package analyze

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// How probable it may be that an unrelated flow fits as well as the one that is found.
const (
	// chanceLikely is the most for a join that is likely, by the numbers alone: what silences one
	// player may also let another one appear.
	// Source: definition, rebound: at most one unrelated flow in a hundred fits as well
	chanceLikely = 0.01
	// chancePossible is the most for a join at all, by the numbers and the silence together.
	// The numbers alone must reach chanceNumbers, since silence at the right moment is no proof.
	// Source: definition, rebound: the numbers must speak for it, and the moment too
	chancePossible, chanceNumbers = 0.1, 0.25
	// rivalLikely is how many times better than the next flow the best one fits if it is likely.
	// It is rivalPossible if the flow is joined at all.
	// Source: definition, rebound: players behind one NAT may all move at once
	rivalLikely, rivalPossible = 100, 4
	// aheadFree is how many packets a side may have sent between its two addresses, in addition to
	// twice what its pace says.
	// Source: definition, rebound: a burst after a pause
	aheadFree = 32
	// unseenAck is how far an ack may be ahead of the newest packet of the peer that passed.
	// Source: definition, rebound: packets that the capture lacks
	unseenAck = 8
	// anewMost is the number below which the peer may begin anew with the new address.
	// Source: definition, rebound: its first packets may be lost
	anewMost = 32
	// ackSlack is how far an ack may go back, because headers overtake each other.
	// Source: definition, rebound: packets overtake each other by a few
	ackSlack = 4
)

// match returns the flow that f continues. own is f's identity. Flows whose two sides were silent
// for long count only if no other flow fits: there are many of them, and few go on.
func (s *Session) match(f *Flow, own *machine.Identity) (best Was, ok bool) {
	if best, ok = s.matchOf(f, own, false); !ok {
		best, ok = s.matchOf(f, own, true)
	}
	return best, ok
}

// matchOf is match among the flows of a short silence, or among all.
//
// An unrelated player has been there for any time. So its number can be any of those that the
// side has had in the old flow:
//
//	chance = (numbers as near to the expected one as the first one is) / (numbers of the side so far)
//
// Acks count in the same way: the first one must name a packet of the peer since the last ack of
// the old flow. Numbers and acks both follow a player's age, so they are not independent: the
// smallest chance counts alone. The number of flows that were compared multiplies it. That the old
// side fell silent at that moment counts for a join that is only possible, and against rivals.
func (s *Session) matchOf(f *Flow, own *machine.Identity, idle bool) (best Was, ok bool) {
	least, second, compared, shown := math.Inf(1), math.Inf(1), 0, false
	for _, shared := range []machine.Side{machine.B, machine.A} {
		h := s.hub(f.endpoint(shared))
		moved := shared.Other()
		if h == nil || f.pace[moved].packets == 0 || own.ClientKnown && own.Client != moved {
			continue
		}
		if s.compared+uint64(len(h.flows)) > rebindFree+rebindWork*s.n {
			return best, false
		}
		s.compared += uint64(len(h.flows))
		for _, old := range h.flows {
			x := comparison{new: f, old: old, moved: moved, own: own}
			if !x.fits(s, shared) || x.away > rebindSilence && !idle {
				continue
			}
			compared++
			switch was, fits := x.result(); {
			case fits == contradicted:
			case was.Certainty == machine.Certain:
				return was, true
			case x.chance < least:
				best, least, second, shown = was, x.chance, least, fits == shownByNumbers
			default:
				second = min(second, x.chance)
			}
		}
	}
	if !shown {
		return best, false
	}
	if best.Certainty != machine.Unknown { // by a key that is not proved
		return best, true
	}
	best.Chance = min(1, best.Chance*float64(compared))
	switch ratio := second / max(least, 1e-9); {
	case best.Chance <= chanceLikely && ratio >= rivalLikely:
		best.Certainty = machine.Likely
	case least*float64(compared) <= chancePossible && ratio >= rivalPossible:
		best.Certainty = machine.Possible
	default:
		return best, false
	}
	best.Reason += fmt.Sprintf("; an unrelated flow would fit as well with a chance of %s", percentText(best.Chance))
	return best, true
}

// percentText formats a chance.
func percentText(x float64) string {
	if x < 0.0001 {
		return "less than 0.01 %"
	}
	return fmt.Sprintf("%.2g %%", 100*x)
}

// comparison is a flow and another one that it may continue.
type comparison struct {
	new, old    *Flow
	moved, from machine.Side // the side that changed its address, in each of them
	own, was    *machine.Identity
	away        time.Duration // between the side's last datagram in the old flow and its first in the new one
	life        time.Duration // for how long the side had sent in the old flow
	idle        time.Duration // of away, how long its peer was silent too
	chance      float64       // that an unrelated flow fits as well, with the old side silent just then
}

// fits reports whether the old flow's side fell silent in time, and fills in the rest.
func (x *comparison) fits(s *Session, shared machine.Side) bool {
	old, f := x.old, x.new
	if old == f || old.gone || old.tracker == nil || old.Protocol != f.Protocol || old.First >= f.First ||
		old.has().next != nil && old.rare.next != f {
		return false
	}
	x.from = machine.A
	if old.origin == f.endpoint(shared) {
		x.from = machine.B
	}
	side := &old.pace[x.from]
	began := f.moving.began[x.moved]
	if x.away = began.Sub(side.last); side.packets == 0 || x.away < -rebindSlack || x.away > rebindIdle {
		return false
	}
	if x.away > rebindSilence {
		if x.idle = old.silence(x.from, began); x.idle == 0 {
			return false
		}
	}
	x.life = side.last.Sub(old.First)
	x.was = &s.identity
	*x.was = machine.Identity{}
	identify(old, x.was)
	return !x.was.ClientKnown || x.was.Client == x.from
}

// fit is what a comparison shows.
type fit uint8

const (
	contradicted   fit = iota // the flows are of two connections
	shownByTime               // nothing contradicts, and the numbers prove too little: a rival
	shownByNumbers            // or by keys
)

// result returns what the identities show.
func (x *comparison) result() (was Was, fits fit) {
	was = Was{
		ID: x.old.ID, Addr: x.old.Addr(x.from), Side: x.moved, After: max(0, x.away),
		old: x.old, from: x.from, since: x.new.moving.began[x.moved],
	}
	if k := x.own.Key; k != nil && k == x.was.Key {
		was.Certainty = machine.Likely
		was.Reason = fmt.Sprintf("the flows have the same %s", x.own.KeyName)
		if x.own.Opened {
			was.Certainty = machine.Certain
			was.Reason = fmt.Sprintf("its datagrams open with the %s of flow %d", x.own.KeyName, x.old.ID)
		}
		return was, shownByNumbers
	}
	if x.own.Began[x.moved] || x.own.Opened && x.was.Opened {
		return was, contradicted
	}
	numbers := 1.0
	for i := range x.own.Counters {
		c, before := &x.own.Counters[i], x.counterOf(x.own.Counters[i].Name)
		if c.Name == "" || before == nil {
			continue
		}
		for _, moved := range []bool{true, false} {
			chance, what, ok := x.side(c, before, moved)
			if !ok {
				return was, contradicted
			}
			if chance < numbers {
				numbers, was.Reason = chance, what
			}
		}
	}
	if x.idle > 0 {
		was.Reason += fmt.Sprintf(", after %.0f s without a packet of either side", x.idle.Seconds())
	}
	// The time that the old side had to fall silent in, by itself.
	silence := 1.0
	if x.life > 0 {
		silence = min(1, max(x.away, rebindSlack).Seconds()/x.life.Seconds())
	}
	was.Chance, x.chance = numbers, numbers*silence
	if numbers > chanceNumbers {
		return was, shownByTime
	}
	return was, shownByNumbers
}

// counterOf returns the old flow's counter of a name.
func (x *comparison) counterOf(name string) *machine.Counter {
	for i := range x.was.Counters {
		if x.was.Counters[i].Name == name {
			return &x.was.Counters[i]
		}
	}
	return nil
}

// side compares a counter of one side: of the one that moved, or of its peer. It returns the
// smallest chance that an unrelated flow fits as well, and what fits. It returns false for a
// contradiction.
func (x *comparison) side(c, before *machine.Counter, moved bool) (chance float64, what string, ok bool) {
	side, from := x.moved, x.from
	if !moved {
		side, from = side.Other(), from.Other()
	}
	if c.Endpoint && !moved {
		return 1, "", true
	}
	n, was := &c.Sides[side], &before.Sides[from]
	peer, peerWas := &c.Sides[side.Other()], &before.Sides[from.Other()]
	chance = 1
	if !moved && (x.own.Began[side] || n.Met && was.Met && n.First < anewMost && c.Distance(n.First, was.Last) < 0) {
		return 1, "", true // it took the new address for another client
	}
	if n.Met && was.Met {
		away := x.new.moving.began[side].Sub(x.old.pace[from].last)
		if !moved && away < -rebindWait {
			return 0, "", false // the peer spoke to both addresses
		}
		gap, expected, paced := c.Distance(n.First, was.Last), 1.0, 1.0
		if x.life > 0 && away > 0 {
			pace := float64(was.Span) / x.life.Seconds()
			expected += pace * away.Seconds()
			paced += pace * max(0, away-x.idle).Seconds()
		}
		if gap < -int64(c.Slack) || float64(gap) > 2*expected+aheadFree {
			return 0, "", false
		}
		if p := asNear(float64(gap), math.Round(paced)) / numbersOf(c, was.Span); p < chance {
			chance, what = p, fmt.Sprintf("%s's %ss go on from %d to %d", sideName(side), c.Name, was.Last, n.First)
		}
	}
	if n.Named && was.Named && peerWas.Met && !c.Endpoint {
		newest := peerWas.Last
		if peer.Met && c.Distance(peer.Last, newest) > 0 {
			newest = peer.Last
		}
		room, ahead := c.Distance(newest, was.NewestName), c.Distance(n.FirstNamed, was.NewestName)
		if ahead < -ackSlack || c.Distance(n.FirstNamed, newest) > unseenAck {
			return 0, "", false
		}
		if p := float64(max(room, ahead, -2*ahead, 0)+1) / numbersOf(c, peerWas.Span); p < chance {
			chance = p
			what = fmt.Sprintf("%s's acks of %ss go on from %d to %d", sideName(side), c.Name, was.NewestName, n.FirstNamed)
		}
	}
	return chance, what, true
}

// asNear returns how many gaps are as near to an expected one as this gap is. A side that sent
// nothing between its addresses goes on with gap 1, and one that kept its pace with another.
func asNear(gap, paced float64) float64 {
	near := min(math.Abs(gap-1), math.Abs(gap-paced))
	return min(2*(2*near+1), 2*near+1+math.Abs(paced-1))
}

// numbersOf returns how many numbers of a counter an unrelated player may have.
func numbersOf(c *machine.Counter, span uint64) float64 {
	return min(float64(span)+1, math.Exp2(float64(c.Bits)))
}

func sideName(x machine.Side) string { return strings.ToUpper(x.String()) }
