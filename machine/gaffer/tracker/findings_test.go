package tracker

import (
	"slices"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
)

// tape is a capture written by hand, for cases that no real capture shows.
type tape struct {
	*testing.T
	tracker *Tracker
	out     machine.Effects
	at      machine.Instant
	frame   machine.Ref
}

func newTape(t *testing.T, r *gaffer.Rules, vantage machine.Vantage) *tape {
	return &tape{T: t, tracker: NewByRules(nil, r, machine.Facts{Vantage: vantage})}
}

// pass lets a packet of a side pass the tap, 10 ms after the previous one.
func (p *tape) pass(from machine.Side, sequence, ack uint32, ackBits uint64) {
	p.observe(sighting{from: from, sequence: sequence, ack: ack, ackBits: ackBits, header: true})
}

func (p *tape) fragment(from machine.Side, sequence uint32, id, count uint16, ack uint32, ackBits uint64) {
	p.observe(sighting{from: from, sequence: sequence, ack: ack, ackBits: ackBits, header: id == 0, id: id, count: count})
}

func (p *tape) observe(s sighting) {
	p.at = p.at.Add(10 * time.Millisecond)
	p.frame++
	s.at, s.ref, s.length = p.at, p.frame, 100
	p.tracker.take(&s, &p.out)
}

// events returns the sequences of a kind and side, in order.
func (p *tape) events(kind machine.EventKind, x machine.Side) []uint32 {
	var of []uint32
	for _, e := range p.out.Events {
		if e.Kind == kind && e.Side == x {
			of = append(of, e.Sequence)
		}
	}
	return of
}

// rules returns the rules found, each once, in order.
func (p *tape) rules() []string {
	var ids []string
	for _, a := range p.out.Anomalies {
		if !slices.Contains(ids, a.Rule.ID) {
			ids = append(ids, a.Rule.ID)
		}
	}
	return ids
}

const nothing = 0xffff

// ping makes both sides send n packets in turn. The other side's next packet names
// each.
func (p *tape) ping(from, n uint32) {
	word := func(q uint32) uint64 { return uint64(1)<<min(q+1, 32) - 1 }
	for q := from; q < from+n; q++ {
		ack, ackBits := uint32(nothing), uint64(0)
		if q > 0 {
			ack, ackBits = q-1, word(q-1)
		}
		p.pass(machine.A, q, ack, ackBits)
		p.pass(machine.B, q, q, word(q))
	}
}

