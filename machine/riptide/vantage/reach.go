package vantage

import (
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// reach measures how far a side is from the tap, in time. The measure is the least time from a
// message that passes the tap towards the side to its answer. A side at the tap answers in the
// application tick that reads the message. A side that is away answers after a round trip and its
// tick, never sooner.
type reach struct {
	waits   waits
	open    questions
	rtts    rtts
	pace    pace
	against contradictions
}

// answer records an answer of the side. It returns how long the message had waited for it. ok is
// false where no such message is open.
func (r *reach) answer(kind wire.Type, sequence uint16, at machine.Instant) (wait time.Duration, ok bool) {
	if wait, ok = r.open.answer(kind, sequence, at); ok {
		r.waits.take(kind, wait)
	}
	return wait, ok
}

// shows reports whether the side is shown to be at the tap. The very least of its answers to
// reliable messages does not count. It may answer a copy whose first copy the capture missed. An
// RTT is reported in whole milliseconds.
func (r *reach) shows() bool {
	w := &r.waits
	return w.Count() > 1 && w.Second() < machine.NearProof ||
		w.once > 0 && w.soonest < machine.NearProof || r.rtts.news > 0 && r.rtts.nearest < machine.NearProof-time.Millisecond
}

// waits is how long messages waited at the tap for their answers.
//
//   - 0 ≤ once ≤ Count()
type waits struct {
	machine.Fastest
	once    int           // answers to messages that are sent once
	soonest time.Duration // the least wait among these; 0 while there is none
}

func (w *waits) take(kind wire.Type, wait time.Duration) {
	if kind != wire.Reliable {
		if w.once++; w.once == 1 || wait < w.soonest {
			w.soonest = wait
		}
	}
	w.Add(wait)
}

// questions are the messages that a side must answer: the reliable ones in slot 0, heartbeats and
// notify messages in slot 1.
//
//   - newest[slot] is valid once met[slot] is set
//   - len(asked[slot]) is 0 or a power of two from askedLeast to askedMost
type questions struct {
	asked  [2][]question // rings, by sequence: as long as the open questions need
	newest [2]uint16
	met    [2]bool
}

// question is a message that must be answered.
type question struct {
	at       machine.Instant
	sequence uint16
	kind     wire.Type
	live     bool
}

// askedMost and askedLeast are how many open questions a ring has room for, at most and at first.
// Source: bound, the messages that wait for an answer
const askedMost, askedLeast = 128, 4

// add records a message that the side must answer. A message that is not newer than all before may
// be a copy of one that is not in the capture.
func (q *questions) add(kind wire.Type, sequence uint16, at machine.Instant) {
	slot := slotOf(kind)
	newer := q.met[slot] && riptide.GapOf(sequence, q.newest[slot]) > 0
	if newer || !q.met[slot] {
		first := !q.met[slot]
		q.newest[slot], q.met[slot] = sequence, true
		if first && sequence > 2 {
			return
		}
	} else if kind != wire.Heartbeat {
		return
	}
	q.enter(slot, question{at, sequence, kind, true})
}

// enter puts a message into its ring. A message that stays open is overwritten by the one askedMost
// ids later. For any other the ring grows.
func (q *questions) enter(slot int, a question) {
	ring := q.asked[slot]
	for {
		if n := len(ring); n > 0 {
			place := &ring[int(a.sequence)&(n-1)]
			if !place.live || n == askedMost || place.sequence == a.sequence {
				*place = a
				return
			}
		}
		ring = make([]question, max(askedLeast, 2*len(ring)))
		for _, open := range q.asked[slot] {
			if open.live {
				ring[int(open.sequence)&(len(ring)-1)] = open
			}
		}
		q.asked[slot] = ring
	}
}

// answer closes the message that an answer names. It returns how long the message was open. ok is
// false where none is.
func (q *questions) answer(kind wire.Type, sequence uint16, at machine.Instant) (wait time.Duration, ok bool) {
	ring := q.asked[slotOf(kind)]
	if len(ring) == 0 {
		return 0, false
	}
	a := &ring[int(sequence)&(len(ring)-1)]
	if !a.live || a.sequence != sequence || a.kind != kind {
		return 0, false
	}
	a.live = false
	return at.Sub(a.at), true
}

// cloneRings makes the rings independent copies.
func (q *questions) cloneRings() {
	for slot := range q.asked {
		q.asked[slot] = slices.Clone(q.asked[slot])
	}
}

func slotOf(kind wire.Type) int {
	if kind == wire.Reliable {
		return 0
	}
	return 1
}

// rtts compares two times of a client: from its pings to their answers at the tap, and the RTT that
// it reports. They are alike where the tap is at the client.
//
//   - 0 ≤ atTap and 0 ≤ own, the sums over pings
//   - 0 ≤ news ≤ the pings that reported an RTT
type rtts struct {
	pings      int
	atTap, own time.Duration    // sums
	outlier    [2]time.Duration // the sample whose RTT exceeds the time at the tap the most: at the tap, reported
	lastPing   time.Duration    // the newest sample at the tap; 0 for none
	reported   int16            // the RTT that it reported last
	ping       uint8            // and the ping that reported it
	// nearest is the least excess of a new RTT over the time of its ping beyond the tap. The excess is
	// the way from the tap to the client and back, and its tick.
	nearest time.Duration
	news    int // RTTs that were new
}

// roundedShort is how much shorter an RTT can be than the time that its ping took at the tap.
// Source: measured, TestMarginsRiptide
const roundedShort = 2 * time.Millisecond

// take records a ping and the RTT that it reports.
func (r *rtts) take(m *wire.Message) {
	if reported := time.Duration(m.RTT) * time.Millisecond; m.RTT > 0 && r.lastPing > 0 &&
		reported > r.lastPing-roundedShort {
		r.pings++
		r.atTap += r.lastPing
		r.own += reported
		if reported-r.lastPing > r.outlier[1]-r.outlier[0] {
			r.outlier = [2]time.Duration{r.lastPing, reported}
		}
		if m.RTT != r.reported && m.Ping == r.ping+1 {
			// Only a new RTT is certain to belong to the ping before. An unchanged one may be of an older
			// ping.
			r.measured(reported - r.lastPing)
		}
	}
	r.lastPing, r.reported, r.ping = 0, m.RTT, m.Ping
}

// measured records by how much a client's RTT exceeds the time of its ping beyond the tap.
func (r *rtts) measured(here time.Duration) {
	if r.news++; r.news == 1 || here < r.nearest {
		r.nearest = here
	}
}

// means returns the mean RTT, and the mean time of the pings beyond the tap. One sample far from
// all others does not count. There must be a ping.
func (r *rtts) means() (own, beyond time.Duration) {
	own, beyond = r.own, r.atTap
	n := time.Duration(r.pings)
	if rest := own - r.outlier[1] - (beyond - r.outlier[0]); n > 2 && r.outlier[1]-r.outlier[0] > 3*rest/(n-1)+2*tick {
		own, beyond, n = own-r.outlier[1], beyond-r.outlier[0], n-1
	}
	return own / n, beyond / n
}

// pace is how often a side sends. A side sends once per frame of its application.
type pace struct {
	sends machine.Instant // when it last sent; 0 for never
	frame time.Duration   // the least time between sends of two frames; 0 if unknown, else over machine.NearProof
}

// spoke records the time of a message of the side. Messages of one frame go out together.
func (p *pace) spoke(at machine.Instant) {
	if gap := at.Sub(p.sends); p.sends != 0 && gap > machine.NearProof && (p.frame == 0 || gap < p.frame) {
		p.frame = gap
	}
	p.sends = at
}

// wait returns how long the side can take to answer a message that it has.
func (p *pace) wait() time.Duration {
	return min(max(p.frame, riptide.UsualTick/2), slowFrame)
}

// slowFrame is the longest time that counts as a frame. A side that sends little shows no frame.
// Source: measured, TestMarginsRiptide
const slowFrame = 100 * time.Millisecond
