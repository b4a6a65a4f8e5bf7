package baseline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/batch"
	"github.com/ackscope/ackscope/unit"
)

// TestIntervals holds the intervals against those of the papers.
func TestIntervals(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 5e-5 {
			t.Errorf("%s: %.5f, expected %.4f", what, got, want)
		}
	}
	// Source: Newcombe 1998, table II, method 10.
	for _, c := range []struct{ a, n, b, m, least, most float64 }{
		{56, 70, 48, 80, 0.0524, 0.3339},
		{9, 10, 3, 10, 0.1705, 0.8090},
		{10, 10, 0, 20, 0.6791, 1},
		{0, 10, 0, 10, -0.2775, 0.2775},
	} {
		least, most := newcombe(c.b/c.m, c.a/c.n, c.m, c.n)
		near(fmt.Sprintf("%v: least", c), least, c.least)
		near(fmt.Sprintf("%v: most", c), most, c.most)
	}
	// Wilson's interval of 81 of 263: Newcombe 1998, Statistics in Medicine 17, 857, table I.
	least, most := wilson(81./263, 263)
	near("wilson: least", least, 0.2553)
	near("wilson: most", most, 0.3662)
}

func TestHolm(t *testing.T) {
	p := []float64{0.01, 0.04, 0.03, 0.005}
	holm([]*float64{&p[0], &p[1], &p[2], &p[3]})
	for i, want := range []float64{0.03, 0.06, 0.06, 0.02} {
		if math.Abs(p[i]-want) > 1e-12 {
			t.Errorf("chance %d becomes %v, expected %v", i, p[i], want)
		}
	}
}

// made returns a set of captures with flows of one protocol. In each capture, each flow has each of
// 20 rules with a chance that varies from capture to capture, as networks do.
func made(t *testing.T, random *rand.Rand, captures int, rate float64) *Set {
	t.Helper()
	s := &batch.Summary{}
	for range captures {
		flows := 1 + random.IntN(8)
		p := &batch.Protocol{Protocol: "gaffer", Captures: 1, Flows: uint64(flows)}
		p.FlowsSquared = uint64(flows * flows)
		h := make(unit.Histogram, unit.Buckets)
		network := random.IntN(10)
		for range flows {
			h[20+network+random.IntN(2)]++
		}
		p.Dialects = []*batch.Dialect{{RTT: h, Captures: 1, Flows: uint64(flows)}}
		for rule := range 20 {
			have, chance := 0, rate*2*random.Float64()
			for range flows {
				if random.Float64() < chance {
					have++
				}
			}
			if have > 0 {
				p.Rules = append(p.Rules, &batch.Rule{
					Rule: fmt.Sprintf("rule-%02d", rule), Severity: "warn", Flows: uint64(have), Captures: 1,
					FlowsSquared: uint64(have * have), FlowsProduct: uint64(have * flows),
					Example: batch.Example{Capture: "x", Frame: 1},
				})
			}
		}
		s.Merge(&batch.Summary{Partitions: []*batch.Partition{{
			Folder: ".", States: map[unit.State]uint64{unit.OK: 1}, Captures: 1, Protocols: []*batch.Protocol{p},
		}}})
	}
	set, err := Of("made", s, "", "")
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestChance: of pairs of equal sets, at most alpha report a difference; of pairs with twice the
// rate, most do.
func TestChance(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	const rounds = 400
	wrong, missed := 0, 0
	for range rounds {
		if r := Compare(made(t, random, 40, 0.1), made(t, random, 40, 0.1)); r.Real() > 0 {
			wrong++
		}
		if r := Compare(made(t, random, 40, 0.1), made(t, random, 40, 0.4)); r.Worse() == 0 {
			missed++
		}
	}
	// Three standard errors above alpha.
	if most := rounds*alpha + 3*math.Sqrt(rounds*alpha*(1-alpha)); float64(wrong) > most {
		t.Errorf("%d of %d equal pairs report a difference, expected %.0f at most", wrong, rounds, most)
	}
	if missed > rounds/20 {
		t.Errorf("%d of %d pairs that differ report none", missed, rounds)
	}
	t.Logf("equal pairs that report a difference: %d of %d; pairs that differ and report none: %d", wrong, rounds, missed)
}

// TestKinds: rules that are new and gone are told, and a text of a hostile capture stays on its line.
func TestKinds(t *testing.T) {
	side := func(rule string, flows uint64) *Set {
		p := &batch.Protocol{Protocol: "gaffer", Captures: 50, Flows: 500, FlowsSquared: 5000}
		p.Rules = []*batch.Rule{{
			Rule: rule, Severity: "error", Captures: 50, Flows: flows, FlowsSquared: flows * flows / 50,
			FlowsProduct: flows * 10, Example: batch.Example{Capture: "bad\n\x1b[31m", Frame: 3},
		}}
		return &Set{rule, &batch.Partition{
			Captures: 50, States: map[unit.State]uint64{unit.OK: 50}, Protocols: []*batch.Protocol{p},
		}}
	}
	r := Compare(side("old\x1b\n-rule", 100), side("new-rule", 200))
	if len(r.Rules) != 2 || r.Rules[0].Kind() != "new" || r.Rules[1].Kind() != "gone" || r.Rules[0].Verdict() != "worse" ||
		r.Rules[1].Verdict() != "better" {
		t.Fatalf("%+v %+v", *r.Rules[0], *r.Rules[1])
	}
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if strings.Contains(text, "\x1b") || !strings.Contains(text, "new-rule is new: 0 → 400 of 1,000 flows") {
		t.Errorf("the text is\n%s", text)
	}
}
