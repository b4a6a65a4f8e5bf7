package tracker

import (
	"cmp"
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// world is a lossy network with two endpoints that are driven by State, and a tap. Both
// endpoints log what they do. The logs are the oracle for the tracker's facts.
type world struct {
	rules  *gaffer.Rules
	rnd    *rand.Rand
	host   [2]host
	seen   []sighting // by the tap, in its order
	config worldConfig
}

type worldConfig struct {
	tap        machine.Vantage
	tick       [2]time.Duration
	delay      time.Duration // one way
	jitter     time.Duration
	loss       float64
	duplicate  float64
	refuse     float64
	fragmented float64
	stall      float64 // per frame
	start      [2]uint32
	joinAfter  time.Duration // when the capture begins
	length     time.Duration
	outage     [2]time.Duration // what a side sends is lost for so long at the end of each outageEvery
}

const outageEvery = 4 * time.Second

func (c *worldConfig) cut(x machine.Side, at machine.Instant) bool {
	return time.Duration(at)%outageEvery >= outageEvery-c.outage[x]
}

type host struct {
	gaffer.State
	socket  []flight
	log     []logged
	sentAt  map[int64]machine.Instant
	number  int64 // of the next packet
	partial map[uint32]sighting
}

// flight is a datagram on its way, or in a socket.
type flight struct {
	sighting
	number  int64
	arrives machine.Instant
}

type logged struct {
	kind   machine.EventKind
	number int64 // of the packet
	at     machine.Instant
	frame  machine.Ref // that brought it, if it passed the tap there
	rtt    int64
}

func newWorld(seed int64, r *gaffer.Rules, c worldConfig) *world {
	w := &world{rules: r, rnd: rand.New(rand.NewSource(seed)), config: c}
	for i := range w.host {
		w.host[i] = host{
			State: gaffer.NewState(r), sentAt: map[int64]machine.Instant{}, partial: map[uint32]sighting{},
			number: int64(c.start[i]),
		}
		w.host[i].StartAt(c.start[i])
		if c.start[1-i] != 0 {
			w.host[i].Join(gaffer.Claims{Newest: (c.start[1-i] - 1) & r.Mask(), Width: r.AckBits})
		}
	}
	return w
}

// run simulates the world and leaves the tap's view in w.seen.
func (w *world) run() {
	c := &w.config
	var net []flight
	next := [2]machine.Instant{0, machine.Instant(w.rnd.Int63n(int64(c.tick[1])))}
	for {
		x := 0
		if next[1] < next[0] {
			x = 1
		}
		now := next[x]
		// At the end both go on reading for a while without sending.
		if now > machine.Instant(c.length+c.delay+c.jitter+time.Second) {
			break
		}
		// What has arrived by now goes into the sockets, in the order of arrival.
		slices.SortStableFunc(net, func(a, b flight) int { return cmp.Compare(a.arrives, b.arrives) })
		n := 0
		for _, f := range net {
			if f.arrives > now {
				break
			}
			to := &w.host[f.from.Other()]
			if c.tap.Near(f.from.Other()) && !c.tap.Near(f.from) {
				f.at = f.arrives
				w.tap(&f)
			}
			to.socket = append(to.socket, f)
			n++
		}
		net = net[n:]
		w.read(machine.Side(x), now)
		if now <= machine.Instant(c.length) {
			net = append(net, w.send(machine.Side(x), now)...)
		}
		next[x] = now.Add(c.tick[x] + time.Duration(w.rnd.Int63n(int64(c.tick[x]/50)+1)))
		if w.rnd.Float64() < c.stall {
			next[x] = next[x].Add(time.Duration(w.rnd.Int63n(int64(400 * time.Millisecond))))
		}
	}
	slices.SortStableFunc(w.seen, func(a, b sighting) int { return cmp.Compare(a.at, b.at) })
	for i := range w.seen {
		w.seen[i].ref = machine.Ref(i + 1)
	}
}

// tap records a datagram. At the end run sorts them all.
func (w *world) tap(f *flight) {
	if f.at >= machine.Instant(w.config.joinAfter) {
		w.seen = append(w.seen, f.sighting)
	}
}

func (w *world) read(x machine.Side, now machine.Instant) {
	h, peer := &w.host[x], &w.host[x.Other()]
	for _, f := range h.socket {
		p := f.sighting
		if p.count > 0 {
			fate := h.ArriveFragment(p.sequence, int(p.id), int(p.count))
			if p.id == 0 {
				h.partial[p.sequence] = p
			}
			if fate != gaffer.FragmentComplete {
				continue
			}
		}
		fate := h.Arrive(p.sequence, w.rnd.Float64() < w.config.refuse)
		if p.count > 0 {
			h.Forget(p.sequence)
			first := h.partial[p.sequence]
			p.ack, p.ackBits = first.ack, first.ackBits
		}
		kind := map[gaffer.Fate]machine.EventKind{
			gaffer.Accepted: machine.EventReceived, gaffer.Redelivered: machine.EventReceived,
			gaffer.Refused:   machine.EventRejected,
			gaffer.Duplicate: machine.EventDuplicate, gaffer.Stale: machine.EventStale,
		}[fate]
		h.log = append(h.log, logged{kind: kind, number: f.number, at: now, frame: machine.Ref(p.at)})
		if !fate.Delivered() {
			continue
		}
		c := w.rules.Claims(p.ack, p.ackBits)
		for told := h.ReadAcks(c, now, 0); told != 0; told &= told - 1 {
			n := 0
			for told>>n&1 == 0 {
				n++
			}
			number := h.number - 1 +
				int64(w.rules.Distance((c.Newest-uint32(n))&w.rules.Mask(), uint32(h.number-1)&w.rules.Mask()))
			h.log = append(h.log,
				logged{
					kind: machine.EventAcked, number: number, at: now, frame: machine.Ref(p.at),
					rtt: int64(now - h.sentAt[number]),
				})
		}
	}
	h.socket = h.socket[:0]
	_ = peer
}

func (w *world) send(x machine.Side, now machine.Instant) []flight {
	c := &w.config
	h := &w.host[x]
	header := h.Header()
	h.Send(gaffer.Sent{At: now})
	h.sentAt[h.number] = now
	count := 1
	if w.rnd.Float64() < c.fragmented {
		count = 2 + w.rnd.Intn(4)
	}
	var out []flight
	at := now.Add(20*time.Microsecond + time.Duration(w.rnd.Int63n(60_000)))
	for id := range count {
		at = at.Add(5 * time.Microsecond)
		f := flight{number: h.number, sighting: sighting{
			at: at, sequence: header.Sequence, ack: header.Ack, ackBits: header.AckBits, header: id == 0, from: x, length: 100,
		}}
		if count > 1 {
			f.id, f.count = uint16(id), uint16(count)
			if id > 0 {
				f.ack, f.ackBits = 0, 0
			}
		}
		if c.tap.Near(x) {
			w.tap(&f)
		}
		copies := 1
		if w.rnd.Float64() < c.duplicate {
			copies = 2
		}
		for range copies {
			if w.rnd.Float64() < c.loss || c.cut(x, at) {
				continue
			}
			first := c.delay + time.Duration(w.rnd.Int63n(int64(c.jitter)+1))
			g := f
			if c.tap == machine.VantageBetween {
				first /= 2
				g.at = at.Add(first)
				w.tap(&g)
				if w.rnd.Float64() < c.loss {
					continue
				}
				g.arrives = g.at.Add(c.delay/2 + time.Duration(w.rnd.Int63n(int64(c.jitter)+1))/2)
			} else {
				g.arrives = at.Add(first)
			}
			out = append(out, g)
		}
	}
	h.number++
	return out
}

// facts runs a tracker twice over what the tap saw, as package analyze does.
func (w *world) facts(vantage machine.Vantage) (*Tracker, []machine.Event, []machine.Anomaly) {
	learned := machine.Facts{Vantage: vantage}
	for run := 0; ; run++ {
		t := NewByRules(nil, w.rules, learned)
		var out machine.Effects
		for i := range w.seen {
			t.take(&w.seen[i], &out)
			if out.NewSession {
				panic("a session was found that is none")
			}
		}
		t.Finish(&out)
		if run == 1 {
			return t, out.Events, out.Anomalies
		}
		learned = t.Learned()
	}
}

func randomConfig(rnd *rand.Rand, tap machine.Vantage) worldConfig {
	pick := func(of ...float64) float64 { return of[rnd.Intn(len(of))] }
	rate := func() time.Duration {
		return time.Duration(float64(time.Second) / pick(10, 20, 30, 60, 60, 64, 128, 240))
	}
	c := worldConfig{
		tap: tap, tick: [2]time.Duration{rate(), rate()},
		delay:  time.Duration(pick(0.2, 2, 10, 25, 60, 200, 400) * float64(time.Millisecond)),
		jitter: time.Duration(pick(0, 0, 1, 10, 40, 90) * float64(time.Millisecond)),
		loss:   pick(0, 0, 0.01, 0.05, 0.2, 0.5, 0.9), duplicate: pick(0, 0, 0.02, 0.1), fragmented: pick(0, 0, 0, 0.1, 0.4),
		stall:  pick(0, 0, 0.002),
		length: time.Duration(5+rnd.Intn(20)) * time.Second,
	}
	if rnd.Intn(3) == 0 {
		c.start = [2]uint32{uint32(rnd.Intn(65536)), uint32(rnd.Intn(65536))}
		if rnd.Intn(2) == 0 {
			c.start[0] = 65536 - uint32(rnd.Intn(600)) - 1
		}
	}
	if rnd.Intn(3) == 0 {
		c.joinAfter = time.Second + time.Duration(rnd.Intn(2000))*time.Millisecond
	}
	return c
}

// factKey identifies what a fact and a log line must have in common.
type factKey struct {
	kind     machine.EventKind
	sequence uint32
	at       machine.Instant // when the frame that brought it passed the tap
}

// TestTrackerAgainstOracle: whatever the network does, each fact of a near side is
// exactly what its log says, at the frame that brought it. No certain fact of a far
// side is false, or reported before it was true.
func TestTrackerAgainstOracle(t *testing.T) {
	seeds := 200
	if testing.Short() {
		seeds = 60
	}
	for seed := range int64(seeds) {
		rnd := rand.New(rand.NewSource(seed))
		tap := []machine.Vantage{machine.VantageA, machine.VantageB, machine.VantageBetween, machine.VantageBoth}[rnd.Intn(4)]
		c := randomConfig(rnd, tap)
		r := reliable()
		if rnd.Intn(3) == 0 {
			r = article()
			c.fragmented = 0
		}
		if rnd.Intn(5) == 0 {
			r.DeliverDuplicates, r.DeliverStale = true, true
		}
		if rnd.Intn(4) == 0 {
			// Which of two copies an application refused shows only if headers passed between
			// them.
			c.refuse, c.duplicate = 0.05, 0
		}
		if tap == machine.VantageBoth {
			c.delay, c.jitter, c.loss, c.duplicate = 30*time.Microsecond, 0, 0, 0
		}
		w := newWorld(seed, r, c)
		w.run()
		name := fmt.Sprintf("seed %d: %+v %+v", seed, c, *r)
		tr, events, anomalies := w.facts(tap)
		for _, x := range []machine.Side{machine.A, machine.B} {
			if tap.Near(x) {
				if c.refuse > 0 && !tr.Sides[x].application.refuses {
					// No refusal shows: what no header covers counts as accepted.
					continue
				}
				checkNear(t, name, w, x, events)
			} else {
				checkFar(t, name, w, x, events)
			}
		}
		for _, a := range anomalies {
			if a.Rule.Severity == machine.Error {
				t.Errorf("%s: %v: finding %s at frame %d of a correct endpoint", name, a.Side, a.Rule.ID, a.Ref)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// joining reports whether a capture that begins in the middle has only just begun.
// Copies and fragments from before it are unknown.
func (w *world) joining(at machine.Instant) bool {
	c := &w.config
	return c.joinAfter > 0 && at < machine.Instant(c.joinAfter+2*(c.delay+c.jitter)+500*time.Millisecond)
}

// wireOf returns a packet's sequence as on the wire.
func (w *world) wireOf(number int64) uint32 { return uint32(number) & w.rules.Mask() }

func checkNear(t *testing.T, name string, w *world, x machine.Side, events []machine.Event) {
	t.Helper()
	first, last := machine.Instant(0), machine.Instant(0)
	ownFirst, ownLast := machine.Instant(-1), machine.Instant(0)
	seenSent := map[uint32]bool{}
	for _, p := range w.seen {
		if first == 0 {
			first = p.at
		}
		last = p.at
		if p.from == x {
			if ownFirst < 0 {
				ownFirst = p.at
			}
			ownLast = p.at
			seenSent[p.sequence] = true
		}
	}
	want, doubtful := map[factKey]int{}, map[factKey]bool{}
	for _, l := range w.host[x].log {
		if l.kind == machine.EventRejected || machine.Instant(l.frame) < machine.Instant(w.config.joinAfter) {
			continue
		}
		if l.kind == machine.EventAcked && !seenSent[w.wireOf(l.number)] {
			continue
		}
		want[factKey{l.kind, w.wireOf(l.number), machine.Instant(l.frame)}]++
	}
	for _, e := range events {
		if e.Side != x {
			continue
		}
		switch e.Kind {
		case machine.EventReceived, machine.EventAcked, machine.EventDuplicate, machine.EventStale:
		default:
			continue
		}
		k := factKey{e.Kind, e.Sequence, e.At}
		if e.Certainty != machine.Certain {
			doubtful[factKey{kind: e.Kind, sequence: e.Sequence}] = true
		}
		if want[k]--; want[k] < 0 {
			if e.Certainty != machine.Certain && w.joining(e.At) {
				delete(want, k)
				continue
			}
			// If no header covers a packet, it may have been refused, or never read.
			if e.Certainty != machine.Certain && (w.config.refuse > 0 || e.At > ownLast-machine.Instant(w.config.tick[x])) {
				delete(want, k)
				continue
			}
			t.Errorf("%s: near %v: %v %d at %v (%v) is not in its log", name, x, e.Kind, e.Sequence, e.At, e.Certainty)
			return
		}
	}
	for k, n := range want {
		if w.config.refuse > 0 && doubtful[factKey{kind: k.kind, sequence: k.sequence}] {
			continue // reported at another frame, whose packet may have been refused
		}
		if n > 0 && !w.joining(k.at) {
			t.Errorf("%s: near %v: %v %d at %v was not told (own %v..%v)", name, x, k.kind, k.sequence, k.at, ownFirst, ownLast)
			return
		}
	}
	_, _ = last, first
}

func checkFar(t *testing.T, name string, w *world, x machine.Side, events []machine.Event) {
	t.Helper()
	when := map[factKey]machine.Instant{}
	for _, l := range w.host[x].log {
		k := factKey{kind: l.kind, sequence: w.wireOf(l.number)}
		if _, ok := when[k]; !ok {
			when[k] = l.at
		}
	}
	for _, e := range events {
		if e.Side != x || e.Certainty != machine.Certain ||
			(e.Kind != machine.EventReceived && e.Kind != machine.EventAcked) {
			continue
		}
		at, ok := when[factKey{kind: e.Kind, sequence: e.Sequence}]
		if !ok {
			t.Errorf("%s: far %v: %v %d at %v is certain and false", name, x, e.Kind, e.Sequence, e.At)
			return
		}
		if at > e.At {
			t.Errorf("%s: far %v: %v %d is told at %v, before it was so at %v", name, x, e.Kind, e.Sequence, e.At, at)
			return
		}
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"tracker", unsafe.Sizeof(Tracker{}), trackerBytes},
		{"facts", unsafe.Sizeof(machine.Facts{}), factsBytes},
		{"side", unsafe.Sizeof(side{}), sideBytes},
		{"candidate", unsafe.Sizeof(candidate{}), candidateBytes},
	} {
		if c.got > c.want+c.want/4 || c.got < c.want-c.want/4 {
			t.Errorf("%s: %d bytes, counted as %d", c.name, c.got, c.want)
		}
	}
}
