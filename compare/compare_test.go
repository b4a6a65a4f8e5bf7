package compare

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/figures"
	"github.com/ackscope/ackscope/machine"
)

// made returns a capture of one protocol with so many flows of so many slices. A share of the
// packets is lost, and messages arrive after a delay.
func made(seed uint64, flows, slices int, loss float64, delay func(kind int) time.Duration) *Capture {
	r, c := rand.New(rand.NewPCG(seed, 1)), &Capture{Recordings: 1, Flows: flows}
	for range flows {
		f := &flow{protocol: "made", ports: [2]uint16{30000, 40000}, width: time.Second}
		for range slices {
			var x slice
			for side := range x {
				s := &x[side]
				for range 60 {
					s.packets++
					s.bytes += 100
					s.settled[lossOneWay]++
					if r.Float64() < loss {
						s.lost[lossOneWay]++
					}
				}
				for n := range 20 {
					t := s.kind([]string{"type 1", "type 2", "type 3"}[n%3])
					t.messages++
					if r.Float64() < 0.1 {
						t.resends++
					}
					t.arrival.Add(delay(n%3) + time.Duration(r.Int64N(int64(20*time.Millisecond))))
				}
			}
			f.slices = append(f.slices, x)
		}
		f.last = f.first.Add(time.Duration(slices) * time.Second)
		c.flows = append(c.flows, f)
	}
	return c
}

func steady(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

func sentences(r *Result) string {
	var list []string
	for _, d := range r.Real {
		list = append(list, d.Grade()+" "+d.Sentence())
	}
	return strings.Join(list, "\n")
}

func TestSameCapturesDoNotDiffer(t *testing.T) {
	wrong := 0
	for seed := range uint64(20) {
		before, after := made(2*seed, 1, 120, 0.05, steady(40*time.Millisecond)), made(2*seed+1, 1, 120, 0.05,
			steady(40*time.Millisecond))
		if len(Compare(before, after).Real) > 0 {
			wrong++
		}
	}
	if wrong > 1 {
		t.Errorf("%d of 20 pairs without a difference report one", wrong)
	}
}

func TestDifferencesAreTold(t *testing.T) {
	before := made(1, 1, 120, 0.03, steady(40*time.Millisecond))
	for _, c := range []struct {
		name  string
		after *Capture
		want  []string
	}{
		{"loss", made(2, 1, 120, 0.06, steady(40*time.Millisecond)), []string{
			"worse A→B: more packets are lost: ", "worse B→A: more packets are lost: ",
		}},
		{"less loss", made(3, 1, 120, 0.01, steady(40*time.Millisecond)), []string{"better A→B: fewer packets are lost: "}},
		{"delay", made(4, 1, 120, 0.03, steady(70*time.Millisecond)), []string{
			"worse A→B: messages arrive later: p95 ", "worse B→A: messages arrive later: p95 ",
		}},
		{"one type", made(5, 1, 120, 0.03, func(kind int) time.Duration {
			return []time.Duration{40 * time.Millisecond, 40 * time.Millisecond, 90 * time.Millisecond}[kind]
		}), []string{"worse B→A: messages of type 3 arrive later: p95 "}},
		{"many flows", made(6, 20, 5, 0.08, steady(40*time.Millisecond)), nil},
	} {
		got := sentences(Compare(before, c.after))
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: expected %q in\n%s", c.name, want, got)
			}
		}
	}
	// Where flows are many, a unit is a flow, and frames do not matter.
	many := Compare(made(7, 20, 10, 0.03, steady(40*time.Millisecond)), made(8, 20, 10, 0.03, steady(44*time.Millisecond)))
	if got := sentences(many); !strings.Contains(got, "arrive later: p95") || len(many.Notes) > 0 {
		t.Errorf("20 flows with 4 ms more: %q, %q", got, many.Notes)
	}
}

