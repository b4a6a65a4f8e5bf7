package tracker

import (
	"time"
	"unsafe"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// party is what is known of one end of a flow.
type party struct {
	side   machine.Side
	near   bool
	sure   bool            // near, and the evidence is better than a guess
	proved machine.Instant // an earlier run proved that it had read everything up to here
	lanes  lanes
	heard  sources
	reach  reach   // how far it is from the tap
	timing *timing // nil before the first retransmission
	// ackedAt is when the newest acknowledgement for it passed; 0 before.
	ackedAt machine.Instant

	seen     seen
	data     sentData
	arrivals arrivals
	delays   delays
	losses   losses
}

// lanes are the directions in which a party sends data. In the direct form
// there is one. In the proxied form there is one for each pair of addresses in
// the packets, since a proxy sends for every host behind it. byPair holds all
// but the first lane. 0 ≤ turn < len(list), unless the list is empty.
type lanes struct {
	list   []*lane
	byPair map[srdp.Pair]*lane
	turn   int // the lane that is checked next for ended lives
}

// sources is what a party remembers of each source in the proxied form, if it
// answers for all destinations itself. A proxy of streams does so, a proxy of
// datagrams does not. A capture does not show which of the two it is.
type sources map[wire.Address]*srdp.Received

// seen counts a party's packets as they passed the tap. Its field foreign counts
// datagrams of other protocols. The newest SRDP packet has at and ref.
type seen struct {
	packets, bytes uint64
	foreign        uint64
	missing        uint64 // its ids that never passed the tap in any flow
	at             machine.Instant
	ref            machine.Ref
}

// sentData counts what happened to the data that a party sent. ids + resends ≤
// copies; unacked ≤ settled ≤ ids.
type sentData struct {
	ids      uint64
	copies   uint64
	resends  uint64 // copies that the sender made after the first of each id
	repeated uint64 // ids that the sender sent more than once
	acked    uint64 // ids
	answers  uint64 // acknowledgements of its copies
	settled  uint64 // lives that ended; unacked counts those that no side acknowledged
	unacked  uint64
	earlier  uint64 // ids of which a copy may have been sent before the capture
	jump     int64  // the largest step between ids of acknowledged packets
	reported bool   // its unknown flags were reported
}

// arrivals counts what a party did with the peer's copies that it received.
type arrivals struct {
	handed  uint64 // copies handed to its application
	dropped uint64 // copies dropped as duplicates, or as late
}

// delays measures the times from a party's packets to their acknowledgements.
// count is how many packets were sent once and so were measured.
type delays struct {
	longest   time.Duration
	sum       time.Duration
	count     uint64
	ambiguous uint64         // packets that were sent more than once: Karn's rule leaves them out
	earlier   bool           // a measured packet may have had a copy before the capture
	trips     *machine.Trips // the same times; nil before the first one
}

// take adds an unambiguous time.
func (d *delays) take(x time.Duration) {
	d.longest = max(d.longest, x)
	d.sum += x
	d.count++
	if d.trips == nil {
		d.trips = new(machine.Trips)
	}
	d.trips.Add(x)
}

// losses counts where a party's packets were lost.
type losses struct {
	both      machine.PathLoss // its copies, or their acknowledgements on the way back; for a tap near it or between
	answering machine.PathLoss // its acknowledgements, on the way to the peer; for a tap near it only
	arrived   uint64           // its copies that acknowledgements prove to have arrived
}

// lane is one direction of data, from one source to one destination.
type lane struct {
	pair     srdp.Pair
	queue    srdp.Queue
	lives    lives
	received srdp.Received // the list of recently received ids of its receiver
	top      int64         // newest id, unwrapped
	firstID  int64
	lastID   uint16 // of the newest packet's
	met      bool
	sure     bool  // a packet of it was acknowledged
	begun    bool  // its receiver has acknowledged something
	ordered  int64 // number of the newest ordered life, plus one; 0 if there is none
	// orderedID is the highest id of an ordered packet, while ordered is not 0.
	orderedID             int64
	anew                  newest            // from this id on, all are newer than the capture
	repeated, repeatedFar newest            // what copies show of that: at a tap at the sender, and elsewhere
	strangers             [strangers]uint16 // ids that were acknowledged and not known, each plus one
	strange               uint              // how many there were
	restarting            restarting
	arrived               int64           // newest ordered id that its receiver has, unwrapped
	answered              int64           // number of the newest life whose only copy was acknowledged
	due                   machine.Instant // before this time no packet is given up and no life ends
	inOrder               bool            // arrived is known
}

// mostLanes is how many pairs of addresses one direction of a flow has at most.
// Source: bound, the pairs of addresses of a direction
const mostLanes = 1 << 14

// of returns the lane of a data packet. It makes a new lane when begin is set,
// and returns nil when there is none.
func (l *lanes) of(p srdp.Pair, proxied, begin bool) *lane {
	if !proxied {
		p = srdp.Pair{}
	}
	if x := l.byPair[p]; x != nil {
		return x
	}
	if len(l.list) > 0 && l.list[0].pair == p {
		return l.list[0]
	}
	if !begin || len(l.list) >= mostLanes {
		return nil
	}
	x := &lane{pair: p}
	l.list = append(l.list, x)
	if len(l.list) > 1 {
		if l.byPair == nil {
			l.byPair = map[srdp.Pair]*lane{}
		}
		l.byPair[p] = x
	}
	return x
}

// next returns the lane to check next. The list must not be empty.
func (l *lanes) next() *lane {
	if l.turn++; l.turn >= len(l.list) {
		l.turn = 0
	}
	return l.list[l.turn]
}

// arrive calls Received.Arrive on the list that a receiver keeps for a source,
// whatever the destination is.
func (h *sources) arrive(rules *srdp.Rules, source wire.Address, id uint16, asks srdp.Promise, sum uint32,
	now machine.Instant,
) srdp.Fate {
	r := (*h)[source]
	if r == nil {
		if len(*h) >= mostLanes {
			return srdp.Delivered
		}
		if *h == nil {
			*h = sources{}
		}
		r = &srdp.Received{}
		(*h)[source] = r
	}
	return r.Arrive(rules, id, asks, sum, now)
}

// timings returns the party's timing, which it creates on first use.
func (s *party) timings() *timing {
	if s.timing == nil {
		s.timing = &timing{}
	}
	return s.timing
}

// unwrap returns the unwrapped id of a packet. It uses the endpoint's counter
// when that knows the id, and the lane alone otherwise.
func (l *lane) unwrap(id uint16, place *machine.Place) int64 {
	switch {
	case place.Known:
		return place.Number
	case !l.met:
		return int64(id)
	}
	return wire.IDs.Unwrap(uint32(id), l.top)
}

func (s *party) clone() party {
	c := *s
	c.lanes.list = make([]*lane, len(s.lanes.list))
	for i, l := range s.lanes.list {
		k := *l
		k.queue, k.lives, k.received = l.queue.Clone(), l.lives.clone(), l.received.Clone()
		c.lanes.list[i] = &k
	}
	if s.lanes.byPair != nil {
		c.lanes.byPair = make(map[srdp.Pair]*lane, len(s.lanes.byPair))
		for _, l := range c.lanes.list[1:] {
			c.lanes.byPair[l.pair] = l
		}
	}
	if s.heard != nil {
		c.heard = make(map[wire.Address]*srdp.Received, len(s.heard))
		for source, r := range s.heard {
			k := r.Clone()
			c.heard[source] = &k
		}
	}
	c.delays.trips = s.delays.trips.Clone()
	if s.timing != nil {
		t := *s.timing
		c.timing = &t
	}
	return c
}

func (s *party) size() int {
	n := cap(s.lanes.list)*8 + len(s.lanes.byPair)*48
	for _, r := range s.heard {
		n += 32 + r.Size()
	}
	if s.timing != nil {
		n += int(unsafe.Sizeof(*s.timing))
	}
	for _, l := range s.lanes.list {
		n += int(unsafe.Sizeof(*l)) + l.queue.Size() + l.received.Size() + cap(l.lives.slots)*int(unsafe.Sizeof(life{})) +
			8*(cap(l.lives.index)+cap(l.lives.chain))
	}
	return n
}
