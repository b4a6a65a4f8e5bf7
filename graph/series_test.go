package graph

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
)

// TestJoin compares joined cells with a plain list of all values, over random
// ranges.
func TestJoin(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	var s Series
	type value struct {
		cell int
		v    float64
	}
	var all []value
	for range 5000 {
		v := value{random.IntN(Cells), random.NormFloat64() * 100}
		s.add(v.cell, v.v, machine.MakeRef(0, uint64(len(all)+1)))
		all = append(all, v)
	}
	for range 200 {
		from, to := random.IntN(Cells+20)-10, random.IntN(Cells+20)-10
		want := Cell{Min: math.Inf(1), Max: math.Inf(-1)}
		for _, x := range all {
			if x.cell >= from && x.cell < to {
				want.N++
				want.Min, want.Max, want.Sum = min(want.Min, x.v), max(want.Max, x.v), want.Sum+x.v
			}
		}
		got := s.Join(from, to)
		if got.N != want.N || want.N > 0 &&
			(got.Min != want.Min || got.Max != want.Max || math.Abs(got.Sum-want.Sum) > 1e-6) {
			t.Fatalf("[%d, %d): %+v, expected %+v", from, to, got, want)
		}
	}
}

// TestExtend compares a series that grew with one that knew its end from the start.
func TestExtend(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 50 {
		first := machine.Instant(random.Int64N(1e18))
		grown := NewFlow(first, first+machine.Instant(random.Int64N(1e6)))
		var list []machine.Instant
		at := first
		for range 400 {
			at = at.Add(time.Duration(random.Int64N(1 << (10 + random.IntN(25)))))
			list = append(list, at)
			grown.Extend(at)
			grown.Series[RTT][0].add(grown.CellAt(at), float64(at-first), 0)
		}
		if grown.Last < at {
			t.Fatalf("the series ends at %d, before %d", grown.Last, at)
		}
		whole := NewFlow(first, grown.Last)
		for _, at := range list {
			whole.Series[RTT][0].add(whole.CellAt(at), float64(at-first), 0)
		}
		for i := range Cells {
			if got, want := grown.Series[RTT][0].Cells[i], whole.Series[RTT][0].Cells[i]; got != want {
				t.Fatalf("cell %d: %+v, expected %+v", i, got, want)
			}
		}
	}
	f := NewFlow(math.MinInt64, 0)
	if f.Extend(math.MaxInt64); f.Last != 0 {
		t.Errorf("a span of 292 years grew to %d", f.Last)
	}
}

// TestCellAt: every instant is in one cell, the cells are in order, and no cell
// begins after its instant.
func TestCellAt(t *testing.T) {
	for _, span := range []int64{0, 1, 4095, 4096, 1e9, 86400e9, math.MaxInt64 / 4} {
		f, last := NewFlow(1000, machine.Instant(1000+span)), 0
		for i := range int64(1000) {
			at := machine.Instant(1000 + span/1000*i)
			c := f.CellAt(at)
			if c < last || c < 0 || c >= Cells {
				t.Fatalf("span %d: cell %d after %d", span, c, last)
			}
			if begin := f.TimeOf(c); begin > at+machine.Instant(span/1e6)+1 {
				t.Fatalf("span %d: cell %d begins at %d, after %d", span, c, begin, at)
			}
			last = c
		}
		if c := f.CellAt(machine.Instant(1000 + span)); span >= Cells && c != Cells-1 {
			t.Errorf("span %d: the last instant is in cell %d", span, c)
		}
	}
}