func TestFindings(t *testing.T) {
	for _, c := range []struct {
		name    string
		vantage machine.Vantage
		play    func(p *tape)
		want    []string
	}{
		{"a correct connection", machine.VantageA, func(p *tape) { p.ping(0, 400) }, nil},
		{"named before it was sent", machine.VantageA, func(p *tape) {
			p.ping(0, 10)
			p.pass(machine.B, 10, 11, 0xfff) // a has sent 0 to 9
			p.pass(machine.A, 10, 9, 0x3ff)
			p.pass(machine.A, 11, 9, 0x3ff)
		}, []string{"false-ack"}},
		{"ack goes back, far", machine.VantageA, func(p *tape) {
			p.ping(0, 10)
			p.pass(machine.A, 10, 9, 0x3ff)
			p.pass(machine.B, 10, 7, 0xff)
		}, []string{"ack-going-back"}},
		{"ack goes back, near", machine.VantageB, func(p *tape) {
			p.ping(0, 10)
			p.pass(machine.A, 10, 9, 0x3ff)
			p.pass(machine.B, 10, 7, 0xff)
		}, []string{"ack-going-back"}},
		{"an overtaken header is an older snapshot", machine.VantageA, func(p *tape) {
			p.ping(0, 10)
			p.pass(machine.A, 10, 9, 0x3ff)
			p.pass(machine.A, 11, 9, 0x3ff)
			p.pass(machine.B, 11, 11, 0xfff)
			p.pass(machine.B, 10, 10, 0x7ff)
		}, []string{"out-of-order"}},
		{"a bit is taken back, far", machine.VantageA, func(p *tape) {
			p.ping(0, 10)
			p.pass(machine.A, 10, 9, 0x3ff)
			p.pass(machine.B, 10, 10, 0x7ff&^4)
		}, []string{"ack-bit-withdrawn"}},
		{"a bit is taken back, near", machine.VantageB, func(p *tape) {
			p.ping(0, 10)
			p.pass(machine.A, 10, 9, 0x3ff)
			p.pass(machine.B, 10, 10, 0x7ff&^4)
		}, []string{"ack-bit-withdrawn"}},
		{"two packets of one number", machine.VantageA, func(p *tape) {
			p.ping(0, 10)
			p.pass(machine.B, 9, 7, 0xff)
		}, []string{"sequence-reuse"}},
		{"a copy", machine.VantageA, func(p *tape) {
			p.ping(0, 10)
			p.pass(machine.B, 9, 9, 0x3ff)
		}, []string{"duplicate"}},
		{"received and never acked", machine.VantageB, func(p *tape) {
			p.ping(0, 10)
			for q := uint32(10); q < 50; q++ {
				p.pass(machine.A, q, 9, 0x3ff)
			}
			p.pass(machine.B, 10, 49, 0xffffffff)
		}, []string{"ack-window-slide", "ack-window-edge"}},
		{"half the range", machine.VantageB, func(p *tape) {
			p.ping(0, 10)
			p.pass(machine.A, 32767, 9, 0x3ff)
			p.pass(machine.B, 10, 9, 0x3ff)
			p.pass(machine.A, 32768, 9, 0x3ff)
			p.pass(machine.B, 11, 9, 0x3ff)
		}, []string{"loss-burst", "half-range-starvation"}},
		{"a halt of the process", machine.VantageA, func(p *tape) {
			p.ping(0, 20)
			p.at = p.at.Add(700 * time.Millisecond)
			p.ping(20, 10)
		}, []string{"rtt-spike", "stall"}},
		{"silence of one side", machine.VantageA, func(p *tape) {
			p.ping(0, 20)
			for q := uint32(20); q < 140; q++ {
				p.pass(machine.A, q, 19, 0xfffff)
			}
			p.pass(machine.B, 80, 139, 0xffffffff)
		}, []string{"one-way-silence", "rtt-spike", "loss-burst", "ack-window-edge"}},
		{"a slow ack", machine.VantageA, func(p *tape) {
			p.ping(0, 40)
			p.pass(machine.A, 40, 39, 0xffffffff)
			p.pass(machine.B, 40, 39, 0xffffffff)
			for q := uint32(41); q < 52; q++ {
				p.pass(machine.A, q, q-1, 0xffffffff)
				p.pass(machine.B, q, q, 0xffffffff&^(1<<(q-40)))
			}
			p.pass(machine.A, 52, 51, 0xffffffff)
			p.pass(machine.B, 52, 52, 0xffffffff)
			p.pass(machine.A, 53, 52, 0xffffffff)
		}, []string{"rtt-spike"}},
		{"the application refuses", machine.VantageB, func(p *tape) {
			p.ping(0, 10)
			p.pass(machine.A, 10, 9, 0x3ff)
			p.pass(machine.A, 11, 9, 0x3ff)
			p.pass(machine.B, 10, 11, 0xfff&^2)
		}, []string{"refused"}},
		{"the capture lacks a packet", machine.VantageA, func(p *tape) {
			p.ping(0, 10)
			p.pass(machine.A, 11, 9, 0x3ff)
			p.pass(machine.B, 10, 11, 0xfff)
		}, []string{"capture-loss"}},
		{"numbers jump", machine.VantageA, func(p *tape) {
			p.ping(0, 40)
			p.pass(machine.B, 5000, 39, 0xffffffff)
		}, []string{"sequence-jump", "loss-burst"}},
		{"fragments are lost", machine.VantageB, func(p *tape) {
			p.ping(0, 4)
			for q := uint32(4); q < 44; q++ {
				p.fragment(machine.A, q, 0, 3, 3, 0xf)
				p.fragment(machine.A, q, 1, 3, 0, 0)
				if q%2 == 0 {
					p.fragment(machine.A, q, 2, 3, 0, 0)
				}
				// Every other time the newest is incomplete: bit 0 is clear then.
				named := uint64(0)
				for n := uint32(0); n < 32 && n <= q; n++ {
					if q-n < 4 || (q-n)%2 == 0 {
						named |= 1 << n
					}
				}
				p.pass(machine.B, q, q, named)
			}
		}, []string{"fragment-loss-amplification"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newTape(t, reliable(), c.vantage)
			c.play(p)
			p.tracker.Finish(&p.out)
			if got := p.rules(); !slices.Equal(got, c.want) {
				t.Errorf("found %v, expected %v", got, c.want)
				for _, a := range p.out.Anomalies {
					t.Logf("frame %d: %s %v %v", a.Ref, a.Rule.ID, a.Side, a.Figures)
				}
			}
		})
	}
}

