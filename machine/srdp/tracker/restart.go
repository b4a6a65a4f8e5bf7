package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
)

// A side can begin anew on the same port. It then numbers from its start again,
// and the first packet whose id was in use looks like one with a wrong id. The
// side's next id tells: it follows that packet's id, or the highest one before.

// restarts is when a side began anew: the first time and the last. Both are 0 if
// it never did.
type restarts struct{ first, last machine.Instant }

func (r *restarts) add(at machine.Instant) {
	if r.first == 0 {
		r.first = at
	}
	r.last = max(r.last, at)
}

// restarting is what a lane's ids show of that.
type restarting struct {
	id64, top int64 // of the packet whose id was in use; and the highest id then
	at        machine.Instant
	number    int64 // of the packet's life
	pending   bool
	from      int64 // lives from this number on are of the present session
}

// downtime is how long before its first packet a side that began anew may have
// been away.
// Source: unmeasured, TestRestart of internal/srdpcheck exercises it
const downtime = 2 * time.Second

// fewIDs is how many ids a side must have used for its next one to show that it
// did not begin anew.
// Source: unmeasured, TestRestart of internal/srdpcheck exercises it
const fewIDs int64 = 64

// goesOn takes the id of a packet's first copy.
func (t *Tracker) goesOn(s *party, l *lane, id64 int64) {
	x := &l.restarting
	if !x.pending {
		return
	}
	old, anew := id64-x.top, id64-x.id64
	switch {
	case anew > 0 && (old <= 0 || anew < old):
		x.pending, x.from = false, x.number
		l.inOrder, l.ordered = false, 0
		t.seen.restarts[s.side].add(x.at)
	case old > 0:
		x.pending = false
		if x.top-l.firstID < fewIDs {
			t.seen.restarts[s.side].add(x.at) // so few ids do not show that it did not
		}
	}
}

// reusesID notes a packet whose id another packet had.
func (l *lane) reusesID(id64 int64, at machine.Instant) {
	if x := &l.restarting; !x.pending {
		x.pending, x.id64, x.top, x.at, x.number = true, id64, l.top, at, l.lives.next
	}
}

// across reports whether a side may have begun anew between a packet's first
// copy and something that happened to it later.
func (t *Tracker) across(side machine.Side, first, later machine.Instant) bool {
	r := &t.known.restarts[side]
	return r.last != 0 && first <= r.last && later > r.first.Add(-downtime)
}

// sinceRestart reports whether a side has begun anew before an instant.
func (t *Tracker) sinceRestart(side machine.Side, at machine.Instant) bool {
	r := &t.known.restarts[side]
	return r.last != 0 && at >= r.first
}