// TestInFlight compares the packets in flight and the round trips with a model
// that keeps every packet.
func TestInFlight(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 9))
	f := NewFlow(0, 10e9)
	open, resent := map[int64]machine.Instant{}, map[int64]bool{}
	next, peak, samples, most := int64(0), 0, 0, 0.0
	f.near, f.located = [2]bool{true, true}, true
	for at := machine.Instant(1); at < 10e9; at += machine.Instant(1 + random.IntN(4e6)) {
		e := machine.Event{Side: machine.A, At: at, Ref: machine.MakeRef(0, uint64(at)), RTT: -1}
		switch random.IntN(5) {
		case 0, 1:
			e.Kind, e.Sequence64 = machine.EventSent, next
			open[next] = at
			next++
		case 2:
			e.Kind, e.Sequence64 = machine.EventResent, next-1
			if _, ok := open[next-1]; ok {
				resent[next-1] = true
			}
		default:
			e.Sequence64 = -1
			for n := range open {
				if e.Sequence64 < 0 || n < e.Sequence64 {
					e.Sequence64 = n
				}
			}
			if e.Kind = machine.EventAcked; random.IntN(4) == 0 {
				e.Kind = machine.EventLost
			}
			if sent, ok := open[e.Sequence64]; ok && e.Kind == machine.EventAcked && !resent[e.Sequence64] {
				samples++
				most = max(most, float64(at.Sub(sent))/1e6)
			}
			delete(open, e.Sequence64)
		}
		peak = max(peak, len(open))
		f.Take(&analyze.Record{Events: []machine.Event{e}})
		if c := f.Series[InFlight][machine.A].Cells[f.CellAt(at)]; c.Last != float64(len(open)) {
			t.Fatalf("at %d: %v in flight, the model has %d", at, c.Last, len(open))
		}
	}
	if all := f.Series[InFlight][machine.A].Join(0, Cells); all.Max != float64(peak) {
		t.Errorf("at most %v in flight, the model has %d", all.Max, peak)
	}
	if all := f.Series[RTT][machine.A].Join(0, Cells); int(all.N) != samples || all.Max != most {
		t.Errorf("%d round trips up to %v ms, the model has %d up to %v", all.N, all.Max, samples, most)
	}
}

// TestRows: packets with separate sequence numbers are kept apart.
func TestRows(t *testing.T) {
	f := NewFlow(0, 1e9)
	for i := range 10 {
		for channel := range uint8(2) {
			f.Take(&analyze.Record{
				Events: []machine.Event{{
					Kind: machine.EventSent, Side: machine.B, Channel: channel,
					Sequence64: int64(1000*int(channel) + i), At: machine.Instant(i) * 1e8,
				}},
			})
		}
	}
	first, more := f.Series[Sequence][machine.B].Join(0, Cells), f.More[machine.B]
	if first.Max != 9 || len(more) != 1 || more[0].Series[Sequence].Join(0, Cells).Min != 1000 {
		t.Errorf("rows: %+v and %d more", first, len(more))
	}
	if n := len(f.Plots(TimeSequence, machine.B, 100)); n != 2 {
		t.Errorf("%d time-sequence plots, expected 2", n)
	}
}

// TestBandwidth: the bytes of a frame are counted once, and the purposes add up
// in the plot.
func TestBandwidth(t *testing.T) {
	f := NewFlow(0, 1e9)
	frame := &capture.Frame{Length: 100}
	for i := range 10 {
		at := machine.Instant(i)*1e8 + 5e7
		f.Take(&analyze.Record{Frame: frame, Datagram: machine.Datagram{At: at}})
		f.Take(&analyze.Record{Frame: frame, Index: 1, Datagram: machine.Datagram{At: at}})
		f.Spend(machine.A, at, 40, 10, 20, 30)
	}
	if got := f.Series[Bandwidth][machine.A].Join(0, Cells).Sum; got != 1000 {
		t.Errorf("%v bytes, expected 1000", got)
	}
	p := f.Plots(Spent, machine.A, 10)[0]
	if len(p.Traces) != 4 || p.Traces[0].Name != "goodput" || p.Traces[3].Name != "headers" {
		t.Fatalf("traces %+v", p.Traces)
	}
	for i, x := range p.Traces[3].Points {
		if math.Abs(x.High-1000) > 20 || p.Traces[0].Points[i].Low != 0 ||
			p.Traces[1].Points[i].Low != p.Traces[0].Points[i].High {
			t.Errorf("column %d: the stack ends at %v, expected about 1000 B/s", i, x.High)
		}
	}
}

// TestTicks: ticks are round, ascending and inside the range.
func TestTicks(t *testing.T) {
	for _, c := range []struct{ low, high float64 }{
		{0, 1},
		{0, 19.2},
		{-3, 7},
		{0.001, 0.0012},
		{1e9, 1e9 + 5},
		{0, 1e18},
		{5, 5},
		{0, math.Inf(1)},
	} {
		ticks := Ticks(c.low, c.high, 5)
		if c.high > c.low && !math.IsInf(c.high, 1) && (len(ticks) < 2 || len(ticks) > 7) {
			t.Errorf("%v to %v: %v", c.low, c.high, ticks)
		}
		for i, v := range ticks {
			if v < c.low-1e-9*math.Abs(c.low) || v > c.high*(1+1e-9) || i > 0 && v <= ticks[i-1] {
				t.Errorf("%v to %v: %v", c.low, c.high, ticks)
			}
		}
	}
	for v, want := range map[float64]string{
		0: "0", math.Copysign(0, -1): "0", 0.25: "0.25", 1500: "1500", 12345: "12.3k",
		2.5e6: "2.5M", 3e9: "3G", 0.0123: "0.0123",
	} {
		if got := Number(v); got != want {
			t.Errorf("%v: %q, expected %q", v, got, want)
		}
	}
}

