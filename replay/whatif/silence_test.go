package whatif

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// TestSilences converts a trace to the time of the run, and back.
func TestSilences(t *testing.T) {
	const least = 10 * time.Second
	rng := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		tr := &machine.Trace{}
		at := machine.Instant(1)
		var all []machine.Instant
		long, silent := 0, time.Duration(0)
		for range 50 {
			gap := time.Duration(rng.Int64N(int64(least)))
			if rng.IntN(4) == 0 {
				gap += least + time.Duration(rng.Int64N(int64(1000*time.Hour)))
			}
			if gap > least && len(all) > 0 {
				long, silent = long+1, silent+gap-least
			}
			at = at.Add(gap)
			x := &tr.Sides[rng.IntN(2)]
			x.Sent = append(x.Sent, machine.Transit{Left: at, Arrives: at + 1})
			all = append(all, at)
		}
		tr.Start, tr.End = all[0], all[len(all)-1]
		cuts := silencesOf(tr, least)
		if len(cuts.list) != long || cuts.removed() != silent {
			t.Fatalf("%d silences of %v, expected %d of %v", len(cuts.list), cuts.removed(), long, silent)
		}
		for i, at := range all {
			run := cuts.toRun(at)
			if back := cuts.toCapture(run); back != at {
				t.Fatalf("%d is %d in the run, which is %d", at, run, back)
			}
			if i == 0 {
				continue
			}
			if want, got := min(at.Sub(all[i-1]), least), run.Sub(cuts.toRun(all[i-1])); got != want {
				t.Fatalf("%v passed in the run, expected %v", got, want)
			}
			if got := cuts.between(cuts.toRun(all[0]), run); got != at.Sub(all[0]) {
				t.Fatalf("%v passed in all, expected %v", got, at.Sub(all[0]))
			}
		}
		cuts.shift(tr)
		if tr.End.Sub(tr.Start) != all[len(all)-1].Sub(all[0])-silent {
			t.Fatalf("the trace takes %v", tr.End.Sub(tr.Start))
		}
	}
}

// TestFate compares the links over used datagrams with a linear search.
func TestFate(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		x := &machine.TraceSide{Tick: time.Duration(rng.IntN(20)) * time.Millisecond}
		at := machine.Instant(0)
		for i := range rng.IntN(60) {
			at = at.Add(time.Duration(rng.IntN(3)) * time.Duration(rng.IntN(4)) * time.Millisecond)
			x.Sent = append(x.Sent, machine.Transit{Left: at, Arrives: at.Add(time.Duration(i)), Fate: machine.Yes})
		}
		n := newNetwork(x, 0)
		used := make([]bool, len(n.sent))
		for range 80 {
			now := machine.Instant(rng.Int64N(int64(at) + int64(5*time.Millisecond)))
			got, want := n.fate(now), nearest(&n, used, now)
			if want < 0 != got.far || !got.far && got.travel != time.Duration(want) {
				t.Fatalf("at %d: %+v, expected that of %d", now, got, want)
			}
		}
	}
}

// nearest checks every datagram that can matter.
func nearest(n *network, used []bool, now machine.Instant) int {
	begin := 0
	for begin < len(n.sent) && n.sent[begin].Left < now {
		begin++
	}
	best, away := -1, time.Duration(0)
	consider := func(k int) bool {
		off := max(n.sent[k].Left.Sub(now), now.Sub(n.sent[k].Left))
		if best < 0 || off < away || used[best] && !used[k] && off <= away+n.alike {
			best, away = k, off
		}
		return off <= away+n.alike && used[best]
	}
	for k := begin; k < len(n.sent) && consider(k); k++ {
	}
	for k := begin - 1; k >= 0 && consider(k); k-- {
	}
	if best < 0 || away > farOff {
		return -1
	}
	used[best] = true
	return best
}
