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

// riptideOracles say what can be known of the Riptide faults.
var riptideOracles = map[string]oracles{
	"ack-bit-off-by-one": {riptideAcksNear, riptideAcksAway},
	"ack-bits-reversed":  {riptideAcksNear, riptideAcksAway},
	"ack-newest-missing": {riptideAcksNear, riptideAcksAway},
	// senders read Acks by the same list
	"window-shift": {firstOf(riptideAcksNear, riptideLate, riptideAcked), riptideAcksAway},
	// away: Acks are lost and doubled
	"ack-missing":           {riptideAcksNear, explained},
	"ack-twice":             {riptideAcksNear, explained},
	"duplicate-unanswered":  {riptideAcksNear, explained},
	"merged-sequences":      {differs, riptideReused},
	"sequence-skipped":      {differs, explained}, // away: those between were lost
	"sequence-repeated":     {differs, riptideReused},
	"resend-early":          {riptideEarly, explained}, // away: jitter
	"resend-late":           {riptideLate, explained},  // away: copies were lost
	"resend-without-end":    {riptideAcked, explained}, // away: the Acks were lost
	"attempts-ignored":      {riptideSixteenth, explained},
	"heartbeat-early":       {riptideBeats, explained}, // away: jitter
	"ping-stays":            {differs, riptidePings},
	"rtt-doubled":           {riptideRTT, explained},        // away: the way is not known
	"heartbeat-unanswered":  {riptideUnanswered, explained}, // away: answers are lost
	"timeout-ignored":       {riptideSilence, explained},    // away: signs of life came another way
	"notify-bits-reversed":  {riptideNotifyNear, riptideNotifyAway},
	"notify-newest-missing": {riptideNotifyNear, riptideNotifyAway},
}

// messages hands over the messages of a view, until it is told to stop.
func (v *view) messages(t *testing.T, each func(i int, m *wire.Message) (wrong bool)) (frame uint64) {
	t.Helper()
	version, ok := riptide.LookupVersion(strings.TrimPrefix(v.run.flags.Protocol, "riptide:"))
	if !ok {
		t.Fatal(v.run.flags.Protocol)
	}
	codec := wire.Codec{Dialect: version.Build.Dialect}
	var m wire.Message
	for i, x := range v.sights {
		if err := codec.Parse(x.b, len(x.b), &m); err != nil && m.Type == 0 {
			continue
		}
		if each(i, &m) {
			return v.frames[i]
		}
	}
	return 0
}

// asks reports whether a message of a view is a client's heartbeat. By the notes
// those of a server have an RTT too.
func (v *view) asks(i int, m *wire.Message) bool {
	return m.Type == wire.Heartbeat && v.sights[i].own == (v.run.side == 0)
}

// welcomesOnce reports whether no client answers the server's Welcome.
func (v *view) welcomesOnce() bool {
	version, _ := riptide.LookupVersion(strings.TrimPrefix(v.run.flags.Protocol, "riptide:"))
	return !version.Answers
}

func acks(m *wire.Message) bool { return m.Type == wire.Ack || m.Type == wire.AckExtra }

const (
	// riptideFrame is the longest frame that a measured round trip is taken to
	// have waited for.
	riptideFrame = 60 * time.Millisecond
	// riptideTimer is how late a timer may be looked at.
	riptideTimer = 400 * time.Millisecond
	// riptideClock is by how much two sendings can seem closer together than they
	// are by a clock of whole milliseconds that is asked once a tick.
	riptideClock = 12 * time.Millisecond
)

