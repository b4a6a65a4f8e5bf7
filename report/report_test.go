package report

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/graph"
	"github.com/ackscope/ackscope/machine"
)

// The percentiles of a spread are within 3 % of those of the sorted list. Its
// ends are exact.
func TestSpread(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 10, 1000} {
		var s Spread
		var all []time.Duration
		for range n {
			d := time.Duration(random.ExpFloat64() * 2e7)
			s.Add(d)
			all = append(all, d)
		}
		slices.Sort(all)
		if s.N != uint64(n) || s.Min != all[0] || s.Max != all[n-1] || s.At(1) != all[n-1] {
			t.Errorf("%d values: %d from %v to %v, expected %v to %v", n, s.N, s.Min, s.Max, all[0], all[n-1])
		}
		for _, q := range []float64{0.1, 0.5, 0.95, 0.99} {
			want := all[max(int(q*float64(n)+0.999999)-1, 0)]
			if got := s.At(q); float64(got) < 0.97*float64(want)-1e3 || float64(got) > 1.03*float64(want)+1e3 {
				t.Errorf("%d values at %v: %v, expected %v", n, q, got, want)
			}
		}
	}
	var none Spread
	if none.At(0.5) != 0 {
		t.Error("no value has a median")
	}
	none.Add(-time.Second)
	if none.Max != 0 {
		t.Error("a duration below 0 is kept")
	}
}

// The script of the page decodes the plot that was encoded.
func TestDataRoundTrip(t *testing.T) {
	p := &graph.Plot{Span: 10, Unit: "ms", Traces: []graph.Trace{
		{
			Name: "a", Class: "raw", Shape: graph.Bars,
			Points: []graph.Point{
				{At: 0.05, Low: 1, High: 2.5, N: 3, Ref: machine.MakeRef(0, 7)},
				{At: 5.05, Low: 4, High: 4, N: 1, Ref: machine.MakeRef(0, 9)},
				{At: 9.95, Low: 123456, High: 123456.789, N: 1, Ref: machine.MakeRef(0, 5)},
			},
		},
		{
			Name: "b", Class: "smooth", Shape: graph.Line,
			Points: []graph.Point{{At: 1, Low: 0.0123456, High: 0.0123456, N: 1}},
		},
	}}
	text, err := json.Marshal(dataOf(p, 100, true))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"title":"","unit":"ms","span":10,"columns":100,"zero":true,"traces":[` +
		`{"name":"a","class":"raw","shape":"bars","x":[0,50,49],"low":[1.5,0,0.789],"high":[2.5,4,123457],"n":[3,1,1],"frame":[7,2,-4]},` +
		`{"name":"b","class":"smooth","shape":"line","x":[10],"high":[0.012346]}]}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// Text of a capture remains text, whatever it contains.
func TestHostileText(t *testing.T) {
	const evil = `</script><script>alert(1)</script><img src=x onerror=alert(2)>` + "\x1b[31m\u202e|*_`"
	f := &analyze.Flow{ID: 1}
	m := &Messages{}
	m.byFlow = map[int]*flowMessages{1: {
		types: map[typeKey]*Type{{}: {Name: evil, Count: 1}},
		worst: []Held{{Name: evil, ID: 1, Wait: 5, Blocker: -1}},
	}}
	series := graph.NewFlow(0, 1e9)
	r := &Report{
		Name: evil, Session: analyze.NewSession(analyze.Options{Registry: emptyRegistry}), Messages: m, Problem: evil,
		Flows: []*Flow{{Flow: f, Series: series}}, Ends: map[int]End{1: {Silent: true, Story: []string{evil}}},
	}
	f.Verdict.Reason = evil
	var page, text bytes.Buffer
	if err := r.HTML(&page); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(page.String(), "<script"); n != 1 {
		t.Errorf("%d scripts in a page of none but its own", n)
	}
	for _, bad := range []string{"<img", "onerror=alert(2)>", "alert(1)</script>"} {
		if strings.Contains(page.String(), bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if !strings.Contains(page.String(), "&lt;/script&gt;&lt;script&gt;alert(1)") {
		t.Error("the page does not hold the name at all")
	}
	if err := r.Markdown(&text); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "<img", "\x1b", "\u202e"} {
		if strings.Contains(strings.ReplaceAll(text.String(), `\<`, ""), bad) {
			t.Errorf("the Markdown holds %q", bad)
		}
	}
}

// The flows with the gravest findings are shown in full. Flows without a
// protocol never are.
func TestChoose(t *testing.T) {
	flows := []*analyze.Flow{{ID: 1, Packets: [2]uint64{5, 5}}, {ID: 2, Packets: [2]uint64{500, 5}}, {ID: 3}}
	full, rest := Choose(flows, 2)
	if len(full) != 0 || len(rest) != 3 || rest[0].ID != 1 {
		t.Errorf("flows of no protocol: %d in full, %d not", len(full), len(rest))
	}
	for _, f := range flows[:2] {
		f.Protocol = emptyProtocol
	}
	full, rest = Choose(flows, 1)
	if len(full) != 1 || full[0].ID != 2 || len(rest) != 2 || rest[0].ID != 1 || rest[1].ID != 3 {
		t.Errorf("expected flow 2 in full, got %v and %v", full, rest)
	}
}

// TestWorst checks which flows get a line, and the number of the others.
func TestWorst(t *testing.T) {
	var flows []*analyze.Flow
	for i := range 5000 {
		f := &analyze.Flow{ID: i + 1, Packets: [2]uint64{uint64(i * 7919 % 5000), 0}}
		if i%10 == 0 {
			f.Protocol = &dissect.Protocol{Name: "x"}
		}
		flows = append(flows, f)
	}
	list, more := Worst(flows, OthersMost)
	if len(list) != OthersMost || more != 4000 {
		t.Fatalf("%d flows and %d more", len(list), more)
	}
	known, least := 0, uint64(5000)
	for i, f := range list {
		if i > 0 && list[i-1].ID >= f.ID {
			t.Fatalf("flow %d is before flow %d", list[i-1].ID, f.ID)
		}
		if f.Protocol != nil {
			known++
		} else {
			least = min(least, f.Packets[0])
		}
	}
	if known != 500 {
		t.Errorf("%d flows of a known protocol are listed, there are 500", known)
	}
	for _, f := range flows {
		if f.Protocol == nil && f.Packets[0] > least && !slices.Contains(list, f) {
			t.Fatalf("flow %d of %d packets is not listed, one of %d is", f.ID, f.Packets[0], least)
		}
	}
	if list, more := Worst(flows[:OthersMost], OthersMost); len(list) != OthersMost || more != 0 {
		t.Errorf("of %d flows %d are listed and %d counted", OthersMost, len(list), more)
	}
}
