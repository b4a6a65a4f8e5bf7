package graph

import (
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// painted returns a plot as text and as SVG.
func painted(p *Plot) (text, svg string) {
	return Text([]*Plot{p}, 80, 12, nil), string(SVG("t", "d", []*Plot{p}))
}

// Areas are told apart without colours: by their dots in a terminal, by their outlines in an SVG.
func TestAreasWithoutColours(t *testing.T) {
	f := NewFlow(0, machine.Instant(10*time.Second))
	for i := range 100 {
		f.Spend(machine.A, machine.Instant(i)*machine.Instant(100*time.Millisecond), 10, 20, 30, 40)
	}
	text, svg := painted(f.Plots(Spent, machine.A, 100)[0])
	signs := map[string]bool{}
	for _, name := range []string{"goodput", "sent again", "acks", "headers"} {
		before, _, ok := strings.Cut(text, " "+name)
		if !ok {
			t.Fatalf("the legend does not have %s:\n%s", name, text)
		}
		sign := []rune(before)
		signs[string(sign[len(sign)-1])] = true
	}
	if len(signs) != 4 {
		t.Errorf("four areas have %d signs:\n%s", len(signs), text)
	}
	for _, class := range []string{"again", "acks", "headers"} {
		if !strings.Contains(svg, ".area."+class+"{stroke-dasharray:") || !strings.Contains(svg, `class="t area `+class+`"`) {
			t.Errorf("the area of %s has no outline of its own", class)
		}
	}
}

// The loss on the way is drawn where the library computes none.
func TestLossWithoutEstimate(t *testing.T) {
	f := NewFlow(0, machine.Instant(10*time.Second))
	sum := machine.Summary{RTT: -1, Loss: -1}
	for i := range uint64(100) {
		sum.Bounds = machine.LossBounds{Sent: i + 1, Least: i / 10, Most: i / 4, Certainty: machine.Certain}
		f.Measure(machine.A, machine.Instant(i)*machine.Instant(100*time.Millisecond), &sum)
	}
	plots := f.Plots(Window, machine.A, 100)
	p := plots[len(plots)-1]
	if p.Name != "loss" || len(p.Traces) != 1 || p.Traces[0].Shape != Band {
		t.Fatalf("%s with %d traces, expected a band of the loss", p.Name, len(p.Traces))
	}
	last := p.Traces[0].Points[len(p.Traces[0].Points)-1]
	if last.Low != 0.09 || last.High != 0.24 {
		t.Errorf("at the end the loss is between %v and %v, expected 0.09 and 0.24", last.Low, last.High)
	}
	if _, svg := painted(p); !strings.Contains(svg, `class="t band raw"`) {
		t.Error("the SVG has no band")
	}
}