// Sides are compared by their ports, whichever of them sent first.
func TestSidesAreAlignedByPort(t *testing.T) {
	before, after := made(1, 12, 10, 0.03, steady(40*time.Millisecond)), made(2, 12, 10, 0.03, steady(40*time.Millisecond))
	for i, f := range after.flows {
		before.flows[i].ports = [2]uint16{uint16(31000 + i), 40000}
		f.ports = [2]uint16{40000, uint16(32000 + i)}
		for j := range f.slices {
			f.slices[j][machine.A].lost[lossOneWay] += 6 // of the server
		}
	}
	got := sentences(Compare(before, after))
	if !strings.Contains(got, "B→A: more packets") || strings.Contains(got, "A→B: ") {
		t.Errorf("expected the loss from B to A only:\n%s", got)
	}
}

func TestTooShortIsUnknown(t *testing.T) {
	r := Compare(made(1, 1, 5, 0.03, steady(40*time.Millisecond)), made(2, 1, 5, 0.5, steady(40*time.Millisecond)))
	if len(r.Real) > 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "too short") {
		t.Errorf("%q, %q", sentences(r), r.Notes)
	}
	for _, d := range r.Table {
		if !math.IsNaN(d.Chance) {
			t.Errorf("%v has a chance of %v", d.Figure, d.Chance)
		}
	}
}

// A change that is not real is known by its bounds only, so a condition within them is open.
func TestConditions(t *testing.T) {
	r := Compare(made(1, 1, 120, 0.03, steady(40*time.Millisecond)), made(2, 1, 120, 0.06, steady(41*time.Millisecond)))
	for text, want := range map[string]figures.Truth{
		"loss > +1%":         figures.True,
		"loss > +20%":        figures.False,
		"loss > +50%":        figures.False,
		"loss > 4%":          figures.True,
		"arrival.p95 > +1ms": figures.Unknown,
		"arrival.p95 > +1s":  figures.False,
		"arrival.p95 > +90%": figures.False,
		"worse":              figures.True,
		"rtt > 1s":           figures.Unknown,
		"errors":             figures.False,
	} {
		c, err := figures.Parse(text, true)
		if err != nil {
			t.Fatal(err)
		}
		sides := r.Sides()
		if got := c.Evaluate(&sides[0]); got.Truth != want {
			t.Errorf("%s: %v %v, expected %v", text, got.Truth, got.Values, want)
		}
	}
}

// Frames are found in the steps of an end, and jitter of the path hides how they fall.
func TestFall(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	end := func(frame, jitter time.Duration) []*steps {
		s := new(steps)
		for i := range 4000 {
			at := time.Duration(i) * frame
			if jitter > 0 {
				at += time.Duration(r.Int64N(int64(jitter)))
			}
			s.add(machine.Instant(time.Hour + at))
		}
		return []*steps{s}
	}
	const frame = 16_667 * time.Microsecond
	near := end(frame, 300*time.Microsecond)
	inStep, share := fall([2][]*steps{near, end(frame, 3*time.Millisecond)})
	if math.Abs(inStep-frame.Seconds()) > 0.0005 || share != 1 {
		t.Errorf("in step: %v s, share %v; expected a frame", inStep, share)
	}
	out, share := fall([2][]*steps{near, end(frame, 40*time.Millisecond)})
	if out > 0.7*frame.Seconds() || share > 0.7 {
		t.Errorf("with jitter: %v s, share %v", out, share)
	}
}

// Memory is bounded: a capture of any length has few slices, and sums stay.
func TestSlicesAreBounded(t *testing.T) {
	f := &flow{width: sliceLeast}
	for s := range 10_000 {
		i := f.slice(machine.Instant(time.Duration(s)*time.Second), slicesMost)
		f.slices[i][machine.A].packets++
	}
	f.slice(math.MaxInt64, slicesMost) // a clock that jumps
	sum := int64(0)
	for i := range f.slices {
		sum += f.slices[i][machine.A].packets
	}
	if len(f.slices) > slicesMost || sum != 10_000 {
		t.Errorf("%d slices with %d packets", len(f.slices), sum)
	}
}

