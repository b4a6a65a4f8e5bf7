package analyze

import (
	"hash/maphash"
	"math/bits"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// table finds the flow of a packet. It is a hash table with linear probing, of a power of two
// places. A packet of 100,000 flows in turn waits for two cache lines: that of its place, and that
// of its flow.
type table struct {
	places []tablePlace
	count  int
	seeds  [2]uint64 // secret, so that an attacker cannot forge endpoints that share a place
}

type tablePlace struct {
	flow *Flow // nil in an empty place
	hash uint64
}

// tableLeast is how many places a table has at first. It has at least tableSpread times as many
// places as flows, so a search takes two steps on average.
const (
	tableLeast  = 1 << 9
	tableSpread = 2
)

// joins reports whether f runs from x to y. The comparison is written out,
// because the compiler's own one is a call.
func (f *Flow) joins(x, y *endpointKey) bool {
	return f.origin.lo == x.lo && f.answer.lo == y.lo && f.origin.port == x.port && f.answer.port == y.port &&
		f.origin.hi == x.hi && f.answer.hi == y.hi
}

// hash returns the hash of a pair of endpoints, in either order.
func (t *table) hash(x, y *endpointKey) uint64 { return t.mix(x) + t.mix(y) }

func (t *table) mix(k *endpointKey) uint64 {
	high, low := bits.Mul64(k.lo^t.seeds[0], k.hi^uint64(k.port)<<48^t.seeds[1])
	return high ^ low
}

// find returns the flow of a packet from src to dst and the side that sent it.
// The flow is nil if there is none.
func (t *table) find(transport capture.Transport, src, dst *endpointKey) (*Flow, machine.Side) {
	if t.count == 0 {
		return nil, machine.A
	}
	hash := t.hash(src, dst)
	for i := hash; ; i++ {
		p := &t.places[i&uint64(len(t.places)-1)]
		if p.flow == nil {
			return nil, machine.A
		}
		if p.hash != hash || p.flow.Transport != transport {
			continue
		}
		if p.flow.joins(src, dst) {
			return p.flow, machine.A
		}
		if p.flow.joins(dst, src) {
			return p.flow, machine.B
		}
	}
}

// place returns the index of the place of the flow between f's endpoints, or of the empty one where
// it belongs.
func (t *table) place(f *Flow, hash uint64) uint64 {
	mask := uint64(len(t.places) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		p := &t.places[i]
		if p.flow == nil || p.hash == hash && p.flow.Transport == f.Transport &&
			(p.flow.joins(&f.origin, &f.answer) || p.flow.joins(&f.answer, &f.origin)) {
			return i
		}
	}
}

// put enters a flow, instead of an earlier one between its endpoints.
func (t *table) put(f *Flow) {
	if (t.count+1)*tableSpread > len(t.places) {
		t.grow()
	}
	hash := t.hash(&f.origin, &f.answer)
	p := &t.places[t.place(f, hash)]
	if p.flow == nil {
		t.count++
	}
	*p = tablePlace{f, hash}
}

func (t *table) grow() {
	old := t.places
	if old == nil {
		seed := maphash.MakeSeed()
		t.seeds = [2]uint64{maphash.String(seed, "address"), maphash.String(seed, "port")}
	}
	t.places = make([]tablePlace, max(tableLeast, 2*len(old)))
	mask := uint64(len(t.places) - 1)
	for _, p := range old {
		if p.flow == nil {
			continue
		}
		i := p.hash & mask
		for t.places[i].flow != nil {
			i = (i + 1) & mask
		}
		t.places[i] = p
	}
}

// remove removes a flow that no later packet can belong to. The flows behind it move up, so that
// every flow stays reachable from the place that its hash names.
func (t *table) remove(f *Flow) {
	if t.count == 0 {
		return
	}
	mask := uint64(len(t.places) - 1)
	free := t.place(f, t.hash(&f.origin, &f.answer))
	if t.places[free].flow != f {
		return
	}
	t.count--
	for i := (free + 1) & mask; t.places[i].flow != nil; i = (i + 1) & mask {
		if home := t.places[i].hash & mask; (i-home)&mask >= (i-free)&mask {
			t.places[free], free = t.places[i], i
		}
	}
	t.places[free] = tablePlace{}
}