// sample returns a flow with something for every plot.
func sample() *Flow {
	f := NewFlow(0, 4e9)
	f.near, f.located = [2]bool{true, true}, true
	for i := range 40 {
		at, n := machine.Instant(i)*1e8, int64(i)
		events := []machine.Event{{Kind: machine.EventSent, Sequence64: n, At: at, Ref: machine.MakeRef(0, uint64(2*i+1))}}
		switch {
		case i == 20:
			events = append(events, machine.Event{Kind: machine.EventLost, Sequence64: n - 5, At: at})
		case i == 25:
			events = append(events, machine.Event{Kind: machine.EventResent, Sequence64: n, At: at})
		case i >= 5:
			events = append(events, machine.Event{Kind: machine.EventAcked, Sequence64: n - 5, At: at, RTT: int64(40e6 + i*1e6)})
		}
		message := machine.Message{At: at, Sent: machine.At(at, machine.Certain), Arrived: machine.Span{
			From: at.Add(20 * time.Millisecond), To: at.Add(60 * time.Millisecond), Certainty: machine.Certain,
		}}
		f.Take(&analyze.Record{Events: events, Messages: []machine.Message{message, {At: at}}})
		f.Measure(machine.A, at, &machine.Summary{RTT: time.Duration(50+i/4) * time.Millisecond, Loss: float64(i) / 100})
		f.Spend(machine.A, at, 42, float64(i%3), 0, 100)
		f.Frame(machine.A, at, float64(16+i%5))
	}
	return f
}

// TestText compares a drawing in a terminal with one that was checked by eye.
func TestText(t *testing.T) {
	got := Text(sample().Plots(TimeSequence, machine.A, TextColumns(50)), 50, 8, nil)
	want := `Time–sequence, A sends
  ⠇ sent  ⠤ acked up to  R sent again  × lost
     40 ┤                                    ⢀⠠⠠⠐
        │                               ⢀⠠⠐⠐⠈⢀⡠⠔⠒
        │                          ⢀⠠⠐⠐⠈⢀⡠⠔⠒⠊⠁
        │                     ⢀⠠⠐⠈R⢀⡠⠔⠊⠉⠁
     20 ┤               ⡀⡀⠄⠂⠁×⢀⡠⠔⠊⠉⠁
        │          ⡀⠄⠄⠂⠁⣀⠤⠤⠒⠉⠉⠁
        │     ⡀⠄⠄⠂⠁⣀⠤⠤⠒⠉
      0 ┤⡀⠄⠂⠂⠁⣀⠤⠒⠒⠉
        └┬───────────────────┬───────────────────┬
        0 s                 2 s                4 s
`
	if got != want {
		t.Errorf("got\n%s\nexpected\n%s", got, want)
	}
	painted := Text(sample().Plots(TimeSequence, machine.A, TextColumns(50)), 50,
		8, func(class, text string) string { return "<" + class + ">" + text })
	for _, class := range []string{"sent", "acked", "again", "lost"} {
		if !strings.Contains(painted, "<"+class+">") {
			t.Errorf("nothing is painted as %s", class)
		}
	}
}

// TestArrivals: the bars are the bounds of the arrival, and the line is the estimate. A message
// whose arrival is unknown is no value.
func TestArrivals(t *testing.T) {
	p := sample().Plots(Arrivals, machine.A, 40)[0]
	if len(p.Traces) != 2 {
		t.Fatalf("%d traces, expected the bounds and the estimate", len(p.Traces))
	}
	for i, x := range p.Traces[0].Points {
		if line := p.Traces[1].Points[i]; x.Low != 20 || x.High != 60 || line.Low != 40 || line.High != 40 || x.N%2 != 0 {
			t.Fatalf("column %d: %v to %v ms of %d values, estimate %v to %v", i, x.Low, x.High, x.N, line.Low, line.High)
		}
	}
}

