package host

import (
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
