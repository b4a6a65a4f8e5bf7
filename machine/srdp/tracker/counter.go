package tracker

import (
	"maps"
	"slices"
	"unsafe"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// Counter is the machine.Scope of SRDP: it follows the packet ids of one
// endpoint over all of its flows. For example, an endpoint sends ids 7, 8 and 9
// to three peers. Each flow has two gaps, but all flows together have none.
//
// An id that no flow has is missing from the capture. An id that only one flow
// lacks went to another peer. The counter also unwraps ids. A flow alone cannot
// do so when the endpoint's ids wrap between two packets of that flow.
//
//	        first                        settled       newest
//	sums  |  x  x  x  .  x  x  x  x  x  |  x  .  x  x  x  |
//	               ^ missing               ^ may still come
//
// An address that sends for others, as a proxy does, has one row for each
// source.
type Counter struct {
	profile *wire.Profile
	rows    []*row
	bySrc   map[wire.Address]*row
	flow    int // the first flow; the only one while flows is nil
	flows   map[int]struct{}
	lately  []int // flows of the newest packets plus one, by number mod len: they are in flows
	pk      wire.Packet
}

// row is one counter of ids. It uses 4 bytes for each id in use.
type row struct {
	source  wire.Address
	sums    []uint32 // by id: the sum of its last packet, never 0; 0 when none has passed
	first   int64
	newest  int64
	settled int64 // all ids up to here have come, or count as missing
	seen    uint64
	missing uint64 // among the settled ids
	suspect int64  // an id far off that was not accepted yet
	streak  int    // such ids in a row, each ahead of the one before
	met     bool
	wide    bool // its ids step far: the capture has few of its flows
}

const (
	// firstRow is how many ids a row has room for when it is first used.
	// Source: bound, the first size of a row
	firstRow = 64
	// wholeRow is the number of different ids.
	// Source: law, ids of 15 bits
	wholeRow = 1 << 15
	// lateness is how many ids behind the newest one an id may still come for the
	// first time.
	// Source: measured, TestMarginsSRDP
	lateness = 1024
	// nearness is how many ids a sender may step at once without doubt. Some
	// senders step further again and again.
	// Source: measured, TestMarginsSRDP
	nearness = 1024
	// farness is how many ids such a sender may step at once.
	// Source: law, ids of 15 bits: half their range
	farness = 1 << 14
	// believed is how many ids far off it takes, each ahead of the one before, to
	// accept their steps.
	// Source: measured, TestMarginsSRDP
	believed = 3
	// mostRows is how many rows a Counter has at most.
	// Source: bound, the rows of a counter
	mostRows = 1 << 12
)

// NewCounter returns the scope of an endpoint. The profile says how to read its
// packets; the caller must not change it afterwards.
func NewCounter(p *wire.Profile) *Counter { return &Counter{profile: p} }

// Observe takes the next datagram that the endpoint sent.
func (c *Counter) Observe(flow int, d *machine.Datagram) machine.Place {
	pk := &c.pk
	length := max(d.Length, len(d.Bytes))
	if !c.profile.Fits(d.Bytes, length, pk) || pk.Ack {
		return machine.Place{}
	}
	c.meets(flow)
	r := c.row(pk.Source)
	if r == nil {
		return machine.Place{}
	}
	sum := srdp.Sum(pk.Flags, d.Bytes[min(pk.PayloadOffset, len(d.Bytes)):]) ^ uint32(flow)*0x9E3779B9 ^ uint32(length)<<16
	number, again := r.take(pk.ID, max(sum, 1))
	return machine.Place{Number: number, Missing: r.settle(), Known: true, Again: again}
}

// meets records which flows the endpoint has.
func (c *Counter) meets(flow int) {
	switch {
	case c.flows != nil:
		if place := &c.lately[uint(flow)%uint(len(c.lately))]; *place != flow+1 {
			*place = flow + 1
			c.flows[flow] = struct{}{}
		}
	case c.flow == 0:
		c.flow = flow
	case c.flow != flow:
		c.flows, c.lately = map[int]struct{}{c.flow: {}, flow: {}}, make([]int, lately)
	}
}

// lately is the size of a Counter's cache of flows. The cache spares most
// packets a look into the map.
// Source: bound, the flows in the cache
const lately = 64

// row returns the counter of a source. In the direct form an endpoint has one.
func (c *Counter) row(source wire.Address) *row {
	if len(c.rows) > 0 && c.rows[0].source == source {
		return c.rows[0]
	}
	if r := c.bySrc[source]; r != nil {
		return r
	}
	if len(c.rows) >= mostRows {
		return nil
	}
	r := &row{source: source}
	c.rows = append(c.rows, r)
	if len(c.rows) > 1 {
		if c.bySrc == nil {
			c.bySrc = map[wire.Address]*row{}
		}
		c.bySrc[source] = r
	}
	return r
}

func (r *row) slot(id64 int64) *uint32 { return &r.sums[id64&int64(len(r.sums)-1)] }

// take returns the unwrapped id of a packet. again is set for a further copy.
func (r *row) take(id uint16, sum uint32) (id64 int64, again bool) {
	if !r.met {
		r.met, r.first, r.newest, r.settled, r.seen = true, int64(id), int64(id), int64(id), 1
		r.sums = make([]uint32, firstRow)
		*r.slot(r.newest) = sum
		return r.newest, false
	}
	ahead := wire.IDs.Distance(uint32(id), uint32(r.newest)&wire.IDs.Mask())
	near := nearness
	if r.wide {
		near = farness
	}
	behind := r.newest + int64(ahead) // the candidate that is not ahead of the newest id
	if ahead > 0 {
		behind -= wholeRow
	}
	has := uint32(0)
	if behind >= r.first && r.newest-behind < int64(len(r.sums)) {
		has = *r.slot(behind)
	}
	switch {
	case has == sum && (ahead <= 0 || ahead > firstRow):
		r.streak = 0
		return behind, true
	case ahead > 0 && ahead <= near:
		r.streak = 0
		r.advance(r.newest+int64(ahead), sum)
		return r.newest, false
	case ahead <= 0 && -ahead <= lateness:
		r.streak = 0
		if has == 0 {
			r.late(behind, sum)
		}
		return behind, false
	}
	return r.doubt(id, int64(ahead), sum), false
}

// doubt takes an id that is far from all others. A single one belongs to
// another protocol, or has the wrong byte order. Several, each ahead of the one
// before, belong to a sender whose other flows are not in the capture.
func (r *row) doubt(id uint16, ahead int64, sum uint32) int64 {
	at := r.newest + ahead
	if r.streak > 0 {
		step := wire.IDs.Distance(uint32(id), uint32(r.suspect)&wire.IDs.Mask())
		if step <= 0 {
			r.streak = 0
		} else {
			at = r.suspect + int64(step)
		}
	}
	r.suspect = at
	if r.streak++; r.streak >= believed && at > r.newest {
		r.streak, r.wide = 0, true
		r.advance(at, sum)
	}
	return at
}

// advance makes an id the newest one.
func (r *row) advance(to int64, sum uint32) {
	for int64(len(r.sums)) < to-r.first+1 && len(r.sums) < wholeRow {
		old := *r
		r.sums = make([]uint32, 2*len(old.sums))
		for n := max(old.first, old.newest-int64(len(old.sums))+1); n <= old.newest; n++ {
			*r.slot(n) = *old.slot(n)
		}
	}
	if gap := to - r.newest; gap > int64(len(r.sums)) {
		// Skip whole rounds of ids of which the capture shows nothing.
		lost := gap - int64(len(r.sums))
		r.settleTo(r.newest)
		r.missing += uint64(lost)
		r.newest += lost
		r.settled = r.newest
	}
	// Settle an id before the ring reuses its slot.
	r.settleTo(to - int64(len(r.sums)))
	for n := r.newest + 1; n < to; n++ {
		*r.slot(n) = 0
	}
	r.newest = to
	r.seen++
	*r.slot(to) = sum
}

// late takes the first copy of an id behind the newest one.
func (r *row) late(id64 int64, sum uint32) {
	if id64 < r.first {
		if r.newest-id64 >= int64(len(r.sums)) || r.settled > r.first {
			return
		}
		r.first, r.settled = id64, id64
	}
	if id64 <= r.settled && r.missing > 0 && id64 != r.first {
		r.missing--
	}
	r.seen++
	*r.slot(id64) = sum
}

// settle counts the ids that are too old to come now, and returns how many it
// counted.
func (r *row) settle() uint32 {
	before := r.missing
	r.settleTo(r.newest - int64(lateness))
	return uint32(r.missing - min(before, r.missing))
}

func (r *row) settleTo(to int64) {
	for r.settled < to {
		r.settled++
		if *r.slot(r.settled) == 0 {
			r.missing++
		}
	}
}

// Inspect adds the endpoint's figures.
func (c *Counter) Inspect(v *machine.View) {
	var given, seen float64
	for _, r := range c.rows {
		if r.met {
			given += float64(r.newest - r.first + 1)
			seen += float64(r.seen)
		}
	}
	if given == 0 {
		return
	}
	flows := max(1, len(c.flows))
	v.Gauges = append(v.Gauges,
		machine.Gauge{
			Name: "endpoint: flows that it sends data in", Value: float64(flows), Unit: "flows",
			Grade: machine.Certain,
		},
		machine.Gauge{Name: "endpoint: ids given out", Value: given, Unit: "ids", Grade: machine.Certain},
		machine.Gauge{
			Name: "endpoint: of them, in no flow of this capture", Value: max(0, given-seen), Unit: "ids",
			Grade: machine.Likely,
		})
	if len(c.rows) > 1 {
		v.Gauges = append(v.Gauges, machine.Gauge{
			Name: "endpoint: sources that it sends for", Value: float64(len(c.rows)),
			Unit: "addresses", Grade: machine.Certain,
		})
	}
}

// Clone returns an independent copy.
func (c *Counter) Clone() machine.Scope {
	k := *c
	k.flows, k.lately = maps.Clone(c.flows), slices.Clone(c.lately)
	k.rows = make([]*row, len(c.rows))
	for i, r := range c.rows {
		n := *r
		n.sums = slices.Clone(r.sums)
		k.rows[i] = &n
	}
	if c.bySrc != nil {
		k.bySrc = make(map[wire.Address]*row, len(c.bySrc))
		for _, r := range k.rows[1:] {
			k.bySrc[r.source] = r
		}
	}
	return &k
}

// Size returns the approximate bytes of a clone.
func (c *Counter) Size() int {
	n := int(unsafe.Sizeof(*c)) + 16*len(c.flows) + 24*len(c.bySrc)
	for _, r := range c.rows {
		n += int(unsafe.Sizeof(*r)) + 4*cap(r.sums)
	}
	return n
}
