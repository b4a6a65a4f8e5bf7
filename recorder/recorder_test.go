package recorder

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
)

const (
	millisecond = machine.Instant(time.Millisecond)
	start       = machine.Instant(1_700_000_000_000_000_000)
)

func at(ms int) machine.Instant { return start + machine.Instant(ms)*millisecond }

func newRecorder(t *testing.T, o Options) (*Recorder, *[]*Recording) {
	t.Helper()
	var list []*Recording
	o.Done = func(x *Recording) { list = append(list, x) }
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r, &list
}

func (r *Recorder) push(ms int, flow uint64, data []byte) {
	r.Push(&Frame{At: at(ms), Flow: flow, Length: len(data), Data: data})
}

func (r *Recorder) fire(ms int, rule string, flow uint64) {
	r.Trigger(Trigger{At: at(ms), Rule: rule, Flow: flow}, at(ms))
}

func TestOneRuleOnManyFlowsMakesOneRecording(t *testing.T) {
	r, list := newRecorder(t, Options{Keep: time.Second, After: time.Second, Bytes: 1 << 20})
	for flow := range 200 {
		r.fire(flow, "stall", uint64(flow+1))
	}
	r.Tick(at(5000))
	if len(*list) != 1 || len((*list)[0].Flows) != 200 || r.Counts().Recordings != 1 {
		t.Fatalf("want one recording of 200 flows, found %d", len(*list))
	}
}

// Another rule makes a recording of its own, and both have the frames of the time that they share.
func TestAnotherRuleMakesItsOwnRecording(t *testing.T) {
	r, list := newRecorder(t, Options{Keep: time.Second, After: time.Second, Bytes: 1 << 20})
	for ms := range 3000 {
		r.push(ms, uint64(ms%2+1), []byte{byte(ms)})
		if ms == 1000 {
			r.fire(ms, "stall", 1)
		}
		if ms == 1500 {
			r.fire(ms, "loss", 1)
		}
	}
	r.Close()
	if len(*list) != 2 {
		t.Fatalf("want two recordings, found %d", len(*list))
	}
	for i, want := range []struct {
		rule     string
		from, to int
	}{{"stall", 0, 2000}, {"loss", 500, 2500}} {
		x := (*list)[i]
		// Flow 1 has the even milliseconds.
		if x.First.Rule != want.rule || len(x.Flows) != 1 || len(x.Frames) != 1001 ||
			x.Frames[0].At != at(want.from) || x.Frames[1000].At != at(want.to) {
			t.Errorf("want the 1001 frames of flow 1 from %d to %d ms, found %d", want.from, want.to, len(x.Frames))
		}
	}
}

// Random traffic and triggers are compared with a naive model. A recording holds a frame if and only if the frame's
// time lies in its window and its flow triggered.
func TestWindowsHoldExactlyTheirFrames(t *testing.T) {
	both := 0
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		r, list := newRecorder(t, Options{
			Keep: 100 * time.Millisecond, After: 50 * time.Millisecond, Late: 30 * time.Millisecond, Bytes: 1 << 20,
			All: seed%2 == 0,
		})
		type sent struct {
			at   machine.Instant
			flow uint64
		}
		frames := make([]sent, 1000)
		now := 0
		for i := range frames {
			now += random.IntN(5)
			frames[i] = sent{at(now), uint64(i % 7)}
			r.push(now, frames[i].flow, binary.BigEndian.AppendUint32(nil, uint32(i)))
			if random.IntN(60) == 0 {
				r.Trigger(Trigger{
					At: at(now - random.IntN(40)), Rule: []string{"loss", "stall"}[random.IntN(2)], Flow: uint64(1 + i%6),
				}, at(now))
			}
		}
		r.Close()
		for _, x := range *list {
			found := map[int]int{}
			for _, f := range x.Frames {
				found[int(binary.BigEndian.Uint32(f.Data))]++
			}
			for i, f := range frames {
				want := 0
				wanted := x.All || f.flow == Shared
				for _, flow := range x.Flows {
					wanted = wanted || f.flow == flow
				}
				if f.at >= x.From && f.at <= x.To && wanted {
					want = 1
				}
				if found[i] != want {
					t.Fatalf("seed %d, %s: frame %d: want %d times, found %d", seed, x.First.Rule, i, want, found[i])
				}
			}
		}
		for i, x := range *list {
			if i > 0 && x.From < (*list)[i-1].To {
				both++
			}
		}
	}
	if both < 20 {
		t.Fatalf("%d windows overlap: expected more to check", both)
	}
}

