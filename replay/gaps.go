package replay

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// captureGaps looks for proof that the capture lacks packets of a side at the tap. A gap is a
// number that did not pass the tap, among numbers that did, and that the peer acknowledges
// all the same. So two ends agree on it. One wrong header looks like a gap, so it takes
// several.
type captureGaps struct {
	holes int
	stage machine.Stage
	near  [2]bool
	asked [2]map[uint32]bool
	top   [2]uint32
	met   [2]bool
	named map[uint32]bool
}

const (
	holesProve  = 2
	absentProve = 6
	rulesProve  = 3

	holeSpan  = 1024 // how far behind the newest number a late answer may lie
	holeDense = 56   // of the 64 numbers before it, how many must have passed
)

func (g *captureGaps) begin(f *analyze.Flow) {
	if f.Protocol.NewStage == nil {
		return
	}
	if s, err := f.Protocol.NewStage(f.Config()); err == nil {
		g.stage = s
	}
	for i := range g.near {
		g.near[i] = f.Facts().Vantage.Near(machine.Side(i))
		g.asked[i] = map[uint32]bool{}
	}
	g.named = map[uint32]bool{}
}

func (g *captureGaps) observe(d *machine.Datagram) {
	if g.stage == nil {
		return
	}
	s := g.stage.Purpose(d)
	if s.Kind != 0 {
		return
	}
	switch s.Role {
	case machine.RoleAsks:
		if !g.near[d.From] {
			return
		}
		g.asked[d.From][s.ID] = true
		if ahead := s.ID - g.top[d.From]; !g.met[d.From] || ahead < 1<<14 {
			g.met[d.From], g.top[d.From] = true, s.ID
		}
		delete(g.asked[d.From], s.ID-4*holeSpan)
	case machine.RoleAnswers:
		from := d.From.Other()
		behind := g.top[from] - s.ID
		if !g.met[from] || g.asked[from][s.ID] || g.named[s.ID] || behind == 0 || behind > holeSpan {
			return
		}
		passed := 0
		for n := range uint32(64) {
			if g.asked[from][s.ID-1-n] {
				passed++
			}
		}
		if passed >= min(holeDense, int(s.ID)-2) && passed > 0 {
			g.named[s.ID] = true
			g.holes++
		}
	default:
	}
}

// proven reports whether the capture is known to lack packets. Either two ends agree on gaps, or
// both ends of flows seem to break many different rules at once. All of these breaches rest
// on an absence, and no single fault explains so many rules.
func (c *recheck) proven() bool {
	holes, sides, rules := 0, [2]uint64{}, map[*machine.Rule]bool{}
	for _, x := range c.flows {
		holes += x.gaps.holes
		if len(x.lossy) == 0 || x.lossy[0] == nil {
			continue
		}
		f := x.lossy[0]
		for s, n := range f.sides {
			sides[s] += n
		}
		for rule := range f.rules {
			rules[rule] = true
		}
	}
	return holes >= holesProve || min(sides[0], sides[1]) >= 2 && sides[0]+sides[1] >= absentProve &&
		len(rules) >= rulesProve
}