// TestOvertakenBehindTheTap: a packet looks refused, since a newer one was read. It was
// only overtaken between the tap and the socket.
func TestOvertakenBehindTheTap(t *testing.T) {
	p := newTape(t, reliable(), machine.VantageB)
	p.ping(0, 10)
	p.pass(machine.A, 10, 9, 0x3ff)
	p.pass(machine.A, 11, 9, 0x3ff)
	p.pass(machine.B, 10, 11, 0xfff&^2)
	p.pass(machine.B, 11, 11, 0xfff)
	p.tracker.Finish(&p.out)
	if got := p.events(machine.EventReceived, machine.B); !slices.Equal(got,
		[]uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 10}) {
		t.Errorf("received %v", got)
	}
	if m := p.tracker.Summary(machine.B); m.Received != 12 {
		t.Errorf("received %d, expected 12", m.Received)
	}
}

// TestRulesAreWhole: every rule is documented, and can format any figures.
func TestRulesAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range gaffer.FindingRules {
		if r.ID == "" || r.Summary == "" || len(r.Explain) < 80 || r.Say == nil || seen[r.ID] {
			t.Errorf("rule %q lacks something, or stands twice", r.ID)
			continue
		}
		seen[r.ID] = true
		if r.Say(3, [3]float64{1, 2, 3}) == "" {
			t.Errorf("rule %s has nothing to say", r.ID)
		}
	}
}

// TestAcksAtTheWindowEdge: acks of a stale packet are not read, those at the very edge
// of the window are. With newest N, N-255 is the last that counts.
func TestAcksAtTheWindowEdge(t *testing.T) {
	for _, c := range []struct {
		behind uint32
		kind   machine.EventKind
		acked  bool
	}{
		{254, machine.EventReceived, true},
		{255, machine.EventReceived, true},
		{256, machine.EventStale, false},
		{300, machine.EventStale, false},
	} {
		p := newTape(t, reliable(), machine.VantageA)
		late := 400 - c.behind
		// b's packet late is held back. It alone acks a's packet 7.
		p.pass(machine.A, 0, nothing, 0)
		for q := uint32(1); q < 8; q++ {
			p.pass(machine.A, q, nothing, 0)
		}
		heard := func(q uint32) uint64 { // the ack bits of a's header for b's packets up to q
			named := uint64(0)
			for n := uint32(0); n < 32 && n <= q; n++ {
				if q-n != late {
					named |= 1 << n
				}
			}
			return named
		}
		for q := range uint32(401) {
			if q == late {
				continue
			}
			p.pass(machine.B, q, 6, 0x7f)
			if q%20 == 0 {
				p.pass(machine.A, 8+q/20, q, heard(q))
			}
		}
		p.pass(machine.B, late, 7, 0xff)
		p.pass(machine.B, 401, 6, 0x7f)
		p.pass(machine.A, 100, 401, heard(401))
		p.tracker.Finish(&p.out)
		if got := p.events(c.kind, machine.A); !slices.Contains(got, late) {
			t.Errorf("%d behind: not told as %v", c.behind, c.kind)
		}
		if got := slices.Contains(p.events(machine.EventAcked, machine.A), 7); got != c.acked {
			t.Errorf("%d behind: packet 7 acked %v, expected %v", c.behind, got, c.acked)
		}
	}
}

