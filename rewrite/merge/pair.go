package merge

import (
	"cmp"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// place is a position of a content in one capture.
type place struct {
	content uint64
	flow    int32
	index   int32
	side    machine.Side
	single  bool // the content is unique in the flow
}

// places returns what a tap saw, sorted by content, and marks contents that are
// unique in their flow.
func (t *Tap) places() []place {
	n := 0
	for _, f := range t.Flows {
		n += len(f.passed[0]) + len(f.passed[1])
	}
	list := make([]place, 0, n)
	for i, f := range t.Flows {
		for side, passed := range f.passed {
			for j := range passed {
				list = append(list, place{content: passed[j].content, flow: int32(i), index: int32(j), side: machine.Side(side)})
			}
		}
	}
	slices.SortFunc(list, func(x, y place) int {
		return cmp.Or(cmp.Compare(x.content, y.content), cmp.Compare(x.flow, y.flow), cmp.Compare(x.side, y.side),
			cmp.Compare(x.index, y.index))
	})
	alike := func(i, j int) bool {
		return j >= 0 && j < len(list) && list[i].content == list[j].content && list[i].flow == list[j].flow
	}
	for i := range list {
		list[i].single = !alike(i, i-1) && !alike(i, i+1)
	}
	return list
}

// common identifies a flow of one tap and a flow of the other that share
// contents.
type common struct {
	flows [2]int32
	cross bool
}

// manyFlows is the largest number of flows of a tap that may have a content
// that serves to identify flows. Some captures have a packet twice, once on
// each leg of a relay. A content in very many flows identifies none.
const manyFlows = 8

// pair finds the flows that are the same: those that share the most packets
// with contents that are unique in both. A flow is in at most one pair.
func (m *Merged) pair() {
	a, b := m.Taps[0].places(), m.Taps[1].places()
	shared := map[common]*sharing{}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i].content < b[j].content:
			i++
		case a[i].content > b[j].content:
			j++
		default:
			ni, nj := run(a, i), run(b, j)
			if flowsOf(a[i:ni]) <= manyFlows && flowsOf(b[j:nj]) <= manyFlows {
				share(shared, a[i:ni], b[j:nj])
			}
			i, j = ni, nj
		}
	}
	keys := make([]common, 0, len(shared))
	for k := range shared {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y common) int {
		nx, ny := shared[x], shared[y]
		return cmp.Or(cmp.Compare(ny.single[0]+ny.single[1], nx.single[0]+nx.single[1]), cmp.Compare(ny.all, nx.all),
			cmp.Compare(x.flows[0], y.flows[0]), cmp.Compare(x.flows[1], y.flows[1]))
	})
	var taken [2]map[int32]bool
	taken[0], taken[1] = map[int32]bool{}, map[int32]bool{}
	for _, k := range keys {
		if taken[0][k.flows[0]] || taken[1][k.flows[1]] {
			continue
		}
		taken[0][k.flows[0]], taken[1][k.flows[1]] = true, true
		m.Pairs = append(m.Pairs, &Pair{
			Flows: [2]*Flow{m.Taps[0].Flows[k.flows[0]], m.Taps[1].Flows[k.flows[1]]},
			Cross: k.cross, common: shared[k].single,
		})
	}
	slices.SortFunc(m.Pairs, func(x, y *Pair) int { return cmp.Compare(x.Flows[0].ID, y.Flows[0].ID) })
	for i, t := range m.Taps {
		m.Unfound[i] = len(t.Flows) - len(taken[i])
	}
}

// run returns the end of the places with the content of place i.
func run(list []place, i int) int {
	content := list[i].content
	for i < len(list) && list[i].content == content {
		i++
	}
	return i
}

// sharing is how much a flow of one tap and a flow of the other have in common.
type sharing struct {
	single [2]int // contents that are unique in both, by side as named at tap A
	all    int    // contents
}

