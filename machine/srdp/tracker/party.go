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
	side machine.Side
	near bool
	sure bool // near, and that is more than the best guess

	// lanes are the directions in which it sends data. In the direct form there is
	// one. In the proxied form there is one for each pair of addresses in the
	// packets, since a proxy sends for all that are behind it.
	lanes  []*lane
	byPair map[srdp.Pair]*lane
	turn   int // the lane that is looked at next for what has ended
	// heard is what it remembers of each source, in the proxied form, if it answers
	// for all destinations itself: a proxy of streams does, one of datagrams does
	// not, and from outside they look alike.
	heard map[wire.Address]*srdp.Received

	reach  reach   // how far it is from the tap
	timing *timing // nil before the first retransmission

	packets, bytes uint64 // SRDP only, as seen at the tap
	foreign        uint64
	data           uint64 // ids
	resends        uint64
	acked          uint64
	received       uint64 // the peer's copies that were handed over to it
	duplicates     uint64
	missing        uint64           // of its own ids: never passed the tap in any flow
	both           machine.PathLoss // of its copies, or their acknowledgements on the way back; near or between
	answering      machine.PathLoss // of its acknowledgements, on the way to the peer; near only
	settled        uint64           // lives ended, unacked those of them that nobody acknowledged
	unacked        uint64
	copies         uint64 // of its data, and the acknowledgements of them
	answers        uint64
	ambiguous      uint64 // samples that Karn's rule leaves out

	longest  time.Duration // unambiguous samples: the longest, the sum, how many
	sum      time.Duration
	samples  uint64
	jump     int64 // the furthest that its ids went on at once, of acknowledged packets
	wanders  bool  // its unknown flags or commands were reported
	overload uint64

	spoke    machine.Instant // its last packet
	spokeRef machine.Ref
	proved   machine.Instant // up to here it is known to have read, by an earlier run
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
	sure     bool            // a packet of it was acknowledged
	begun    bool            // its receiver has acknowledged something
	ordered  int64           // number of the newest ordered life, plus one; 0 for none
	arrived  int64           // newest ordered id that its receiver has, unwrapped
	due      machine.Instant // nothing is given up or ends before
	inOrder  bool            // arrived is known
}

// mostLanes bounds the pairs of addresses of one direction of a flow.
const mostLanes = 1 << 14

// lane gives the lane of a packet of data, new where begin is set; nil where there
// is none.
func (s *party) lane(p srdp.Pair, proxied, begin bool) *lane {
	if !proxied {
		p = srdp.Pair{}
	}
	if l := s.byPair[p]; l != nil {
		return l
	}
	if len(s.lanes) > 0 && s.lanes[0].pair == p {
		return s.lanes[0]
	}
	if !begin {
		return nil
	}
	if len(s.lanes) >= mostLanes {
		s.overload++
		return nil
	}
	l := &lane{pair: p}
	s.lanes = append(s.lanes, l)
	if len(s.lanes) > 1 {
		if s.byPair == nil {
			s.byPair = map[srdp.Pair]*lane{}
		}
		s.byPair[p] = l
	}
	return l
}

// hears is Received.Arrive of the list that a receiver keeps of a source whatever
// the destination is; none in the direct form.
func (s *party) hears(rules *srdp.Rules, source wire.Address, id uint16, asks srdp.Promise, sum uint32, now machine.Instant) srdp.Fate {
	r := s.heard[source]
	if r == nil {
		if len(s.heard) >= mostLanes {
			return srdp.Delivered
		}
		if s.heard == nil {
			s.heard = map[wire.Address]*srdp.Received{}
		}
		r = &srdp.Received{}
		s.heard[source] = r
	}
	return r.Arrive(rules, id, asks, sum, now)
}

// timings gives the party's timing, made on first use.
func (s *party) timings() *timing {
	if s.timing == nil {
		s.timing = &timing{}
	}
	return s.timing
}

// sample takes an unambiguous time from a packet to its acknowledgement.
func (s *party) sample(d time.Duration) {
	s.longest = max(s.longest, d)
	s.sum += d
	s.samples++
}

// unwrap gives the id of a packet unwrapped: by all that its sender has sent
// where that is known, else by the lane alone.
func (l *lane) unwrap(id uint16, place machine.Place) int64 {
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
	c.lanes = make([]*lane, len(s.lanes))
	for i, l := range s.lanes {
		k := *l
		k.queue, k.lives, k.received = l.queue.Clone(), l.lives.clone(), l.received.Clone()
		c.lanes[i] = &k
	}
	if s.byPair != nil {
		c.byPair = make(map[srdp.Pair]*lane, len(s.byPair))
		for _, l := range c.lanes[1:] {
			c.byPair[l.pair] = l
		}
	}
	if s.heard != nil {
		c.heard = make(map[wire.Address]*srdp.Received, len(s.heard))
		for source, r := range s.heard {
			k := r.Clone()
			c.heard[source] = &k
		}
	}
	if s.timing != nil {
		t := *s.timing
		c.timing = &t
	}
	return c
}

func (s *party) size() int {
	n := cap(s.lanes)*8 + len(s.byPair)*48
	for _, r := range s.heard {
		n += 32 + r.Size()
	}
	if s.timing != nil {
		n += int(unsafe.Sizeof(*s.timing))
	}
	for _, l := range s.lanes {
		n += int(unsafe.Sizeof(*l)) + l.queue.Size() + l.received.Size() + cap(l.lives.slots)*int(unsafe.Sizeof(life{})) + 8*cap(l.lives.index)
	}
	return n
}