// TestTrackerAtHalfRange: at exactly half the range the larger number is newer. Seen
// from 0, 32768 is newer. Seen from the window's far edge it may be stale.
func TestTrackerAtHalfRange(t *testing.T) {
	for _, c := range []struct {
		newest, then uint32
		kind         machine.EventKind
	}{
		{256, 32768, machine.EventReceived}, // from the edge, 1, it is 32767 ahead
		{255, 32768, machine.EventReceived}, // 32768 ahead of the edge, 0, and larger
		{254, 32768, machine.EventStale},    // the edge is 65535: 32769 ahead of it
	} {
		p := newTape(t, reliable(), machine.VantageB)
		p.pass(machine.A, c.newest, nothing, 0)
		p.pass(machine.B, 0, c.newest, 1)
		p.pass(machine.A, c.then, nothing, 0)
		if c.kind == machine.EventReceived {
			p.pass(machine.B, 1, c.then, 1)
		} else {
			p.pass(machine.A, c.newest+1, nothing, 0)
			p.pass(machine.B, 1, c.newest+1, 3)
		}
		if got := p.events(c.kind, machine.B); !slices.Contains(got, c.then) {
			t.Errorf("newest %d, then %d: expected %v, events %v", c.newest, c.then, c.kind, p.out.Events)
		}
	}
}

// TestAcksOfFragments: the acks of a fragmented packet count only once it is whole.
func TestAcksOfFragments(t *testing.T) {
	p := newTape(t, reliable(), machine.VantageA)
	p.pass(machine.A, 0, nothing, 0)
	p.fragment(machine.B, 0, 0, 2, 0, 1)
	p.pass(machine.A, 1, 0, 0) // b's packet 0 has moved the window, and is not received
	if got := p.events(machine.EventAcked, machine.A); len(got) != 0 {
		t.Fatalf("acked %v by a packet that is not whole", got)
	}
	p.fragment(machine.B, 0, 1, 2, 0, 0)
	whole := p.frame
	p.pass(machine.A, 2, 0, 1)
	for _, kind := range []machine.EventKind{machine.EventReceived, machine.EventAcked} {
		if got := p.events(kind, machine.A); !slices.Equal(got, []uint32{0}) {
			t.Errorf("%v: %v, expected 0", kind, got)
		}
	}
	for _, e := range p.out.Events {
		if e.Side == machine.A && (e.Kind == machine.EventReceived || e.Kind == machine.EventAcked) && e.Ref != whole {
			t.Errorf("%v is told at frame %d, expected that of the last fragment, %d", e.Kind, e.Ref, whole)
		}
	}
}

// TestStaleEntries: a receiver that never clears old entries acks packets that never
// came, once its numbers have wrapped. A tap beside it reports only true lies.
func TestStaleEntries(t *testing.T) {
	found := 0
	for seed := range int64(40) {
		naive := &gaffer.Rules{SequenceBits: 8, AckBits: 32, Sent: 64, Received: 64, NoStaleClear: true}
		w := newWorld(seed, naive, worldConfig{
			tap: machine.VantageA, tick: [2]time.Duration{time.Second / 50, time.Second / 50}, delay: 20 * time.Millisecond,
			loss: 0.93, length: 30 * time.Second, joinAfter: 2 * time.Second,
		})
		w.run()
		honest := *naive
		honest.NoStaleClear = false
		w.rules = &honest
		_, events, anomalies := w.facts(machine.VantageA)
		lies := w.lies(machine.A)
		for _, a := range anomalies {
			if a.Rule != gaffer.StaleEntry {
				continue
			}
			q := uint32(a.Figures[1])
			if a.Side != machine.A || !slices.Contains(lies[a.Ref], q) {
				t.Fatalf("seed %d: frame %d of %v: packet %d is no lie", seed, a.Ref, a.Side, q)
			}
			found++
		}
		for _, e := range events {
			if e.Certainty == machine.Certain && e.Kind == machine.EventAcked {
				t.Fatalf("seed %d: an ack is certain in a flow of liars", seed)
			}
		}
	}
	if found < 40 {
		t.Errorf("%d lies found, expected hundreds", found)
	}
}