// One lost connection makes a thousand resends in a few seconds. That is an event of one run,
// and not how often messages are sent again.
func TestOneMomentIsNoDifference(t *testing.T) {
	before, after := made(1, 1, 120, 0.03, steady(40*time.Millisecond)), made(2, 1, 120, 0.03, steady(40*time.Millisecond))
	for _, i := range []int{60, 61} {
		after.flows[0].slices[i][machine.B].kind("type 1").resends += 500
	}
	if got := sentences(Compare(before, after)); got != "" {
		t.Error(got)
	}
}

// Where about one message in twenty is sent again, the 95th percentile lies between messages
// that came at once and messages that came later. It jumps by chance, and the test must not.
func TestPercentileInAGap(t *testing.T) {
	late := func(seed uint64, share float64, more time.Duration) *Capture {
		r := rand.New(rand.NewPCG(seed, 3))
		return made(seed, 1, 120, 0.03, func(int) time.Duration {
			if r.Float64() < share {
				return 200*time.Millisecond + more
			}
			return 40*time.Millisecond + more
		})
	}
	jumps := 0
	for seed := range uint64(10) {
		r := Compare(late(100+seed, 0.047, 0), late(200+seed, 0.053, 0))
		for _, d := range r.tests {
			if d.Figure == figures.Arrival95 && d.Type == "" && d.Change > float64(100*time.Millisecond) {
				jumps++
			}
			if d.Real {
				t.Errorf("seed %d: %s", seed, d.Sentence())
			}
		}
	}
	if jumps < 5 {
		t.Errorf("the percentile jumped %d times: the test shows nothing", jumps)
	}
	got := sentences(Compare(late(1, 0.05, 0), late(2, 0.05, 20*time.Millisecond)))
	if !strings.Contains(got, "arrive later") {
		t.Errorf("20 ms more are not told: %q", got)
	}
}

// The longest silence and the longest wait have values for conditions, and no chance.
func TestLongestTimes(t *testing.T) {
	before, after := made(1, 1, 120, 0.03, steady(40*time.Millisecond)), made(2, 1, 120, 0.03, steady(40*time.Millisecond))
	for i, c := range []*Capture{before, after} {
		c.flows[0].stall = [2]time.Duration{time.Duration(i+1) * time.Second, noTime}
		c.flows[0].wait = [2]time.Duration{noTime, 70 * time.Millisecond}
	}
	sides := Compare(before, after)
	for text, want := range map[string][2]figures.Truth{
		"stall > 1500ms": {figures.True, figures.Unknown},
		"stall > 3s":     {figures.False, figures.Unknown},
		"stall > +500ms": {figures.Unknown, figures.Unknown},
		"hol > 50ms":     {figures.Unknown, figures.True},
	} {
		c, err := figures.Parse(text, true)
		if err != nil {
			t.Fatal(err)
		}
		for i, side := range sides.Sides() {
			if got := c.Evaluate(&side).Truth; got != want[i] {
				t.Errorf("%s, %s: %v, expected %v", text, side.Way, got, want[i])
			}
		}
	}
}

// A loss of packets or their answers bounds the loss of the way from above.
func TestLossThereAndBack(t *testing.T) {
	before, after := made(1, 1, 120, 0.04, steady(40*time.Millisecond)), made(2, 1, 120, 0.09, steady(40*time.Millisecond))
	for _, c := range []*Capture{before, after} {
		for i := range c.flows[0].slices {
			for side := range c.flows[0].slices[i] {
				x := &c.flows[0].slices[i][side]
				x.settled[lossRound], x.settled[lossOneWay] = x.settled[lossOneWay], 0
				x.lost[lossRound], x.lost[lossOneWay] = x.lost[lossOneWay], 0
			}
		}
	}
	r := Compare(before, after)
	if got := sentences(r); !strings.Contains(got, "more packets or their answers are lost: ") {
		t.Errorf("%q", got)
	}
	for text, want := range map[string]figures.Truth{
		"loss > 5%": figures.Unknown, "loss > 20%": figures.False, "loss > +1%": figures.Unknown,
	} {
		c, err := figures.Parse(text, true)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Evaluate(&r.Sides()[0]); got.Truth != want {
			t.Errorf("%s: %v, expected %v", text, got.Truth, want)
		}
	}
}
