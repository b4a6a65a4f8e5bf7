package compare

import (
	"math"
	"slices"

	"github.com/ackscope/ackscope/figures"
)

// tell chooses the differences to tell: of a figure that differs, the ways and types in which
// it does.
func (r *Result) tell(p *pair) {
	for i := range compared {
		f := &compared[i]
		var found []*Difference
		for _, d := range r.tests {
			if d.Protocol == p.protocol && d.Figure == f.is && d.Real {
				found = append(found, d)
			}
		}
		if len(found) == 0 {
			continue
		}
		// Once the figure differs somewhere, its two ways share alpha.
		var ways []*Difference
		for _, d := range r.Table {
			if d.Protocol == p.protocol && d.Figure == f.is && d.way != bothWays && d.Chance <= alpha/2 {
				d.Real = true
				ways = append(ways, d)
			}
		}
		if len(ways) == 0 {
			ways = found
		}
		for _, d := range ways {
			r.Real = append(r.Real, p.finest(f, d)...)
		}
	}
	r.Real = lead(r.Real)
}

// finest returns the types of messages in which a figure differs, or the difference itself
// where all do, or none stands out.
func (p *pair) finest(f *figure, d *Difference) []*Difference {
	if !f.typed || d.way == bothWays {
		return []*Difference{d}
	}
	kinds := p.kinds(d.way)
	if d.Type != "" || len(kinds) < 2 {
		return []*Difference{d}
	}
	var list []*Difference
	others, most := 0, 0.0 // types with the figure, and the greatest change of those that do not differ
	for _, k := range kinds {
		x := p.difference(f, target{d.way, k})
		if math.IsNaN(x.Change) {
			continue
		}
		others++
		if x.Chance <= alpha/float64(len(kinds)) && x.Change*d.Change > 0 {
			x.Real = true
			list = append(list, x)
		} else {
			most = max(most, math.Abs(x.Change))
		}
	}
	// A few types stand out only where the others changed much less.
	if len(list) == 0 || 2*len(list) > others ||
		slices.ContainsFunc(list, func(x *Difference) bool { return math.Abs(x.Change) < 2*most }) {
		return []*Difference{d}
	}
	return list
}

// lead keeps one sentence about the times to arrival of a way and type. It prefers the 95th
// percentile, then the median, then the 99th.
func lead(list []*Difference) (out []*Difference) {
	rank := map[figures.Figure]int{figures.Arrival95: 3, figures.Arrival50: 2, figures.Arrival99: 1}
	for _, d := range list {
		better := slices.ContainsFunc(list, func(x *Difference) bool {
			return rank[d.Figure] > 0 && rank[x.Figure] > rank[d.Figure] && x.Protocol == d.Protocol && x.Way == d.Way &&
				(x.Type == d.Type || x.Type == "")
		})
		if !better {
			out = append(out, d)
		}
	}
	return out
}