// A rule may tell of a trouble seconds later. The recording begins Keep before the trouble and ends After after it
// was told.
func TestTriggerOfThePast(t *testing.T) {
	r, list := newRecorder(t, Options{Keep: time.Second, After: time.Second, Late: 3 * time.Second, Bytes: 1 << 22})
	for ms := range 10000 {
		r.push(ms, 1, nil)
		if ms == 6000 {
			r.Trigger(Trigger{At: at(4000), Rule: "loss", Flow: 1}, at(6000))
		}
	}
	x := (*list)[0]
	if x.From != at(3000) || x.To != at(7000) || x.Told != at(6000) || len(x.Frames) != 4001 {
		t.Fatalf("want 3000 to 7000 ms, found %v to %v with %d frames", x.From.Sub(start), x.To.Sub(start), len(x.Frames))
	}
	// A trouble of longer ago than the ring goes back, and one of the future.
	r.Trigger(Trigger{At: at(-100000), Rule: "loss", Flow: 1}, at(9999))
	r.Trigger(Trigger{At: at(100000), Rule: "stall", Flow: 1}, at(9999))
	r.Close()
	if old, next := (*list)[1], (*list)[2]; old.From != at(5999) || len(old.Frames) != 4001 || next.From != at(8999) {
		t.Fatalf("want from 5999 and 8999 ms, found %v and %v", old.From.Sub(start), next.From.Sub(start))
	}
}

func TestSignalRecordsAllFlows(t *testing.T) {
	r, list := newRecorder(t, Options{Keep: time.Second, After: time.Second, Bytes: 1 << 20})
	for flow := range uint64(9) {
		r.push(0, flow, nil)
	}
	r.Signal("SIGUSR1", at(0))
	r.Signal("SIGUSR1", at(1))
	r.Close()
	if x := (*list)[0]; len(*list) != 1 || !x.All || len(x.Frames) != 9 || x.Triggers != 2 {
		t.Fatalf("want one recording of 9 frames, found %d", len(*list))
	}
}

// 200,000 packets a second for two seconds of the capture's time: what the recorder holds stays within its limit.
func TestMemoryIsBoundedAndEvictionIsCounted(t *testing.T) {
	const limit = 1 << 20
	r, list := newRecorder(t, Options{Keep: time.Hour, After: time.Second, Bytes: limit, All: true})
	random := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 1500)
	var f Frame
	push := func(i int) {
		f = Frame{At: start + machine.Instant(i)*millisecond/200, Flow: uint64(random.IntN(5000)), Data: data[:i%1501]}
		r.Push(&f)
	}
	for i := range 400_000 {
		push(i)
		if i%500 != 0 {
			continue
		}
		held := len(r.ring.data) + len(r.ring.slots)*slotBytes + r.heads.used
		if r.ring.bytes > len(r.ring.data) || r.ring.used > len(r.ring.slots) || held > limit ||
			len(r.heads.flows) != r.heads.recent.Len() || len(r.heads.flows)*headCost > r.heads.room {
			t.Fatalf("packet %d: the recorder holds %d bytes: the limit is %d", i, held, limit)
		}
	}
	r.Signal("SIGUSR1", r.now)
	r.Close()
	if x := (*list)[0]; x.Evicted == 0 || x.Bytes > limit || x.Bytes < limit/4 {
		t.Fatalf("want evicted frames and at most %d bytes, found %d and %d", limit, x.Evicted, x.Bytes)
	}
	f.Flow, f.Data = 1, data[:100]
	if n := testing.AllocsPerRun(1000, func() { r.Push(&f) }); n != 0 {
		t.Fatalf("want no allocation a frame, found %v", n)
	}
}

