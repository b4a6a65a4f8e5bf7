package analyze

import (
	"math"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// TestNatIdle: a long silence and then one side alone is a binding that expired; anything else
// is not.
func TestNatIdle(t *testing.T) {
	const ms = time.Millisecond
	moved := netip.AddrPortFrom(hostA.Addr(), hostA.Port()+1)
	elsewhere := netip.MustParseAddrPort("10.0.0.77:9")
	// game lets both sides send for ten seconds, each every 50 ms.
	game := func(q *quoter) {
		for i := range 200 {
			q.at = q.at.Add(25 * ms)
			q.datagram(hostA, hostB, 0, 0, mark('.', i))
			q.at = q.at.Add(25 * ms)
			q.datagram(hostB, hostA, 0, 0, mark('.', i))
		}
	}
	alone := func(q *quoter, from, to netip.AddrPort, n int, every time.Duration) {
		for i := range n {
			if i > 0 {
				q.at = q.at.Add(every)
			}
			q.datagram(from, to, 0, 0, mark('.', 200+i))
		}
	}
	wait := func(q *quoter, d time.Duration) { q.at = q.at.Add(d) }
	for _, c := range []struct {
		name string
		play func(q *quoter)
		idle string // the limit, if not the usual one
		want string // side, certainty and text; "" for no finding
	}{
		{"the server goes on alone", func(q *quoter) {
			game(q)
			wait(q, 45*time.Second)
			alone(q, hostB, hostA, 101, 50*ms)
		}, "", "a possible: after 45 s without a packet of either side, the peer sent 101 packets over 5.0 s, " +
			"and nothing of this side came"},
		{"the client goes on alone", func(q *quoter) {
			game(q)
			wait(q, 30*time.Second)
			alone(q, hostA, hostB, 21, 100*ms)
		}, "", "b possible: after 30 s without a packet of either side, the peer sent 21 packets over 2.0 s, " +
			"and nothing of this side came"},
		{"the client comes back from another port", func(q *quoter) {
			game(q)
			wait(q, 45*time.Second)
			alone(q, hostB, hostA, 101, 50*ms)
			alone(q, moved, hostB, 20, 50*ms)
		}, "", "a likely: after 45 s without a packet of either side, the peer sent 101 packets over 5.0 s, " +
			"and nothing of this side came"},
		{"it came from another port before", func(q *quoter) {
			alone(q, moved, hostB, 20, 50*ms)
			game(q)
			wait(q, 45*time.Second)
			alone(q, hostB, hostA, 101, 50*ms)
		}, "", "a possible: after 45 s without a packet of either side, the peer sent 101 packets over 5.0 s, " +
			"and nothing of this side came"},
		{"somebody else comes", func(q *quoter) {
			game(q)
			wait(q, 45*time.Second)
			alone(q, hostB, hostA, 101, 50*ms)
			alone(q, elsewhere, hostB, 20, 50*ms)
		}, "", "a possible: after 45 s without a packet of either side, the peer sent 101 packets over 5.0 s, " +
			"and nothing of this side came"},
		{"too short a silence", func(q *quoter) {
			game(q)
			wait(q, 29*time.Second)
			alone(q, hostB, hostA, 101, 50*ms)
		}, "", ""},
		{"another limit", func(q *quoter) {
			game(q)
			wait(q, 29*time.Second)
			alone(q, hostB, hostA, 101, 50*ms)
		}, "20s", "a possible: after 29 s without a packet of either side, the peer sent 101 packets over 5.0 s, " +
			"and nothing of this side came"},
		{"no limit", func(q *quoter) {
			game(q)
			wait(q, 29*time.Hour)
			alone(q, hostB, hostA, 101, 50*ms)
		}, "off", ""},
		{"an answer", func(q *quoter) {
			game(q)
			wait(q, 45*time.Second)
			alone(q, hostB, hostA, 101, 50*ms)
			alone(q, hostA, hostB, 1, ms)
		}, "", ""},
		{"an answer, then the same in earnest", func(q *quoter) {
			game(q)
			wait(q, 45*time.Second)
			game(q)
			wait(q, 31*time.Second)
			alone(q, hostA, hostB, 101, 50*ms)
		}, "", "b possible: after 31 s without a packet of either side, the peer sent 101 packets over 5.0 s, " +
			"and nothing of this side came"},
		{"one side was gone before the silence", func(q *quoter) {
			game(q)
			alone(q, hostB, hostA, 101, 60*ms)
			wait(q, 45*time.Second)
			alone(q, hostB, hostA, 101, 50*ms)
		}, "", ""},
		{"one packet only", func(q *quoter) {
			game(q)
			wait(q, 45*time.Second)
			alone(q, hostB, hostA, 1, 0)
		}, "", ""},
		{"for a second only", func(q *quoter) {
			game(q)
			wait(q, 45*time.Second)
			alone(q, hostB, hostA, 21, 50*ms)
		}, "", ""},
		{"one side never spoke", func(q *quoter) {
			alone(q, hostA, hostB, 200, 50*ms)
			wait(q, 45*time.Second)
			alone(q, hostA, hostB, 200, 50*ms)
		}, "", ""},
		{"the clock steps back as far as it can", func(q *quoter) {
			game(q)
			q.at = math.MinInt64
			alone(q, hostB, hostA, 101, 50*ms)
		}, "", ""},
		{"the clock steps forth as far as it can", func(q *quoter) {
			game(q)
			q.at = math.MaxInt64
			alone(q, hostB, hostA, 101, 50*ms)
		}, "", ""}, // all packets have one time
	} {
		limits := DefaultThresholds()
		if c.idle != "" {
			if err := limits.Set("idle", c.idle); err != nil {
				t.Fatal(err)
			}
		}
		s := NewSession(Options{Registry: dissect.NewRegistry(testProtocol), Thresholds: &limits})
		q := quoter{session: s}
		c.play(&q)
		s.Finish()
		got := ""
		for _, f := range s.Flows() {
			for _, x := range f.Findings() {
				if x.Rule != natIdle {
					continue
				}
				got += x.Side.String() + " " + x.Certainty.String() + ": " + x.Message()
				if named := x.Abouts[0] != 0; named != (x.Certainty == machine.Likely) || x.Count != 1 {
					t.Errorf("%s: %d times, about %v", c.name, x.Count, x.Abouts)
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, expected %q", c.name, got, c.want)
		}
	}
}

// TestCallersAreBounded: the pairs that were busy last are remembered, and no more than the bound.
func TestCallersAreBounded(t *testing.T) {
	var c callers
	f := &Flow{Transport: capture.UDP}
	for i := range 3 * callersMost {
		f.origin, f.answer, f.First = endpointKey{lo: uint64(i), port: 7}, endpointKey{lo: 1, port: 9}, machine.Instant(i)
		c.begun(f)
		if n := len(c.newer) + len(c.older); n > callersMost {
			t.Fatalf("%d pairs after %d", n, i)
		}
		if i%1000 == 0 { // one that is busy stays
			f.origin = endpointKey{lo: math.MaxUint64, port: uint16(i)}
			c.begun(f)
		}
	}
	for _, i := range []int{3*callersMost - 1, 3*callersMost - callersMost/4, math.MaxInt} {
		k := callerOf(endpointKey{lo: uint64(i)}, endpointKey{lo: 1, port: 9})
		if i == math.MaxInt {
			k = callerOf(endpointKey{lo: math.MaxUint64}, endpointKey{lo: 1, port: 9})
		}
		if c.find(k) == nil {
			t.Errorf("pair %d was forgotten", i)
		}
	}
	if c.find(callerOf(endpointKey{lo: 5}, endpointKey{lo: 1, port: 9})) != nil {
		t.Error("an old pair is remembered")
	}
}

// TestCallersOfShards checks when a run is refused whose shards know very many pairs. Only a question
// about a pair makes their number matter. A process cannot count the other's pairs at the end.
func TestCallersOfShards(t *testing.T) {
	const half = callersMost / 2
	sessionOf := func(pairs int, partner bool) *Session {
		s := &Session{shard: &shard{of: 2, strict: true, partner: partner, refused: &atomic.Bool{}}}
		for i := range pairs {
			f := &Flow{Transport: capture.UDP, Session: 1, origin: endpointKey{lo: uint64(i)}, answer: endpointKey{port: 1}}
			s.flows = append(s.flows, f)
			s.begun++
			s.noteCaller(f)
		}
		return s
	}
	for _, x := range []struct {
		pairs    [2]int
		asks     bool
		partner  bool
		refuses  bool // a shard by itself
		together bool // more than half of what one session remembers
		sure     bool // the run may not be refused: an earlier one told that it need not
	}{
		{pairs: [2]int{half/2 + 1, half}},
		{pairs: [2]int{half/2 + 1, 1}, asks: true, refuses: true, together: false},
		{pairs: [2]int{half / 2, half / 2}, asks: true},
		{pairs: [2]int{1, half}, asks: true, together: true},
		{pairs: [2]int{half / 2, 1}, partner: true},
		{pairs: [2]int{half/2 + 1, 1}, partner: true, refuses: true},
		{pairs: [2]int{half/2 + 1, half}, asks: true, refuses: true, sure: true},
	} {
		shards := []*Session{sessionOf(x.pairs[0], x.partner), sessionOf(x.pairs[1], x.partner)}
		if x.asks {
			shards[0].knownPairs()
		}
		if got := shards[0].shard.refused.Load(); got != x.refuses {
			t.Errorf("%+v: a shard refuses: %v", x, got)
		}
		if x.partner {
			continue
		}
		run := &team{
			options: []Options{{Registry: dissect.NewRegistry()}}, relays: make([]relays, 1),
			lanes: []*lane{{sessions: shards[:1]}, {sessions: shards[1:]}}, intake: &intake{},
		}
		for _, s := range shards {
			s.shard.refused, s.shard.strict = &run.refused, !x.sure
		}
		if run.join(&chunk{}, 0, false); run.refused.Load() != x.together {
			t.Errorf("%+v: refused at the end: %v", x, !x.together)
		}
	}
}
