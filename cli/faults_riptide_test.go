package cli

import (
	"bytes"
	"math"
	"math/bits"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// riptideOracles are the oracles of the Riptide faults.
var riptideOracles = map[string]oracles{
	"ack-bit-off-by-one": {riptideAcksNear, riptideAcksAway},
	"ack-bits-reversed":  {riptideAcksNear, riptideAcksAway},
	"ack-newest-missing": {riptideAcksNear, riptideAcksAway},
	// senders read Acks with the same list
	"window-shift":      {firstOf(riptideAcksNear, riptideLate, riptideAcked), riptideAcksAway},
	"newest-stays":      {riptideAcksNear, riptideAcksAway},
	"older-ack-one-bit": {riptideAcked, explained},
	// away: Acks are lost and duplicated
	"ack-missing":           {riptideAcksNear, explained},
	"ack-twice":             {riptideAcksNear, explained},
	"duplicate-unanswered":  {riptideAcksNear, explained},
	"merged-sequences":      {differs, riptideReused},
	"sequence-skipped":      {differs, explained}, // away: the messages between may be lost
	"sequence-repeated":     {differs, riptideReused},
	"resend-early":          {riptideEarly, explained}, // away: jitter
	"resend-late":           {riptideLate, explained},  // away: copies may be lost
	"resend-without-end":    {riptideAcked, explained}, // away: the Acks may be lost
	"attempts-ignored":      {riptideSixteenth, explained},
	"heartbeat-early":       {riptideBeats, explained}, // away: jitter
	"ping-stays":            {differs, riptidePings},
	"rtt-doubled":           {riptideRTT, explained},        // away: the delay to the endpoint is unknown
	"heartbeat-unanswered":  {riptideUnanswered, explained}, // away: answers may be lost
	"timeout-ignored":       {riptideSilence, explained},    // away: signs of life may come another way
	"notify-bits-reversed":  {riptideNotifyNear, riptideNotifyAway},
	"notify-newest-missing": {riptideNotifyNear, riptideNotifyAway},
}

// messages passes the messages of a view to each until it returns true.
func (v *view) messages(t *testing.T, each func(i int, m *wire.Message) (wrong bool)) (frame uint64) {
	t.Helper()
	version, ok := riptide.LookupVersion(strings.TrimPrefix(v.run.flags.Protocol, "riptide:"))
	if !ok {
		t.Fatal(v.run.flags.Protocol)
	}
	codec := wire.Codec{Dialect: version.Build.Dialect}
	var m wire.Message
	for i, x := range v.sightings {
		if err := codec.Parse(x.b, len(x.b), &m); err != nil && m.Type == 0 {
			continue
		}
		if each(i, &m) {
			return v.frames[i]
		}
	}
	return 0
}

// asks reports whether a message of a view is a client's heartbeat. In the
// notes' form a server's heartbeats have an RTT too.
func (v *view) asks(i int, m *wire.Message) bool {
	return m.Type == wire.Heartbeat && v.sightings[i].own == (v.run.side == 0)
}

// welcomesOnce reports whether the server's Welcome has no answer.
func (v *view) welcomesOnce() bool {
	version, _ := riptide.LookupVersion(strings.TrimPrefix(v.run.flags.Protocol, "riptide:"))
	return !version.Answers
}

func acks(m *wire.Message) bool { return m.Type == wire.Ack || m.Type == wire.AckExtra }

const (
	// riptideFrame is the longest frame that a measured round trip may include.
	riptideFrame = 60 * time.Millisecond
	// riptideTimer is the greatest delay of a timer.
	riptideTimer = 400 * time.Millisecond
	// riptideClock is the error of the time between two sendings. The endpoint
	// reads a clock of whole milliseconds once a tick.
	riptideClock = 12 * time.Millisecond
)

// riptideAcksNear: the endpoint answers every reliable message with one Ack, in
// order of arrival. The Ack shows what has arrived by then.
func riptideAcksNear(t *testing.T, v *view) uint64 {
	type arrival struct {
		id uint16
		at machine.Instant
	}
	var open []arrival
	spoke := machine.Instant(0)
	newest, has := numbers{met: true}, map[int64]bool{0: true}
	return v.messages(t, func(i int, m *wire.Message) bool {
		at := v.sightings[i].at
		switch {
		case !v.sightings[i].own && m.Type.Reliable():
			open = append(open, arrival{m.Sequence, at})
		case !v.sightings[i].own:
		case len(open) > 0 && at.Sub(open[0].at) >= patience && spoke.Sub(open[0].at) >= patience/2:
			return true
		case acks(m):
			if len(open) == 0 || open[0].id != m.Cause && !m.Unnamed {
				return true
			}
			has[newest.take(uint32(open[0].id))] = true
			open = open[1:]
			said := uint16(0)
			for n := range int64(16) {
				if has[newest.newest-1-n] {
					said |= 1 << n
				}
			}
			if m.Last != uint16(newest.newest) || m.AckBits != said {
				return true
			}
		}
		if v.sightings[i].own {
			spoke = at
		}
		return false
	})
}

// riptideAcksAway: each Ack is a snapshot of a set that only grows, and
// contains the message that it answers. All of it passed the tap towards the
// endpoint. The order in which Acks were sent is unknown, but of two Acks one
// contains all of the other.
func riptideAcksAway(t *testing.T, v *view) uint64 {
	newest := numbers{met: true}
	passed := map[int64]bool{}
	type snapshot struct {
		last int64
		has  map[int64]bool
	}
	var kept []snapshot
	within := func(a, b *snapshot) bool { // all of a that b covers is in b
		if a.last > b.last {
			return false
		}
		for q := range a.has {
			if q >= b.last-16 && !b.has[q] {
				return false
			}
		}
		return true
	}
	return v.messages(t, func(i int, m *wire.Message) bool {
		if !v.sightings[i].own {
			if m.Type.Reliable() {
				passed[newest.take(uint32(m.Sequence))] = true
			}
			return false
		}
		if !acks(m) {
			return false
		}
		s := snapshot{newest.of(uint32(m.Last)), map[int64]bool{}}
		s.has[s.last] = true
		for n := range int64(16) {
			if m.AckBits>>n&1 == 1 {
				s.has[s.last-1-n] = true
			}
		}
		cause := newest.of(uint32(m.Cause))
		bad := cause > s.last || cause >= s.last-16 && !s.has[cause]
		for q := range s.has {
			bad = bad || q > 0 && !passed[q]
		}
		bad = bad || cause > 0 && !passed[cause]
		for j := range kept {
			bad = bad || !within(&kept[j], &s) && !within(&s, &kept[j])
		}
		kept = append(kept, s)
		return bad
	})
}

// riptideReused: a message that is sent again has the same bytes.
func riptideReused(t *testing.T, v *view) uint64 {
	known := map[uint16][]byte{}
	return v.messages(t, func(i int, m *wire.Message) bool {
		if !v.sightings[i].own || !m.Type.Reliable() {
			return false
		}
		was, ok := known[m.Sequence]
		known[m.Sequence] = v.sightings[i].b
		return ok && !bytes.Equal(was, v.sightings[i].b)
	})
}

// riptideSent follows the reliable messages of the endpoint.
type riptideSent struct {
	v        *view
	messages map[uint16]*riptideMessage
	arrived  int // datagrams that passed the tap towards the endpoint
	times    []machine.Instant
	named    map[uint16]bool // ids that an Ack on its way to the endpoint named
	answered int             // datagrams that the endpoint has read, as its Acks prove
	open     []int
	ids      []uint16
	beats    map[uint8]machine.Instant // the endpoint's newest ping, with its time
	least    int                       // lower bound of the smoothed RTT, in ms; -1 unknown; most is the upper bound
	most     int
	spoke    machine.Instant

	// The bounds before the last sample, which may be unread in the socket.
	sampledAt         machine.Instant
	wasLeast, wasMost int
}

// sampled adds a round trip that passed on its way to the endpoint.
func (s *riptideSent) sampled(at machine.Instant, least, most int) {
	s.sampledAt, s.wasLeast, s.wasMost = at, s.least, s.most
	s.least, s.most = riptide.Smooth(s.least, max(least, 0)), riptide.Smooth(s.most, most)
}

type riptideMessage struct {
	b      []byte
	at     machine.Instant
	copies int
	soon   time.Duration // after the last copy the next one is due between soon and due
	due    time.Duration

	forgotten bool // its timer will not run again
}

func sentBy(v *view) *riptideSent {
	return &riptideSent{
		v: v, messages: map[uint16]*riptideMessage{}, named: map[uint16]bool{},
		beats: map[uint8]machine.Instant{}, least: -1, most: -1, sampledAt: math.MinInt64 / 2,
	}
}

// take records a message of either side.
func (s *riptideSent) take(i int, m *wire.Message) {
	x := s.v.sightings[i]
	if !x.own {
		s.arrived++
		s.times = append(s.times, x.at)
		switch {
		case acks(m):
			s.named[m.Cause], s.named[m.Last] = true, true
			for n := range uint16(16) {
				if m.AckBits>>n&1 == 1 {
					s.named[m.Last-1-n] = true
				}
			}
		case m.Type.Reliable():
			s.open, s.ids = append(s.open, s.arrived), append(s.ids, m.Sequence)
		case s.v.asks(i, m) && m.RTT >= 0:
			s.sampled(x.at, int(m.RTT), int(m.RTT)) // a client reports it
		case m.Type == wire.Heartbeat && !s.v.asks(i, m):
			if at, ok := s.beats[m.Ping]; ok {
				delete(s.beats, m.Ping)
				took := int(x.at.Sub(at)/time.Millisecond) - 1
				s.sampled(x.at, took, took+int(riptideFrame/time.Millisecond))
			}
		}
		return
	}
	s.spoke = x.at
	switch {
	case acks(m):
		for k, id := range s.ids {
			// An Ack without an id belongs to the next message: each copy is answered
			// once, in order.
			if id == m.Cause || m.Unnamed {
				s.answered = max(s.answered, s.open[k])
				s.open, s.ids = s.open[k+1:], s.ids[k+1:]
				break
			}
		}
	case s.v.asks(i, m):
		s.beats = map[uint8]machine.Instant{m.Ping: x.at}
	case m.Type.Reliable():
		e := s.messages[m.Sequence]
		if e == nil {
			e = &riptideMessage{b: x.b}
			s.messages[m.Sequence] = e
		}
		e.at, e.soon, e.due = x.at, riptide.ResendAfter(s.least), riptide.ResendAfter(s.most)
		if x.at.Sub(s.sampledAt) < readWithin {
			e.soon, e.due = min(e.soon, riptide.ResendAfter(s.wasLeast)), max(e.due, riptide.ResendAfter(s.wasMost))
		}
		e.copies++
		e.forgotten = false
	}
}

// cleared returns the number of arrivals after which a correct endpoint
// considers a message acked.
func (s *riptideSent) cleared(id uint16) int {
	if n, ok := s.v.run.shadow.cleared[uint32(id)]; ok {
		return n
	}
	return math.MaxInt
}

// riptideAcked: the endpoint does not resend a message whose Ack it has read.
// Its own Acks of later messages show that it has read it.
func riptideAcked(t *testing.T, v *view) uint64 {
	s := sentBy(v)
	return v.messages(t, func(i int, m *wire.Message) bool {
		if v.sightings[i].own && m.Type.Reliable() && s.messages[m.Sequence] != nil {
			if n := s.cleared(m.Sequence); n < s.answered || n <= s.arrived && v.sightings[i].at.Sub(s.times[n-1]) > readWithin {
				return true
			}
		}
		s.take(i, m)
		return false
	})
}

// riptideSixteenth: a message is sent at most 15 times.
func riptideSixteenth(t *testing.T, v *view) uint64 {
	s := sentBy(v)
	return v.messages(t, func(i int, m *wire.Message) bool {
		s.take(i, m)
		return v.sightings[i].own && m.Type.Reliable() && s.messages[m.Sequence].copies > 15
	})
}

// riptideEarly: a message is sent again when its timer has expired. A process
// can be delayed between reading its clock and writing to its socket. But that
// does not happen at four times, and to more than half of all copies.
func riptideEarly(t *testing.T, v *view) uint64 {
	s := sentBy(v)
	copies, early, apart, first, counted := 0, 0, 0, uint64(0), machine.Instant(math.MinInt64/2)
	v.messages(t, func(i int, m *wire.Message) bool {
		at := v.sightings[i].at
		if e := s.messages[m.Sequence]; v.sightings[i].own && m.Type.Reliable() && e != nil {
			copies++
			if at.Sub(e.at) < e.soon-riptideClock {
				if first == 0 {
					first = v.frames[i]
				}
				if early++; at.Sub(counted) > 200*time.Millisecond {
					apart++
					counted = at
				}
			}
			if apart >= 4 && 2*early > copies {
				return true
			}
		}
		s.take(i, m)
		return false
	})
	if apart < 4 || 2*early <= copies {
		return 0
	}
	return first
}

// riptideLate: a message without an Ack is sent again while the endpoint sends
// others. After an Ack far ahead of the one before, a correct endpoint can
// consider messages acked that no Ack names. The scenarios run as riptide:main,
// because the timer queue of the releases can delay a timer.
func riptideLate(t *testing.T, v *view) uint64 {
	notes := v.run.flags.Protocol == "riptide:notes" // their Acks acknowledge by their bits alone
	if !notes && v.run.flags.Protocol != "riptide:main" {
		t.Fatalf("%s: expected riptide:main or riptide:notes, whose timers run out in order", v.run.flags.Protocol)
	}
	s := sentBy(v)
	return v.messages(t, func(i int, m *wire.Message) bool {
		at := v.sightings[i].at
		bad := false
		for id, e := range s.messages {
			if !v.sightings[i].own || !notes && s.named[id] || s.cleared(id) <= s.arrived ||
				m.Type.Reliable() && m.Sequence == id {
				continue
			}
			// If the RTT has grown meanwhile, the library's timer finds that the
			// message was sent within half of it. The timer is then not set again.
			e.forgotten = e.forgotten || time.Duration(s.most/2)*time.Millisecond >= e.soon
			bad = bad || !e.forgotten && at.Sub(e.at) >= e.due+riptideTimer && s.spoke.Sub(e.at) >= e.due+riptideTimer/2
		}
		s.take(i, m)
		return bad
	})
}

// riptideBeats: a heartbeat is sent once a second.
func riptideBeats(t *testing.T, v *view) uint64 {
	last := machine.Instant(math.MinInt64 / 2)
	return v.messages(t, func(i int, m *wire.Message) bool {
		if !v.sightings[i].own || !v.asks(i, m) {
			return false
		}
		early := v.sightings[i].at.Sub(last) < riptide.HeartbeatInterval-riptideFrame
		last = v.sightings[i].at
		return early
	})
}

// riptidePings: the network duplicates heartbeats, but does not change them.
func riptidePings(t *testing.T, v *view) uint64 {
	known := map[uint8][]byte{}
	return v.messages(t, func(i int, m *wire.Message) bool {
		if !v.sightings[i].own || !v.asks(i, m) {
			return false
		}
		was, ok := known[m.Ping]
		known[m.Ping] = v.sightings[i].b
		return ok && !bytes.Equal(was, v.sightings[i].b)
	})
}

// riptideRTT: a heartbeat reports the round trip of the last answer. The answer
// may have waited for the end of a frame.
func riptideRTT(t *testing.T, v *view) uint64 {
	s := sentBy(v)
	const most = 250
	low := -1
	return v.messages(t, func(i int, m *wire.Message) bool {
		x := v.sightings[i]
		if !x.own && m.Type == wire.Heartbeat {
			if at, ok := s.beats[m.Ping]; ok {
				low = int(x.at.Sub(at)/time.Millisecond) - 1
			}
		}
		bad := x.own && m.Type == wire.Heartbeat && low >= 0 && (int(m.RTT) < low || int(m.RTT) > low+most)
		s.take(i, m)
		return bad
	})
}

// riptideUnanswered: a server answers each heartbeat.
func riptideUnanswered(t *testing.T, v *view) uint64 {
	type ping struct {
		id uint8
		at machine.Instant
	}
	var open []ping
	spoke, connected := machine.Instant(0), false
	return v.messages(t, func(i int, m *wire.Message) bool {
		at := v.sightings[i].at
		// Before the connection it need not answer.
		connected = connected || m.Type == wire.Welcome && (!v.sightings[i].own || v.welcomesOnce())
		switch {
		case !v.sightings[i].own && m.Type == wire.Heartbeat && connected:
			open = append(open, ping{m.Ping, at})
		case !v.sightings[i].own:
		case m.Type == wire.Heartbeat:
			for k := range open {
				if open[k].id == m.Ping {
					open = append(open[:k], open[k+1:]...)
					break
				}
			}
		case len(open) > 0 && at.Sub(open[0].at) > patience && spoke.Sub(open[0].at) > patience/2:
			return true
		}
		if v.sightings[i].own {
			spoke = at
		}
		return false
	})
}

// riptideSilence: the endpoint gives up a peer after five seconds of silence,
// when the next heartbeat is due.
func riptideSilence(t *testing.T, v *view) uint64 {
	heard := machine.Instant(math.MaxInt64 / 2)
	return v.messages(t, func(i int, m *wire.Message) bool {
		at := v.sightings[i].at
		if !v.sightings[i].own {
			if m.Type == wire.Heartbeat || m.Type == wire.Welcome || m.Type == wire.Connect {
				heard = at
			}
			return false
		}
		return m.Type != wire.Connect && at.Sub(heard) >= riptide.Timeout+riptide.HeartbeatInterval+readWithin
	})
}

// notifySnapshot returns the header fields of a receiver of notify messages
// with those arrivals. It accepts only messages newer than all before.
func notifySnapshot(arrivals []uint16) (last uint16, acks uint8) {
	has := map[uint16]bool{0: true}
	for _, id := range arrivals {
		if int16(id-last) > 0 {
			last = id
			has[id] = true
		}
	}
	for n := range uint16(8) {
		if has[last-1-n] && last > n {
			acks |= 1 << n
		}
	}
	return last, acks
}

// riptideNotifyNear: a notify header shows what had arrived at some moment,
// which is not before that of earlier headers and Acks.
func riptideNotifyNear(t *testing.T, v *view) uint64 {
	type arrival struct {
		id       uint16
		reliable bool
	}
	var all []arrival
	read := 0 // at least so many messages have been read
	return v.messages(t, func(i int, m *wire.Message) bool {
		switch {
		case !v.sightings[i].own && (m.Type.Reliable() || m.Type == wire.Notify):
			all = append(all, arrival{m.Sequence, m.Type.Reliable()})
		case !v.sightings[i].own:
		case acks(m):
			for k := read; k < len(all); k++ {
				if all[k].reliable && all[k].id == m.Cause {
					read = k + 1
					break
				}
			}
		case m.Type == wire.Notify:
			for k := read; k <= len(all); k++ {
				var taken []uint16
				for _, a := range all[:k] {
					if !a.reliable {
						taken = append(taken, a.id)
					}
				}
				if last, bits := notifySnapshot(taken); last == m.Last && bits == uint8(m.AckBits) {
					read = k
					return false
				}
			}
			return true
		}
		return false
	})
}

// riptideNotifyAway: notify headers, ordered by sequence, are snapshots of
// arrivals whose sequences grow. Two headers agree about every message that
// both cover.
func riptideNotifyAway(t *testing.T, v *view) uint64 {
	peer, own := numbers{met: true}, numbers{met: true}
	passed := map[int64]bool{}
	type header struct {
		number, last int64
		bits         uint64 // bit n: last-n
	}
	var kept []header
	agree := func(a, b *header) bool { // a is the earlier one
		if a.last > b.last {
			return false
		}
		moved := uint(b.last - a.last)
		if moved > 8 {
			return true
		}
		covered := uint64(1)<<9 - 1
		return a.bits<<moved&covered == b.bits&^(1<<moved-1)&covered
	}
	return v.messages(t, func(i int, m *wire.Message) bool {
		if m.Type != wire.Notify {
			return false
		}
		if !v.sightings[i].own {
			passed[peer.take(uint32(m.Sequence))] = true
			return false
		}
		h := header{own.take(uint32(m.Sequence)), peer.of(uint32(m.Last)), uint64(uint8(m.AckBits))<<1 | 1}
		bad := false
		for left := h.bits; left != 0; left &= left - 1 {
			q := h.last - int64(bits.TrailingZeros64(left))
			bad = bad || q > 0 && !passed[q]
		}
		for j := range kept {
			g := &kept[j]
			switch {
			case g.number < h.number:
				bad = bad || !agree(g, &h)
			case g.number > h.number:
				bad = bad || !agree(&h, g)
			}
		}
		kept = append(kept, h)
		return bad
	})
}
