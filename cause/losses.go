package cause

import (
	"math"
	"slices"
)

// lossWorth is the least difference of losses that is told: a percentage point. Players
// notice less than that hardly, and the limit of steady loss is 2 %.
// Source: definition, common cause: half the limit of the rule "steady-loss"
const lossWorth = 0.01

// lossTimes is how many times the loss of the others a group or a player loses at least.
// Source: definition, common cause: a loss stands out at one and a half times the usual one
const lossTimes = 1.5

// clipSpreads bounds what one flow adds to the score of a group, in spreads.
// Source: definition, common cause: chance puts no flow of a billion beyond six spreads
const clipSpreads = 6

// dealtSurprise is how rare the losses of a group must be when chance deals them. It is larger
// than surprise. Four flows of 40 come together in one group once in 9,000 deals, so no loss of
// theirs is much rarer.
// Source: definition, common cause: a group stands out where chance explains it once in 1,000
const dealtSurprise = 1e-3

// losing is a group of flows that lose more than the others.
type losing struct {
	group *group  // nil for one flow
	flow  int32   // that flow
	hit   []int32 // flows whose loss stands out, in the group or outside
	in    int     // of them, how many lie in the group
	least float64 // their losses
	most  float64
	usual float64 // the median of the others
	p     float64
}

// rates are the losses of the flows of one direction. Their squares' arcs spread alike at all
// losses. Source: M. F. Freeman and J. W. Tukey, Annals of Mathematical Statistics 21, 1950.
type rates struct {
	flows []int32 // those whose loss is known
	share []float64
	arc   []float64
	noise []float64 // the spread that the arc has from the number of packets alone
}

func newRates(list []Flow, way Way) *rates {
	r := &rates{}
	for i := range list {
		f := &list[i]
		if f.Sent[way] <= 0 {
			continue
		}
		share := min(1, max(0, f.Lost[way]/f.Sent[way]))
		r.flows = append(r.flows, int32(i))
		r.share = append(r.share, share)
		r.arc = append(r.arc, math.Asin(math.Sqrt(share)))
		r.noise = append(r.noise, 0.5/math.Sqrt(f.Sent[way]))
	}
	return r
}

// median returns the middle of a list, which it sorts.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// spread returns the middle of the arcs, and how far a flow usually lies from it. That is the
// median deviation, and at least the noise of its packets.
func (r *rates) spread() (middle, width float64) {
	middle = median(slices.Clone(r.arc))
	off := make([]float64, len(r.arc))
	for i, a := range r.arc {
		off[i] = math.Abs(a - middle)
	}
	const normal = 1.4826 // from the median deviation to the standard deviation
	return middle, max(normal*median(off), median(slices.Clone(r.noise)))
}

// compare finds the group that loses more than the other flows, or else the one player. It
// returns nil if there is neither.
func (r *rates) compare(all []group, total int) *losing {
	if len(r.flows) < 2*groupLeast {
		return nil
	}
	place := make([]int32, total) // of a flow in r, plus one
	for i, f := range r.flows {
		place[f] = int32(i) + 1
	}
	var list []group // in places of r
	var from []*group
	for i := range all {
		g := group{kind: all[i].kind, name: all[i].name}
		for _, f := range all[i].flows {
			if place[f] > 0 {
				g.flows = append(g.flows, place[f]-1)
			}
		}
		if n := len(g.flows); n >= groupLeast && n < len(r.flows) {
			list, from = append(list, g), append(from, &all[i])
		}
	}
	middle, width := r.spread()
	score := make([]float64, len(r.arc))
	for i, a := range r.arc {
		score[i] = (a - middle) / width
	}
	if i, z := highest(score, list); i >= 0 {
		if p := rarity(z, dealt(score, list), 0.1); p <= dealtSurprise {
			if x := r.stands(list[i].flows, p); x != nil {
				x.group = from[i]
				return x
			}
		}
	}
	return r.alone(score)
}

// highest returns the group whose mean score lies highest above that of the other flows, in
// standard errors. It returns -1 if there is no group.
func highest(score []float64, list []group) (best int, most float64) {
	sum := 0.0
	for _, s := range score {
		sum += clip(s)
	}
	best, most = -1, math.Inf(-1)
	for i := range list {
		in := 0.0
		for _, f := range list[i].flows {
			in += clip(score[f])
		}
		n, m := float64(len(list[i].flows)), float64(len(score)-len(list[i].flows))
		if z := (in/n - (sum-in)/m) / math.Sqrt(1/n+1/m); z > most {
			best, most = i, z
		}
	}
	return best, most
}

// clip bounds what one flow adds to a group: one bad player does not make a bad network.
func clip(score float64) float64 { return min(clipSpreads, max(-clipSpreads, score)) }

// dealt returns the highest score of a group in each round of chance, which deals the losses
// to the flows anew.
func dealt(score []float64, list []group) []float64 {
	chance, dealt, maxima := newChance(), slices.Clone(score), make([]float64, rounds)
	for r := range maxima {
		chance.Shuffle(len(dealt), func(i, j int) { dealt[i], dealt[j] = dealt[j], dealt[i] })
		_, maxima[r] = highest(dealt, list)
	}
	return maxima
}

// stands says by how much the flows of a group stand out. It returns nil if it is too little,
// or if it is less than half of them.
func (r *rates) stands(flows []int32, p float64) *losing {
	inside := make([]bool, len(r.flows))
	var in, out []float64
	for _, f := range flows {
		inside[f] = true
	}
	for i, s := range r.share {
		if inside[i] {
			in = append(in, s)
		} else {
			out = append(out, s)
		}
	}
	x := &losing{usual: median(out), p: p, least: 1}
	mine := median(in)
	if mine-x.usual < lossWorth || mine < lossTimes*x.usual {
		return nil
	}
	limit := (mine + x.usual) / 2
	for i, s := range r.share {
		if s < limit {
			continue
		}
		x.hit = append(x.hit, r.flows[i])
		if inside[i] {
			x.in++
			x.least, x.most = min(x.least, s), max(x.most, s)
		}
	}
	return x
}

// alone returns the one flow that loses more than all others.
func (r *rates) alone(score []float64) *losing {
	worst, count, p := -1, 0, 0.0
	for i, z := range score {
		// How often the largest of as many scores is as large by chance.
		q := float64(len(score)) * math.Erfc(z/math.Sqrt2) / 2
		if q > surprise {
			continue
		}
		if count++; worst < 0 || z > score[worst] {
			worst, p = i, q
		}
	}
	if count != 1 {
		return nil
	}
	others := append(slices.Clone(r.share[:worst]), r.share[worst+1:]...)
	usual, share := median(others), r.share[worst]
	if share-usual < lossWorth || share < lossTimes*usual {
		return nil
	}
	return &losing{
		flow: r.flows[worst], hit: []int32{r.flows[worst]}, in: 1, least: share, most: share, usual: usual, p: p,
	}
}
