package host

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Timeline holds the samples of a capture in bounded memory: the course of each counter. Where memory is short, it
// keeps every second moment; the counts stay exact, and the times become coarser. It is not safe for concurrent use.
type Timeline struct {
	systems map[uint64]*system
	points  int
	series  int
	refused bool // there were more counters than it keeps

	whole  bool      // recent samples are kept whole
	recent []*Sample // in order of arrival
	room   int       // that recent takes, as weight counts it
}

const (
	// maxPoints bounds the memory: 24 bytes each.
	maxPoints = 1 << 18
	// maxSeries bounds the counters, of sockets and interfaces.
	maxSeries = 1 << 14
	// maxSystems bounds the network namespaces of a capture.
	maxSystems = 16
)

// edge is how far from a sample the span of a question may begin or end, and count as covered.
// Source: choice, two of the seconds between samples
const edge = 2 * time.Second

// system is what samples of one network namespace tell.
type system struct {
	first, last machine.Instant
	addresses   map[netip.Addr]bool
	sockets     map[uint16][]*socketLine // by port
	known       map[socketKey]*socketLine
	ports       map[uint16]*line // count: unused; level: the number of sockets
	counts      [5]line          // as in Counts
	devices     map[string]*[2]line
	cut         bool
}

type socketKey struct {
	local, remote netip.AddrPort
	inode         uint64
}

// socketLine is the course of one socket.
type socketLine struct {
	last  Socket
	least uint64 // smallest level above 0
	line
}

// line is the course of a counter, and of a level beside it.
type line struct{ points []point }

type point struct {
	at           machine.Instant
	count, level uint64
}

// add appends a moment. One in which nothing changed since the one before the last only extends it.
func (l *line) add(at machine.Instant, count, level uint64) (grown int) {
	n := len(l.points)
	if n > 0 && at <= l.points[n-1].at {
		return 0
	}
	if n > 1 && l.points[n-1].count == count && l.points[n-1].level == level &&
		l.points[n-2].count == count && l.points[n-2].level == level {
		l.points[n-1].at = at
		return 0
	}
	l.points = append(l.points, point{at, count, level})
	return 1
}

// thin drops every second moment between the first and the last. The higher level stays.
func (l *line) thin() (dropped int) {
	n := len(l.points)
	if n < 4 {
		return 0
	}
	kept := l.points[:1]
	for i := 1; i < n-1; i += 2 {
		p := l.points[i]
		if i+1 < n-1 {
			q := l.points[i+1]
			q.level = max(p.level, q.level)
			p = q
		}
		kept = append(kept, p)
	}
	l.points = append(kept, l.points[n-1])
	return n - len(l.points)
}

// Add adds a sample. Samples of one system come in order of time; an older one is left out.
func (t *Timeline) Add(s *Sample) {
	x := t.systems[s.System]
	if x == nil {
		if len(t.systems) == maxSystems {
			t.refused = true
			return
		}
		x = &system{
			first: s.At, addresses: map[netip.Addr]bool{}, sockets: map[uint16][]*socketLine{},
			known: map[socketKey]*socketLine{}, ports: map[uint16]*line{}, devices: map[string]*[2]line{},
		}
		if t.systems == nil {
			t.systems = map[uint64]*system{}
		}
		t.systems[s.System] = x
	} else if s.At <= x.last {
		return
	}
	x.last = s.At
	if t.whole {
		t.hold(s)
	}
	x.cut = x.cut || s.Cut
	for _, a := range s.Addresses {
		if len(x.addresses) < maxSeries {
			x.addresses[a] = true
		}
	}
	open := map[uint16]uint64{}
	for i := range s.Sockets {
		open[s.Sockets[i].Local.Port()]++
		t.addSocket(x, s.At, &s.Sockets[i])
	}
	for _, port := range s.Ports {
		l := x.ports[port]
		if l == nil {
			if !t.another() {
				continue
			}
			l = &line{}
			x.ports[port] = l
		}
		if !s.Cut {
			t.points += l.add(s.At, 0, open[port])
		}
	}
	for i, n := range s.Counts.list() {
		t.points += x.counts[i].add(s.At, *n, 0)
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		l := x.devices[d.Name]
		if l == nil {
			if !t.another() {
				continue
			}
			l = &[2]line{}
			x.devices[d.Name] = l
		}
		t.points += l[0].add(s.At, d.ReceiveDrops+d.ReceiveFIFO, 0)
		t.points += l[1].add(s.At, d.TransmitDrops+d.TransmitFIFO, 0)
	}
	if t.points > maxPoints {
		t.thin()
	}
}

func (t *Timeline) addSocket(x *system, at machine.Instant, s *Socket) {
	key := socketKey{s.Local, s.Remote, s.Inode}
	l := x.known[key]
	if l == nil {
		if !t.another() {
			return
		}
		l = &socketLine{}
		x.known[key] = l
		x.sockets[s.Local.Port()] = append(x.sockets[s.Local.Port()], l)
	}
	own := l.last.Owner
	l.last = *s
	if s.Owner.PID == 0 && own.PID != 0 {
		l.last.Owner = own
	}
	if s.Queue > 0 && (l.least == 0 || s.Queue < l.least) {
		l.least = s.Queue
	}
	t.points += l.add(at, s.Drops, s.Queue)
}

// maxRecent bounds the weight of the samples that are kept whole: sockets and interfaces, about 200 bytes each.
const maxRecent = 1 << 15

// weight is how much room a sample takes.
func (s *Sample) weight() int {
	return 1 + len(s.Sockets) + len(s.Devices) + (len(s.Addresses)+len(s.Ports))/8
}

// KeepRecent has the timeline keep recent samples whole, for Recent.
func (t *Timeline) KeepRecent() { t.whole = true }

func (t *Timeline) hold(s *Sample) {
	t.recent, t.room = append(t.recent, s), t.room+s.weight()
	drop := 0
	for ; t.room > maxRecent; drop++ {
		t.room -= t.recent[drop].weight()
	}
	t.recent = slices.Delete(t.recent, 0, drop)
}

// Recent returns the samples of a span of time that are still kept whole.
func (t *Timeline) Recent(from, to machine.Instant) (list []*Sample) {
	if t == nil {
		return nil
	}
	for _, s := range t.recent {
		if s.At >= from && s.At <= to {
			list = append(list, s)
		}
	}
	return list
}

// another reports whether there is room for one more counter.
func (t *Timeline) another() bool {
	if t.series == maxSeries {
		t.refused = true
		return false
	}
	t.series++
	return true
}

func (t *Timeline) thin() {
	for _, x := range t.systems {
		for _, l := range x.known {
			t.points -= l.thin()
		}
		for _, l := range x.ports {
			t.points -= l.thin()
		}
		for i := range x.counts {
			t.points -= x.counts[i].thin()
		}
		for _, l := range x.devices {
			t.points -= l[0].thin() + l[1].thin()
		}
	}
}

// Empty reports whether there is no sample. A nil timeline is empty.
func (t *Timeline) Empty() bool { return t == nil || len(t.systems) == 0 }

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
