package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/ackscope/ackscope/machine"
)

// Finding is a rule that fired before or after.
type Finding struct {
	Protocol      string
	Way           string // of the side that it is about
	Rule          *machine.Rule
	Before, After uint64     // occurrences
	Rates         [2]float64 // of them a minute, before and after
	Chance        float64    // that chance alone shows such a change; NaN if it cannot be told
	Real          bool

	way way
}

// Kind says how a finding differs: "only after", "only before", "more often", "less often"
// or "as often".
func (f *Finding) Kind() string {
	switch {
	case f.Before == 0:
		return "only after"
	case f.After == 0:
		return "only before"
	case f.Rates[1] > f.Rates[0]:
		return "more often"
	case f.Rates[1] < f.Rates[0]:
		return "less often"
	}
	return "as often"
}

// Worse reports whether a real difference is for the worse: a warning or an error that
// comes more often.
func (f *Finding) Worse() bool {
	return f.Real && f.Rates[1] > f.Rates[0] && f.Rule.Severity >= machine.Warn
}

// findings compares how often rules fired.
func (p *pair) findings() (list []*Finding) {
	type key struct {
		rule *machine.Rule
		way  way
	}
	found := map[key]*Finding{}
	var hits [2]map[key][]bool // by block
	samples := [2]*sample{p.before, p.after}
	for i, s := range samples {
		hits[i] = map[key][]bool{}
		seconds := 0.0
		for j := range s.units {
			seconds += s.units[j].seconds
			for w, x := range s.units[j].ways {
				for rule, n := range x.rules {
					k := key{rule, way(w)}
					f := found[k]
					if f == nil {
						f = &Finding{Protocol: p.protocol, Way: k.way.String(), Rule: rule, Chance: math.NaN(), way: k.way}
						found[k] = f
						list = append(list, f)
					}
					*[]*uint64{&f.Before, &f.After}[i] += uint64(n)
					if hits[i][k] == nil {
						hits[i][k] = make([]bool, len(s.units)/s.block+1)
					}
					hits[i][k][j/s.block] = true
				}
			}
		}
		for _, f := range found {
			if n := [2]uint64{f.Before, f.After}[i]; seconds > 0 {
				f.Rates[i] = 60 * float64(n) / seconds
			}
		}
	}
	for k, f := range found {
		if p.short {
			continue
		}
		// How the frames fall decides whether timers run out early, which a few runs do not show.
		if f.Rule.Resend != "" && !p.before.byFlow {
			continue
		}
		var shares [2][2]int // blocks with it, and all
		for i, s := range samples {
			for _, hit := range hits[i][k] {
				if hit {
					shares[i][0]++
				}
			}
			shares[i][1] = max(shares[i][0], int(math.Ceil(s.blocks)))
		}
		f.Chance = fisher(shares[0][0], shares[0][1], shares[1][0], shares[1][1])
	}
	slices.SortFunc(list, func(x, y *Finding) int {
		return cmp.Or(cmp.Compare(y.Rule.Severity, x.Rule.Severity), cmp.Compare(x.Rule.ID, y.Rule.ID),
			cmp.Compare(x.way, y.way))
	})
	return list
}