// lies returns, by frame, the packets that a side's headers name and that have not come
// since its numbers last wrapped.
func (w *world) lies(x machine.Side) map[machine.Ref][]uint32 {
	lies := map[machine.Ref][]uint32{}
	for _, p := range w.seen {
		if p.from != x {
			continue
		}
		c := w.rules.Claims(p.ack, p.ackBits)
		newest := int64(-1) // ack, unwrapped
		came := map[int64]bool{}
		for _, l := range w.host[x].log {
			if l.kind == machine.EventReceived && l.at <= p.at {
				came[l.number] = true
				newest = max(newest, l.number)
			}
		}
		for n := range int64(32) {
			if c.Named>>n&1 != 0 && !came[newest-n] {
				lies[p.ref] = append(lies[p.ref], w.wireOf(newest-n))
			}
		}
	}
	return lies
}

// TestLostInJump: a header that moves the window by 20 packets leaves one out that no header named. It
// is lost, however many acks there were before.
func TestLostInJump(t *testing.T) {
	for _, first := range []uint32{100, 4200, 9000} {
		p := newTape(t, reliable(), machine.VantageA)
		p.ping(0, first)
		rest := uint64(1)<<32 - 1
		for q := first; q <= first+12; q++ {
			p.pass(machine.A, q, q-1, rest)
			if behind := q - first; behind > 0 {
				p.pass(machine.B, q, q, rest&^(1<<behind)) // all but the first
			}
		}
		for q := first + 13; q <= first+32; q++ {
			p.pass(machine.A, q, first+12, rest)
		}
		p.pass(machine.B, first+13, first+32, rest)
		p.pass(machine.A, first+33, first+13, rest)
		if lost := p.events(machine.EventLost, machine.A); !slices.Equal(lost, []uint32{first}) {
			t.Errorf("from %d on, %v are lost, expected the first", first, lost)
		}
	}
}

// TestGapForgetsNoOtherLoss: a side may leave out the numbers behind a packet of fragments, so those do
// not count as lost. If the capture lacks them, other losses still count.
func TestGapForgetsNoOtherLoss(t *testing.T) {
	p := newTape(t, reliable(), machine.VantageA)
	all := uint64(1)<<32 - 1
	p.ping(0, 40)
	p.pass(machine.B, 90, 39, all) // 40 to 89 are lost
	p.pass(machine.A, 40, 90, 1)
	p.fragment(machine.B, 91, 0, 2, 40, all)
	p.fragment(machine.B, 91, 1, 2, 0, 0)
	p.pass(machine.B, 192, 40, all) // the capture lacks 92 to 191
	p.pass(machine.A, 41, 192, all)
	p.pass(machine.A, 42, 192, all)
	p.tracker.Finish(&p.out)
	// Of the packets in the gap, the header names 31. Each of these takes back one loss.
	if lost := p.tracker.Summary(machine.B).Path.Lost; lost < 50-31 {
		t.Errorf("%d packets are lost on the path, expected 19 at least", lost)
	}
	if rules := p.rules(); !slices.Contains(rules, "loss-burst") || !slices.Contains(rules, "capture-loss") {
		t.Errorf("found %v, expected the burst and the gap", rules)
	}
}