func TestLimitsRefuse(t *testing.T) {
	r, _ := newRecorder(t, Options{After: time.Second, Bytes: 1 << 16, Every: 5 * time.Second})
	for i := range 10 {
		r.fire(i*3000, "loss", 1)
	}
	if c := r.Counts(); c.Recordings != 5 || c.Every != 5 {
		t.Errorf("want 5 recordings and 5 refused triggers, found %+v", c)
	}

	r, list := newRecorder(t, Options{Keep: time.Second, After: 100 * time.Millisecond, Bytes: 1 << 16, Rate: 1000})
	for i := range 50 {
		r.push(i*1000, 1, make([]byte, 5000))
		r.fire(i*1000, "loss", 1)
	}
	r.Close()
	bytes := 0
	for _, x := range *list {
		bytes += x.Bytes
	}
	// The slack, and the last recording, may go over what the time allows.
	if c := r.Counts(); c.Rate == 0 || len(*list) < 4 || bytes > 50_000+10_000+(*list)[len(*list)-1].Bytes {
		t.Errorf("want 1000 bytes a second, found %d bytes in 50 s, %+v", bytes, c)
	}

	r, list = newRecorder(t, Options{Keep: time.Second, Bytes: 1 << 16, Size: 3000})
	for i := range 5 {
		r.push(i, 1, make([]byte, 1000))
	}
	r.fire(4, "loss", 1)
	r.Close()
	if x := (*list)[0]; len(x.Frames) != 3 || x.Limited != 2 {
		t.Errorf("want 3 frames and 2 limited, found %d and %d", len(x.Frames), x.Limited)
	}
	for i := range maxOpen + 3 {
		r.fire(5, string(rune('a'+i)), 1)
	}
	if c := r.Counts(); c.Open != 3 {
		t.Errorf("want 3 triggers beyond %d recordings, found %+v", maxOpen, c)
	}
}

func TestFlowsBeyondTheListAreCounted(t *testing.T) {
	r, list := newRecorder(t, Options{After: time.Second, Bytes: 1 << 22})
	for flow := range uint64(maxFlows + 10) {
		r.push(0, flow+1, nil)
		r.fire(0, "loss", flow+1)
	}
	r.Close()
	x := (*list)[0]
	if len(x.Flows) != maxFlows || x.Unlisted != 10 || len(x.Frames) != maxFlows {
		t.Fatalf("want 10 triggers beyond %d flows, found %d beyond %d", maxFlows, x.Unlisted, len(x.Flows))
	}
}

// The first frames of a flow come with a recording hours later, each once.
func TestFirstFramesOfAFlow(t *testing.T) {
	r, list := newRecorder(t, Options{Keep: time.Second, After: time.Second, Bytes: 1 << 20})
	for i := range 100 {
		r.push(i*100, uint64(1+i%2), []byte{byte(i)})
		if i == 10 {
			r.fire(i*100, "loss", 1)
		}
	}
	r.fire(9900, "stall", 1)
	r.Close()
	if x := (*list)[0]; len(x.Heads) != 0 || len(x.Frames) != 11 {
		t.Fatalf("want the first frames once, found %d beside %d", len(x.Heads), len(x.Frames))
	}
	x := (*list)[1]
	if len(x.Heads) != headFrames || x.Heads[3].Data[0] != 6 || x.Heads[3].Flow != 1 {
		t.Fatalf("want %d first frames of flow 1, found %d", headFrames, len(x.Heads))
	}
}

// One wrong time of a capture, far in the future, does not stop the recorder.
func TestClockThatGoesBack(t *testing.T) {
	r, list := newRecorder(t, Options{Keep: time.Second, After: time.Second, Bytes: 1 << 20})
	r.push(0, 1, nil)
	r.push(1<<40, 1, nil)
	r.push(10, 1, nil)
	r.fire(10, "loss", 1)
	r.push(5000, 1, nil)
	if len(*list) != 1 || len((*list)[0].Frames) != 1 || r.Counts().Jumps != 1 {
		t.Fatalf("want one recording of one frame, found %d, %+v", len(*list), r.Counts())
	}
	r.Push(&Frame{At: -1 << 63})
	r.Push(&Frame{At: 1<<63 - 1, Flow: 1})
	r.Trigger(Trigger{At: -1 << 63, Rule: "loss", Flow: 1}, 1<<63-1)
	r.Close()
}

func TestWrongOptions(t *testing.T) {
	for _, o := range []Options{
		{Bytes: leastBytes - 1}, {Bytes: 1 << 20, Keep: -1}, {Bytes: 1 << 20, Size: -1}, {Bytes: 1 << 20, Rate: -1},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v: want an error", o)
		}
	}
}