// riptideAcksNear: every reliable message that reaches the endpoint is answered by
// one Ack, in the order in which they come, and the Ack says what has come by then.
func riptideAcksNear(t *testing.T, v *view) uint64 {
	type arrival struct {
		id uint16
		at machine.Instant
	}
	var open []arrival
	spoke := machine.Instant(0)
	newest, has := numbers{met: true}, map[int64]bool{0: true}
	return v.messages(t, func(i int, m *wire.Message) bool {
		at := v.sights[i].at
		switch {
		case !v.sights[i].own && m.Type.Reliable():
			open = append(open, arrival{m.Sequence, at})
		case !v.sights[i].own:
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
		if v.sights[i].own {
			spoke = at
		}
		return false
	})
}

// riptideAcksAway: Acks are snapshots of a set that only grows, of what passed the
// tap on its way to the endpoint, and each has what it answers. In which order
// they were sent does not show, but that of two one has all of the other does.
func riptideAcksAway(t *testing.T, v *view) uint64 {
	newest := numbers{met: true}
	passed := map[int64]bool{}
	type snapshot struct {
		last int64
		has  map[int64]bool
	}
	var kept []snapshot
	within := func(a, b *snapshot) bool { // all of a that b speaks of is in b
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
		if !v.sights[i].own {
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

// riptideReused: a message that is sent again is the same, byte for byte.
func riptideReused(t *testing.T, v *view) uint64 {
	known := map[uint16][]byte{}
	return v.messages(t, func(i int, m *wire.Message) bool {
		if !v.sights[i].own || !m.Type.Reliable() {
			return false
		}
		was, ok := known[m.Sequence]
		known[m.Sequence] = v.sights[i].b
		return ok && !bytes.Equal(was, v.sights[i].b)
	})
}

// riptideSent follows the reliable messages of the endpoint.
type riptideSent struct {
	v        *view
	messages map[uint16]*riptideMessage
	arrived  int // datagrams that passed the tap towards the endpoint
	times    []machine.Instant
	named    map[uint16]bool // by an Ack that passed the tap towards the endpoint
	answered int             // of them, up to which one its Acks show that it has read
	open     []int
	ids      []uint16
	beats    map[uint8]machine.Instant // of the endpoint's pings
	least    int                       // the smoothed RTT at least and at most, ms; -1 unknown
	most     int
	spoke    machine.Instant

	// What was known before the last sample, which may lie in the socket unread.
	sampledAt         machine.Instant
	wasLeast, wasMost int
}

// sampled takes a round trip time that passed on its way to the endpoint.
func (s *riptideSent) sampled(at machine.Instant, least, most int) {
	s.sampledAt, s.wasLeast, s.wasMost = at, s.least, s.most
	s.least, s.most = riptide.Smooth(s.least, max(least, 0)), riptide.Smooth(s.most, most)
}

type riptideMessage struct {
	b      []byte
	at     machine.Instant
	copies int
	soon   time.Duration // after the last one, the next is due: at the soonest, and at the latest
	due    time.Duration

	forgotten bool // by its timer
}

func sentBy(v *view) *riptideSent {
	return &riptideSent{v: v, messages: map[uint16]*riptideMessage{}, named: map[uint16]bool{},
		beats: map[uint8]machine.Instant{}, least: -1, most: -1, sampledAt: math.MinInt64 / 2}
}

// take enters a message of either side.
func (s *riptideSent) take(i int, m *wire.Message) {
	x := s.v.sights[i]
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
			s.sampled(x.at, int(m.RTT), int(m.RTT)) // a client tells it
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
			// An Ack that names no id is the next one's: each copy is answered once, in order.
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

// cleared returns after how many arrivals a right endpoint takes a message for
// received.
func (s *riptideSent) cleared(id uint16) int {
	if n, ok := s.v.run.shadow.cleared[uint32(id)]; ok {
		return n
	}
	return math.MaxInt
}

// riptideAcked: nothing is sent again that the endpoint has read an Ack of. That
// it has read it shows in its own Acks, of what came later.
func riptideAcked(t *testing.T, v *view) uint64 {
	s := sentBy(v)
	return v.messages(t, func(i int, m *wire.Message) bool {
		if v.sights[i].own && m.Type.Reliable() && s.messages[m.Sequence] != nil {
			if n := s.cleared(m.Sequence); n < s.answered || n <= s.arrived && v.sights[i].at.Sub(s.times[n-1]) > readWithin {
				return true
			}
		}
		s.take(i, m)
		return false
	})
}

// riptideSixteenth: a message is sent 15 times.
func riptideSixteenth(t *testing.T, v *view) uint64 {
	s := sentBy(v)
	return v.messages(t, func(i int, m *wire.Message) bool {
		s.take(i, m)
		return v.sights[i].own && m.Type.Reliable() && s.messages[m.Sequence].copies > 15
	})
}

// riptideEarly: a message is sent again when its timer has run out. Between its
// clock and its socket a process can be held up, now and then: four times, and
// in more than half of all copies, is none of that.
func riptideEarly(t *testing.T, v *view) uint64 {
	s := sentBy(v)
	copies, early, apart, first, counted := 0, 0, 0, uint64(0), machine.Instant(math.MinInt64/2)
	v.messages(t, func(i int, m *wire.Message) bool {
		at := v.sights[i].at
		if e := s.messages[m.Sequence]; v.sights[i].own && m.Type.Reliable() && e != nil {
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

// riptideLate: a message that is not acked is sent again, while the endpoint goes
// on sending others. After an Ack far ahead of the one before, a right endpoint can
// take for acked what none has named. Its scenarios run as riptide:main: the queue
// of timers of the releases can hold one back.
func riptideLate(t *testing.T, v *view) uint64 {
	notes := v.run.flags.Protocol == "riptide:notes" // whose Acks clear by their bits alone
	if !notes && v.run.flags.Protocol != "riptide:main" {
		t.Fatalf("%s: expected riptide:main or riptide:notes, whose timers run out in order", v.run.flags.Protocol)
	}
	s := sentBy(v)
	return v.messages(t, func(i int, m *wire.Message) bool {
		at := v.sights[i].at
		bad := false
		for id, e := range s.messages {
			if !v.sights[i].own || !notes && s.named[id] || s.cleared(id) <= s.arrived || m.Type.Reliable() && m.Sequence == id {
				continue
			}
			// Where the RTT has grown meanwhile, the library's timer finds that the
			// message was sent within half of it, and forgets to look again.
			e.forgotten = e.forgotten || time.Duration(s.most/2)*time.Millisecond >= e.soon
			bad = bad || !e.forgotten && at.Sub(e.at) >= e.due+riptideTimer && s.spoke.Sub(e.at) >= e.due+riptideTimer/2
		}
		s.take(i, m)
		return bad
	})
}

// riptideBeats: a heartbeat goes out once a second.
func riptideBeats(t *testing.T, v *view) uint64 {
	last := machine.Instant(math.MinInt64 / 2)
	return v.messages(t, func(i int, m *wire.Message) bool {
		if !v.sights[i].own || !v.asks(i, m) {
			return false
		}
		early := v.sights[i].at.Sub(last) < riptide.HeartbeatInterval-riptideFrame
		last = v.sights[i].at
		return early
	})
}

// riptidePings: the network doubles a heartbeat, and does not change it.
func riptidePings(t *testing.T, v *view) uint64 {
	known := map[uint8][]byte{}
	return v.messages(t, func(i int, m *wire.Message) bool {
		if !v.sights[i].own || !v.asks(i, m) {
			return false
		}
		was, ok := known[m.Ping]
		known[m.Ping] = v.sights[i].b
		return ok && !bytes.Equal(was, v.sights[i].b)
	})
}

// riptideRTT: the round trip time that a heartbeat tells is that of the last
// answer, which may have waited for its frame.
func riptideRTT(t *testing.T, v *view) uint64 {
	s := sentBy(v)
	const most = 250
	low := -1
	return v.messages(t, func(i int, m *wire.Message) bool {
		x := v.sights[i]
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
		at := v.sights[i].at
		connected = connected || m.Type == wire.Welcome && (!v.sights[i].own || v.welcomesOnce()) // before that it need not
		switch {
		case !v.sights[i].own && m.Type == wire.Heartbeat && connected:
			open = append(open, ping{m.Ping, at})
		case !v.sights[i].own:
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
		if v.sights[i].own {
			spoke = at
		}
		return false
	})
}

// riptideSilence: a peer that gives no sign of life for five seconds is given up
// when the next heartbeat is due.
func riptideSilence(t *testing.T, v *view) uint64 {
	heard := machine.Instant(math.MaxInt64 / 2)
	return v.messages(t, func(i int, m *wire.Message) bool {
		at := v.sights[i].at
		if !v.sights[i].own {
			if m.Type == wire.Heartbeat || m.Type == wire.Welcome || m.Type == wire.Connect {
				heard = at
			}
			return false
		}
		return m.Type != wire.Connect && at.Sub(heard) >= riptide.Timeout+riptide.HeartbeatInterval+readWithin
	})
}

// notifySnapshot is what a receiver of notify messages with those arrivals says:
// it takes only what is newer than all before.
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

// riptideNotifyNear: a notify header says what had come up to some moment, not
// before those of earlier headers and Acks.
func riptideNotifyNear(t *testing.T, v *view) uint64 {
	type arrival struct {
		id       uint16
		reliable bool
	}
	var all []arrival
	read := 0 // so many of them have been, at least
	return v.messages(t, func(i int, m *wire.Message) bool {
		switch {
		case !v.sights[i].own && (m.Type.Reliable() || m.Type == wire.Notify):
			all = append(all, arrival{m.Sequence, m.Type.Reliable()})
		case !v.sights[i].own:
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

// riptideNotifyAway: notify headers, in the order of their sequences, are
// snapshots of what came, newer after newer: what one of them speaks of, the next
// says the same of, as far as it reaches.
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
		reach := uint64(1)<<9 - 1
		return a.bits<<moved&reach == b.bits&^(1<<moved-1)&reach
	}
	return v.messages(t, func(i int, m *wire.Message) bool {
		if m.Type != wire.Notify {
			return false
		}
		if !v.sights[i].own {
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