// share counts one content for all the flows that have it.
func share(shared map[common]*sharing, a, b []place) {
	for i, x := range a {
		if i > 0 && a[i-1].flow == x.flow && a[i-1].side == x.side {
			continue // counted with the first
		}
		for j, y := range b {
			if j > 0 && b[j-1].flow == y.flow && b[j-1].side == y.side {
				continue
			}
			key := common{[2]int32{x.flow, y.flow}, x.side != y.side}
			if shared[key] == nil {
				shared[key] = new(sharing)
			}
			shared[key].all++
			if x.single && y.single {
				shared[key].single[x.side]++
			}
		}
	}
}

// flowsOf counts the flows among the places of one content.
func flowsOf(list []place) (n int) {
	for i := range list {
		if i == 0 || list[i-1].flow != list[i].flow {
			n++
		}
	}
	return n
}

// singles returns the packets of a side that are unique at both taps, as
// indexes into what tap A and tap B saw.
func (p *Pair) singles(s machine.Side) (pairs [][2]int32) {
	sorted := func(tap int) []place {
		passed := p.passed(tap, s)
		list := make([]place, len(passed))
		for i := range passed {
			list[i] = place{content: passed[i].content, index: int32(i)}
		}
		slices.SortFunc(list,
			func(x, y place) int { return cmp.Or(cmp.Compare(x.content, y.content), cmp.Compare(x.index, y.index)) })
		return list
	}
	a, b := sorted(0), sorted(1)
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch content := a[i].content; {
		case content < b[j].content:
			i++
		case content > b[j].content:
			j++
		default:
			ni, nj := run(a, i), run(b, j)
			if ni == i+1 && nj == j+1 {
				pairs = append(pairs, [2]int32{a[i].index, b[j].index})
			}
			i, j = ni, nj
		}
	}
	if len(pairs) == 0 {
		pairs = alike(p.passed(0, s), p.passed(1, s), a, b)
	}
	slices.SortFunc(pairs, func(x, y [2]int32) int { return cmp.Compare(x[0], y[0]) })
	return pairs
}

const (
	mostAlike = 1 << 16                // pairs of packets of one content that are examined
	together  = 100 * time.Millisecond // how much the delays of matching packets may differ
)

// alike pairs packets of a flow that repeats the same contents. It pairs those
// whose distance in time is that of most packets with the same content. a and b
// are sorted by content.
func alike(up, down []passage, a, b []place) (pairs [][2]int32) {
	type candidate struct {
		apart time.Duration
		pair  [2]int32
	}
	var list []candidate
	for i, j := 0, 0; i < len(a) && j < len(b) && len(list) < mostAlike; {
		switch {
		case a[i].content < b[j].content:
			i++
		case a[i].content > b[j].content:
			j++
		default:
			ni, nj := run(a, i), run(b, j)
			for _, x := range a[i:ni] {
				for _, y := range b[j:min(nj, j+mostAlike)] {
					list = append(list, candidate{down[y.index].at.Sub(up[x.index].at), [2]int32{x.index, y.index}})
				}
				if len(list) >= mostAlike {
					break
				}
			}
			i, j = ni, nj
		}
	}
	slices.SortFunc(list, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(x.apart, y.apart), cmp.Compare(x.pair[0], y.pair[0]), cmp.Compare(x.pair[1], y.pair[1]))
	})
	first, most := 0, 0
	for i, j := 0, 0; j < len(list); j++ {
		for list[j].apart-list[i].apart > together {
			i++
		}
		if j-i+1 > most {
			first, most = i, j-i+1
		}
	}
	used := [2]map[int32]bool{{}, {}}
	for _, c := range list[first : first+most] {
		if !used[0][c.pair[0]] && !used[1][c.pair[1]] {
			used[0][c.pair[0]], used[1][c.pair[1]] = true, true
			pairs = append(pairs, c.pair)
		}
	}
	return pairs
}
