package recorder

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"
)

var start = time.Unix(1_700_000_000, 0)

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

func newRecorder(t *testing.T, options Options) *Recorder {
	t.Helper()
	r, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOneRuleOnManyFlowsMakesOneRecording(t *testing.T) {
	r := newRecorder(t, Options{Keep: time.Second, After: time.Second, Bytes: 1 << 20})
	for flow := range 200 {
		if r.Trigger(Trigger{At: at(flow), Rule: "stall", Flow: flow}) != nil {
			t.Fatal("a trigger ended the recording that it should join")
		}
	}
	done := r.Tick(at(5000))
	if done == nil || len(done.Flows) != 200 || len(done.Rules) != 1 || r.Counts().Recordings != 1 {
		t.Fatalf("want one recording of 200 flows and one rule, found %+v", done)
	}
}

// Random traffic and triggers against a naive model: a frame is recorded once if and only if a window holds it.
func TestWindowsHoldExactlyTheirFrames(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := newRecorder(t, Options{Keep: 100 * time.Millisecond, After: 50 * time.Millisecond, Bytes: 1 << 20, All: true})
		var windows []*Recording
		take := func(done *Recording) {
			if done != nil {
				windows = append(windows, done)
			}
		}
		sent := make([]time.Time, 1000)
		now := 0
		for i := range sent {
			now += random.IntN(5)
			sent[i] = at(now)
			take(r.Push(sent[i], i%7, binary.BigEndian.AppendUint32(nil, uint32(i))))
			if random.IntN(60) == 0 {
				take(r.Trigger(Trigger{At: at(now), Rule: "loss", Flow: i % 7}))
			}
		}
		take(r.Close())
		found := map[int]int{}
		for _, w := range windows {
			for _, f := range w.Frames {
				found[int(binary.BigEndian.Uint32(f.Data))]++
			}
		}
		for i, when := range sent {
			want := 0
			for _, w := range windows {
				if !when.Before(w.From) && !when.After(w.To) {
					want = 1
				}
			}
			if found[i] != want {
				t.Fatalf("seed %d: frame %d: want %d times, found %d", seed, i, want, found[i])
			}
		}
	}
}

func TestMemoryIsBoundedAndEvictionIsCounted(t *testing.T) {
	r := newRecorder(t, Options{Keep: time.Hour, After: time.Second, Bytes: 8192, All: true})
	data := make([]byte, 1500)
	push := func(ms int) { r.Push(at(ms), 1, data[:ms%1501]) }
	for i := range 20000 {
		push(i)
		if r.dataUsed > len(r.data) || r.slotUsed > len(r.slots) || len(r.data)+len(r.slots)*slotBytes > 8192 {
			t.Fatal("the ring is larger than its limit")
		}
	}
	r.Trigger(Trigger{At: at(20000), Rule: "loss"})
	if done := r.Close(); done.Evicted == 0 {
		t.Fatal("frames of the window were evicted, the recording does not say so")
	}
	if n := testing.AllocsPerRun(100, func() { push(20000) }); n != 0 {
		t.Fatalf("want no allocation a frame, found %v", n)
	}
}

func TestLimitsRefuse(t *testing.T) {
	r := newRecorder(t, Options{After: time.Second, Bytes: 8192, Files: 2, Every: 5 * time.Second})
	for i := range 10 {
		r.Trigger(Trigger{At: at(i * 3000), Rule: "loss"})
	}
	if c := r.Counts(); c.Recordings != 2 || c.Refused != 8 {
		t.Fatalf("want 2 recordings and 8 refused triggers, found %+v", c)
	}
}

func TestRecordingHoldsItsFlowsAndCountsWhatIsMissing(t *testing.T) {
	r := newRecorder(t, Options{
		Keep: time.Second, After: time.Second, Longest: 2 * time.Second, Bytes: 8192, Written: 3000,
	})
	r.Trigger(Trigger{At: at(0), Rule: "loss", Flow: 3})
	for i := range 10 {
		r.Push(at(i), i%2+3, make([]byte, 1000))
	}
	r.Trigger(Trigger{At: at(900), Rule: "stall", Flow: 3})
	r.Trigger(Trigger{At: at(1800), Rule: "stall", Flow: 3})
	done := r.Tick(at(2001))
	if done == nil || !done.To.Equal(at(2000)) {
		t.Fatalf("want an end at the longest time, found %+v", done)
	}
	// The ring holds 6 frames of 10: 3 of flow 3, of which 3,000 bytes may be written.
	if done.Evicted != 4 || len(done.Frames) != 3 || done.Limited != 0 {
		t.Fatalf("want 4 evicted, 3 frames, 0 limited, found %d, %d, %d", done.Evicted, len(done.Frames), done.Limited)
	}
	for _, f := range done.Frames {
		if f.Flow != 3 {
			t.Fatalf("a frame of flow %d is in the recording of flow 3", f.Flow)
		}
	}
}