// TestSVG: every drawing is well-formed XML. It has a title and a description,
// and no coordinate is outside of it.
func TestSVG(t *testing.T) {
	f := sample()
	for _, name := range Names {
		plots := append(f.Plots(name, machine.A, 300), f.Plots(name, machine.B, 300)...)
		picture := SVG("a <title> & more", "what it shows", plots)
		d := xml.NewDecoder(bytes.NewReader(picture))
		elements := map[string]int{}
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if e, ok := token.(xml.StartElement); ok {
				elements[e.Name.Local]++
			}
		}
		if elements["title"] != 1 || elements["desc"] != 1 || elements["path"] == 0 || elements["g"] != len(plots) {
			t.Errorf("%s: %v", name, elements)
		}
		if bytes.Contains(picture, []byte("NaN")) || bytes.Contains(picture, []byte("Inf")) {
			t.Errorf("%s: a coordinate is no number", name)
		}
		for _, p := range plots {
			if p.Empty() {
				continue
			}
			for _, tr := range p.Traces {
				for _, x := range tr.Points {
					if px, py := p.x(x.At), p.y(x.High); px < svgLeft-1 || px > svgWidth-svgRight+1 || py < svgTop-1 ||
						py > svgTop+svgPlot+1 {
						t.Errorf("%s, %s: a point at %v, %v", name, tr.Name, px, py)
					}
				}
			}
			if !strings.HasSuffix(p.Summary(), ".") || !strings.Contains(p.Inline("x"), `aria-labelledby="x-t x-d"`) {
				t.Errorf("%s: its summary is %q", name, p.Summary())
			}
		}
	}
	if p := f.Plots(RoundTrip, machine.B, 100)[0]; !p.Empty() || p.Summary() != "Nothing was seen." {
		t.Errorf("B has a plot: %s", p.Summary())
	}
}

// TestAxisEnclosesData holds that the ends of an axis are ticks at or beyond the data, and that
// those of counts are whole.
func TestAxisEnclosesData(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 9))
	for range 5000 {
		low := math.Trunc(random.Float64() * 1000)
		high := low + math.Pow(10, 12*random.Float64()-4)
		whole := random.IntN(2) == 0
		p := Plot{Whole: whole}
		p.Low, p.High, p.Step = Axis(low, high, axisTicks, whole)
		list := p.ticks(2 + random.IntN(axisTicks))
		if len(list) < 2 || list[0] > low+1e-9*high || list[len(list)-1] < high*(1-1e-9) {
			t.Fatalf("%v to %v has the ticks %v", low, high, list)
		}
		for _, v := range list {
			if whole && v != math.Trunc(v) {
				t.Fatalf("%v to %v counts and has the tick %v", low, high, v)
			}
		}
	}
}

// TestJoinedColumns: a column that joins packets keeps the smallest and the
// greatest value, so no peak is lost.
func TestJoinedColumns(t *testing.T) {
	f := NewFlow(0, 1e12)
	for i := range 20000 {
		rtt := int64(30e6)
		if i == 12345 {
			rtt = 900e6
		}
		f.Take(&analyze.Record{
			Events: []machine.Event{{Kind: machine.EventAcked, Sequence64: int64(i), At: machine.Instant(i) * 5e7, RTT: rtt}},
		})
	}
	p := f.Plots(RoundTrip, machine.A, 200)[0]
	most := 0.0
	for _, x := range p.Traces[0].Points {
		most = max(most, x.High)
	}
	if !p.Joined || most != 900 || p.High < most || len(p.Traces[0].Points) != 200 {
		t.Errorf("joined %v, up to %v of %v ms in %d columns", p.Joined, most, p.High, len(p.Traces[0].Points))
	}
}

// TestPlace: the ends of arrows follow the tap's vantage.
func TestPlace(t *testing.T) {
	for _, c := range []struct {
		vantage         machine.Vantage
		from            machine.Side
		leaves, arrives machine.Instant
	}{
		{machine.VantageA, machine.A, 100, 130},
		{machine.VantageA, machine.B, 70, 100},
		{machine.VantageB, machine.A, 70, 100},
		{machine.VantageBoth, machine.A, 100, 100},
		{machine.VantageBetween, machine.A, 85, 115},
		{machine.VantageUnknown, machine.B, 85, 115},
	} {
		a := Arrow{From: c.from, Tap: 100}
		if Place(&a, c.vantage, 30); a.Leaves != c.leaves || a.Arrives != c.arrives {
			t.Errorf("%v from %v: %d to %d, expected %d to %d", c.vantage, c.from, a.Leaves, a.Arrives, c.leaves, c.arrives)
		}
	}
}
