package filter

import (
	"cmp"
	"net/netip"
	"slices"
)

// member compiles `x in {…}`.
func (c *compiler) member(n *member) Predicate {
	if l, ok := n.x.(*literal); ok {
		c.unknown(l)
	}
	o := c.operand(n.x)
	all := n.quantifier == "all"
	var in Predicate
	switch o.kind {
	case Heading:
		c.fail(n.x.where(), "", "%s has no value to compare: alone it asks whether it is there", o.name)
	case Uint, Bool:
		in = o.Uint(within(intervals(c, n, func(l *literal) uint64 { return c.uint(o, l) })), all)
	case Int, Duration, Time:
		in = o.Int(within(intervals(c, n, func(l *literal) int64 { return c.int(o, l) })), all)
	case Float:
		in = o.Float(within(intervals(c, n, func(l *literal) float64 { return c.float(o, l) })), all)
	case Address:
		in = o.Address(c.addressSet(o, n), all)
	case Bytes, Text:
		in = o.Bytes(c.byteSet(o, n), all)
	}
	if !n.negated {
		return in
	}
	return func(r *Record) bool { return !in(r) }
}

type bounds[T any] struct{ from, to T }

// intervals compiles a set of numbers to sorted intervals, with overlapping
// ones merged.
func intervals[T cmp.Ordered](c *compiler, n *member, read func(*literal) T) []bounds[T] {
	var set []bounds[T]
	for _, v := range n.set {
		b := bounds[T]{from: read(v.from)}
		if b.to = b.from; v.to != nil {
			if b.to = read(v.to); b.to < b.from {
				c.backwards(v)
			}
		}
		set = append(set, b)
	}
	slices.SortFunc(set, func(x, y bounds[T]) int { return cmp.Compare(x.from, y.from) })
	joined := set[:1]
	for _, b := range set[1:] {
		if last := &joined[len(joined)-1]; b.from <= last.to {
			last.to = max(last.to, b.to)
		} else {
			joined = append(joined, b)
		}
	}
	return joined
}

func (c *compiler) backwards(v interval) {
	c.fail(v.from.at.with(v.to.at), c.source(v.to.at)+".."+c.source(v.from.at), "the range %s..%s is empty",
		c.source(v.from.at), c.source(v.to.at))
}

// within returns a test against sorted intervals. It uses a linear search for
// up to eight of them, and a binary search for more.
func within[T cmp.Ordered](set []bounds[T]) Test[T] {
	if len(set) <= 8 {
		return func(_ *Record, v T) bool {
			for i := range set {
				if v < set[i].from {
					return false
				}
				if v <= set[i].to {
					return true
				}
			}
			return false
		}
	}
	return func(_ *Record, v T) bool {
		lo, hi := 0, len(set)
		for lo < hi {
			if mid := (lo + hi) / 2; set[mid].to < v {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		return lo < len(set) && v >= set[lo].from
	}
}

func (c *compiler) addressSet(o *operand, n *member) Test[netip.Addr] {
	var networks []network
	var ranges []bounds[netip.Addr]
	for _, v := range n.set {
		from := c.network(o, v.from)
		if v.to == nil {
			networks = append(networks, from)
			continue
		}
		to := c.network(o, v.to)
		if !from.prefix.IsSingleIP() || !to.prefix.IsSingleIP() || from.addr.BitLen() != to.addr.BitLen() {
			c.fail(v.from.at.with(v.to.at), "", "expected a range between two addresses of one family")
		}
		if to.addr.Less(from.addr) {
			c.backwards(v)
		}
		ranges = append(ranges, bounds[netip.Addr]{from.prefix.Addr(), to.prefix.Addr()})
	}
	return func(_ *Record, v netip.Addr) bool {
		for i := range networks {
			if networks[i].contains(v) {
				return true
			}
		}
		for i := range ranges {
			if v.BitLen() == ranges[i].from.BitLen() && v.Compare(ranges[i].from) >= 0 && v.Compare(ranges[i].to) <= 0 {
				return true
			}
		}
		return false
	}
}

func (c *compiler) byteSet(o *operand, n *member) Test[[]byte] {
	var set []bounds[[]byte]
	order := orderOf(o.kind)
	for _, v := range n.set {
		b := bounds[[]byte]{from: c.bytes(o, v.from)}
		if b.to = b.from; v.to != nil {
			if b.to = c.bytes(o, v.to); order(b.to, b.from) < 0 {
				c.backwards(v)
			}
		}
		set = append(set, b)
	}
	return func(_ *Record, v []byte) bool {
		for i := range set {
			if order(v, set[i].from) >= 0 && order(v, set[i].to) <= 0 {
				return true
			}
		}
		return false
	}
}
