package figures

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// told is a source of some figures and changes.
type told struct {
	values   map[string]Value
	changes  map[string]float64
	relative map[string]float64
}

func (s *told) Value(f Figure) Value { return s.values[f.String()] }

func (s *told) Change(f Figure, relative bool) Value {
	list := s.changes
	if relative {
		list = s.relative
	}
	v, ok := list[f.String()]
	return Value{ok, v, v}
}

func TestEvaluate(t *testing.T) {
	ms := float64(time.Millisecond)
	s := &told{
		values: map[string]Value{
			"loss": Exactly(0.073), "stall": Exactly(600 * ms), "bandwidth": Exactly(30_000), "errors": Exactly(2),
			"loss.least": Exactly(0), "resends": {true, 0.03, 0.11}, "warnings": Exactly(0),
		},
		changes:  map[string]float64{"arrival.p95": 28 * ms, "loss": -0.01},
		relative: map[string]float64{"arrival.p95": 0.33},
	}
	for text, want := range map[string]Truth{
		"loss > 5%":                               True,
		"loss>5%":                                 True,
		"loss > 7.5%":                             False,
		"stall > 500ms":                           True,
		"stall >= 0.6s and loss > 5%":             True,
		"stall > 500 ms":                          9, // a unit belongs to its number
		"stall < 500ms or errors":                 True,
		"not (stall > 500ms)":                     False,
		"!errors":                                 False,
		"warnings":                                False,
		"bandwidth > 200kbit/s":                   True,
		"bandwidth > 30KB/s":                      False,
		"rtt > 10ms":                              Unknown,
		"rtt > 10ms or errors > 1":                True,
		"rtt > 10ms and warnings":                 False,
		"rtt > 10ms and errors":                   Unknown,
		"errors and rtt > 10ms":                   Unknown,
		"not rtt > 10ms":                          Unknown,
		"resends > 2%":                            True,
		"resends > 5%":                            Unknown,
		"resends > 12%":                           False,
		"resends == 5%":                           Unknown,
		"resends != 12%":                          True,
		"loss.least == 0":                         True,
		"arrival.p95 > +20ms":                     True,
		"arrival.p95 > +30ms":                     False,
		"arrival.p95 > +25%":                      True,
		"arrival.p95 < -1ms":                      False,
		"loss > +2%":                              False,
		"loss < -0.5%":                            True,
		"errors or loss > 90% and stall > 1ms":    True,
		"(errors or loss > 90%) and stall > 10s":  False,
		"errors == 2 && loss != 7% || warnings>3": True,
	} {
		c, err := Parse(text, true)
		if want == 9 {
			if err == nil {
				t.Errorf("%s: no error", text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := c.Evaluate(s); got.Truth != want {
			t.Errorf("%s: %v, expected %v", text, got.Truth, want)
		}
	}
}

func TestSayNamesTheValue(t *testing.T) {
	c, err := Parse("loss > 5% and rtt.p95 > 100ms", false)
	if err != nil {
		t.Fatal(err)
	}
	set := Set{Loss: Exactly(0.0731), RTT95: Exactly(120e6)}
	j := c.Evaluate(&set)
	const want = "loss A→B is 7.31%, and rtt.p95 A→B is 120 ms"
	if got := j.Say(" A→B"); j.Truth != True || got != want {
		t.Errorf("%v %q, expected %q", j.Truth, got, want)
	}
}

func TestSayCountsWhatIsWorse(t *testing.T) {
	c, err := Parse("worse", true)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[float64]string{1: "1 figure is worse A→B", 2: "2 figures are worse A→B"} {
		j := Result{Terms: c.Evaluate(&Set{}).Terms, Values: []Value{Exactly(n)}}
		if got := j.Say(" A→B"); got != want {
			t.Errorf("%v: %q, expected %q", n, got, want)
		}
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	for _, c := range []struct {
		text    string
		changes bool
		column  int
		message string
	}{
		{"los > 5%", false, 1, `no figure "los"; did you mean loss?`},
		{"xyzzy > 5%", false, 1, "expected one of loss, "},
		{"loss", false, 5, "expected a comparison such as loss > 5%, found the end"},
		{"loss = 5%", false, 6, `"=" is no operator; did you mean ==?`},
		{"loss > 5ms", false, 8, `loss: expected a value such as 5%, found "5ms"`},
		{"stall > 500", false, 9, `stall: expected a value such as 500ms, found "500"`},
		{"errors > nan", false, 10, `errors: expected a value such as 3, found "nan"`},
		{"stall > ", false, 9, "stall: expected a value such as 500ms, found the end"},
		{"(loss > 5%", false, 1, "expected a ) for this ("},
		{"loss > 5% loss > 6%", false, 11, "expected `and`, `or` or the end"},
		{"", false, 1, "expected a figure such as loss, found the end"},
		{"loss > +5%", false, 8, "a sign asks for a change"},
		{"worse", false, 1, "worse needs two captures"},
		{strings.Repeat("!", 100) + "errors", false, 66, "within each other"},
	} {
		_, err := Parse(c.text, c.changes)
		var at *Error
		if !errors.As(err, &at) || at.Column() != c.column || !strings.Contains(at.Message, c.message) {
			t.Errorf("%q: %v, expected column %d: %s", c.text, err, c.column, c.message)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"loss > 5% and not (stall > 500ms || errors)", "arrival.p95 > +20ms", "\xff", "µ", "(((",
	} {
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, changes bool) {
		c, err := Parse(text, changes)
		var at *Error
		if errors.As(err, &at) {
			_, _ = at.Pointer(), at.Error()
			return
		}
		c.Evaluate(&Set{})
	})
}

func TestTimesAreWithinTwoPercent(t *testing.T) {
	var x, y Times
	for i := range 1000 {
		d := time.Duration(i+1) * time.Millisecond
		if i%2 == 0 {
			x.Add(d)
		} else {
			y.Add(d)
		}
	}
	x.Join(&y)
	for _, c := range []struct {
		share float64
		want  time.Duration
	}{{0.5, 500 * time.Millisecond}, {0.95, 950 * time.Millisecond}, {0.99, 990 * time.Millisecond}} {
		if got := x.Quantile(c.share); max(got-c.want, c.want-got) > c.want/50 {
			t.Errorf("quantile %v: %v, expected %v", c.share, got, c.want)
		}
	}
	var none Times
	if none.Quantile(0.5) >= 0 || x.Count() != 1000 {
		t.Errorf("no times: %v; %d times", none.Quantile(0.5), x.Count())
	}
}
