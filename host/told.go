package host

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/ackscope/ackscope/machine"
)

// Change is by how much a counter grew.
type Change struct {
	N     uint64
	Known bool            // samples cover the span; otherwise N is what those in it show at least
	First machine.Instant // the growth was between these two samples
	Last  machine.Instant
}

// over returns the growth within a span of time, and the highest level in it.
func (l *line) over(from, to machine.Instant) (c Change, level uint64, at machine.Instant) {
	p := l.points
	if len(p) == 0 {
		return c, 0, 0
	}
	begin, end := l.span(from, to)
	c.Known = p[begin].at <= from.Add(edge) && p[end].at.Add(edge) >= to
	for i := begin; i <= end; i++ {
		if p[i].level > level && p[i].at >= from {
			level, at = p[i].level, p[i].at
		}
		if i > begin && p[i].count > p[i-1].count {
			c.N += p[i].count - p[i-1].count
			if c.First == 0 {
				c.First = p[i-1].at
			}
			c.Last = p[i].at
		}
	}
	return c, level, at
}

// span returns the indexes of the moments around a span of time, as far as there are any.
func (l *line) span(from, to machine.Instant) (begin, end int) {
	order := func(x point, t machine.Instant) int { return cmp.Compare(x.at, t) }
	begin, exact := slices.BinarySearchFunc(l.points, from, order)
	if !exact && begin > 0 {
		begin--
	}
	end, _ = slices.BinarySearchFunc(l.points, to, order)
	return begin, min(end, len(l.points)-1)
}

// Told is what the samples tell about one endpoint in a span of time.
type Told struct {
	Here   bool   // the endpoint is on a host whose counters are known
	Why    string // why it is not, or why its socket is not known
	Owner  Owner  // of its socket
	UID    uint32
	Socket bool // there was a socket
	Shared int  // how many sockets could take its datagrams equally well: mostly 1
	Drops  Change
	Until  machine.Instant // of the sample up to which Drops counts; meaningful with a socket
	// Queue is the most that unread datagrams took, in bytes with the kernel's overhead, and when.
	Queue   uint64
	QueueAt machine.Instant
	Least   uint64 // the smallest such amount above 0 of any sample: one datagram takes as much at most
	// Closed is set where a sample within the span found no socket on the port, at ClosedAt.
	Closed   bool
	ClosedAt machine.Instant

	NoPorts, BufferErrors, ChecksumErrors, Softnet Change
}

// Endpoint tells about the endpoint at, in a conversation with peer.
func (t *Timeline) Endpoint(at, peer netip.AddrPort, from, to machine.Instant) (x Told) {
	if t.Empty() {
		x.Why = "the capture holds no samples of the host"
		return x
	}
	sys, ok := t.of(at)
	switch {
	case sys == nil && ok:
		x.Why = "its address is not of the capturing host"
		return x
	case sys == nil:
		x.Why = "several hosts with samples in this capture have its address"
		return x
	case to < sys.first.Add(-edge) || from > sys.last.Add(edge):
		x.Why = "the samples of the host are of another time"
		return x
	}
	x.Here = true
	sys.counters(&x, from, to)
	if l := sys.ports[at.Port()]; l != nil {
		x.Closed, x.ClosedAt = l.empty(from, to)
	}
	found := sys.fitting(at, peer, from, to)
	if len(found) == 0 {
		switch {
		case sys.cut || t.refused:
			x.Why = "the host has more sockets than the samples hold"
		case sys.ports[at.Port()] == nil:
			x.Why = "no sample looked for its port"
		default:
			x.Why = "no UDP socket of the capturing host's network namespace took its datagrams"
		}
		return x
	}
	x.Socket, x.Shared = true, 1
	x.Drops.Known = true
	for i, l := range found {
		c, level, when := l.over(from, to)
		if i > 0 && l.points[0].at <= found[i-1].points[len(found[i-1].points)-1].at {
			x.Shared++
		}
		x.Drops.join(c)
		_, end := l.span(from, to)
		x.Until = max(x.Until, l.points[end].at)
		if level > x.Queue {
			x.Queue, x.QueueAt = level, when
		}
	}
	last := found[len(found)-1]
	x.Least = last.least
	x.Owner, x.UID = last.last.Owner, last.last.UID
	// Of sockets that followed one another, the first and the last bound what is covered.
	begin, _, _ := found[0].over(from, from)
	end, _, _ := last.over(to, to)
	x.Drops.Known = begin.Known && end.Known
	return x
}

// join adds a growth of another socket.
func (c *Change) join(o Change) {
	c.N += o.N
	if o.N > 0 {
		if c.First == 0 {
			c.First = o.First
		}
		c.First, c.Last = min(c.First, o.First), max(c.Last, o.Last)
	}
}

// of returns the system that has an address. It returns nil and true if none has, and nil and false if several have.
func (t *Timeline) of(at netip.AddrPort) (found *system, ok bool) {
	for _, x := range t.systems {
		if !x.addresses[at.Addr()] && !at.Addr().IsLoopback() {
			continue
		}
		if found != nil {
			return nil, false
		}
		found = x
	}
	return found, true
}

// fitting returns the courses of the sockets that took the datagrams of an endpoint, in order of time.
func (x *system) fitting(at, peer netip.AddrPort, from, to machine.Instant) (list []*socketLine) {
	best := 1
	for _, l := range x.sockets[at.Port()] {
		if l.points[0].at > to.Add(edge) || l.points[len(l.points)-1].at < from.Add(-edge) {
			continue
		}
		grade := l.last.fits(at, peer)
		if grade > best {
			best, list = grade, list[:0]
		}
		if grade == best {
			list = append(list, l)
		}
	}
	slices.SortStableFunc(list, func(a, b *socketLine) int { return cmp.Compare(a.points[0].at, b.points[0].at) })
	return list
}

func (x *system) counters(to *Told, from, until machine.Instant) {
	for i, c := range []*Change{&to.NoPorts, nil, &to.BufferErrors, &to.ChecksumErrors, &to.Softnet} {
		if c != nil {
			*c, _, _ = x.counts[i].over(from, until)
		}
	}
}

// empty returns whether a sample within a span found no socket, and when.
func (l *line) empty(from, to machine.Instant) (bool, machine.Instant) {
	for i, p := range l.points {
		end := p.at
		if i+1 < len(l.points) && l.points[i+1].level == p.level {
			end = l.points[i+1].at // nothing changed up to there
		}
		if p.level == 0 && end >= from && p.at <= to {
			return true, max(p.at, from)
		}
	}
	return false, 0
}

// Device tells how many packets an interface dropped on the way in and on the way out, at a host that has the
// address.
func (t *Timeline) Device(name string, at netip.AddrPort, from, to machine.Instant) (in, out Change) {
	if t.Empty() {
		return in, out
	}
	if x, _ := t.of(at); x != nil {
		if l := x.devices[name]; l != nil {
			in, _, _ = l[0].over(from, to)
			out, _, _ = l[1].over(from, to)
		}
	}
	return in, out
}
