package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ackscope/ackscope/graph"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/rewrite/merge"
	"github.com/ackscope/ackscope/show"
)

// Between is what two captures show of the path between their taps. The flows
// of the report are those of tap A.
type Between struct {
	Merged *merge.Merged
	Names  [2]string // names of the captures

	pairs []*betweenPair
	graph int // columns of a drawn and of a zoomed graph; 0 for no graphs
	fine  int
}

// mostPairs limits the flows shown in full. mostDeaths limits the listed
// packets of one direction.
const (
	mostPairs  = 8
	mostDeaths = 400
)

// betweenPair is a flow that both taps saw.
type betweenPair struct {
	Pair  *merge.Pair
	Ways  [2]betweenWay
	Group htmlGroup
}

// betweenWay is one direction of a betweenPair.
type betweenWay struct {
	Title  string // "A → B"
	Way    *merge.Way
	Places []Row   // where packets died, and what happened to others
	Deaths []Death // packets that died between the taps
	More   int     // packets that are not listed
	delays *graph.Delays
}

// Death is a packet that died between the taps.
type Death struct {
	At    machine.Instant // time by A's clock
	Way   string          // "A → B"
	Tap   string          // the tap that saw it
	Frame machine.Ref     // its frame at that tap
}

// Exact formats a duration between two taps, with microseconds.
func Exact(d time.Duration) string {
	if d.Abs() >= 10*time.Second {
		return fmt.Sprintf("%.6f s", d.Seconds())
	}
	return fmt.Sprintf("%.3f ms", float64(d)/1e6)
}

// ClockText describes what is known of B's clock.
func ClockText(c *merge.Clock) string {
	if !c.Known {
		return "packets went one way only: the offset of the clocks is not known, and delays are above the least"
	}
	estimate := "three standard errors"
	if c.Proved {
		estimate = fmt.Sprintf("as far as causality bounds it: fewer than %d packets each way", merge.Matched)
	}
	word := "ahead of"
	if c.Offset < 0 {
		word = "behind"
	}
	return fmt.Sprintf("B's is %s %s A's when A's capture begins (± %s), and gains %.1f ppm (± %.1f, %s)",
		Exact(c.Offset.Abs()), word, Exact(c.Within), c.Drift*1e6, c.DriftWithin*1e6, estimate)
}

// LossOf returns the share of a direction's packets that died between the taps.
func LossOf(x *merge.Way) float64 {
	if of := x.Lost + x.Both + x.Missed; of > 0 {
		return float64(x.Lost) / float64(of)
	}
	return 0
}

// Verdict says how many packets died, flow by flow.
func (b *Between) Verdict() string {
	var parts []string
	for i, p := range b.Merged.Pairs {
		if i == mostPairs {
			parts = append(parts, fmt.Sprintf("and %s more", show.Plural(len(b.Merged.Pairs)-i, "flow")))
			break
		}
		var ways []string
		for _, s := range []machine.Side{machine.A, machine.B} {
			x := &p.Ways[s]
			if all := x.Lost + x.Both + x.Missed; all > 0 {
				ways = append(ways, fmt.Sprintf("%s of %s packets %s (%.2f %%)", show.Grouped(x.Lost), show.Grouped(all),
					wayTitle(s), 100*LossOf(x)))
			}
		}
		text := strings.Join(ways, ", ")
		if len(b.Merged.Pairs) > 1 {
			text = fmt.Sprintf("flow %d: %s", p.Flows[0].ID, text)
		}
		parts = append(parts, text)
	}
	return "Lost between the two captures: " + strings.Join(parts, "; ") + "."
}

// lost returns the number of packets that died between the taps.
func (b *Between) lost() (n uint64) {
	for _, p := range b.Merged.Pairs {
		n += p.Ways[0].Lost + p.Ways[1].Lost
	}
	return n
}

// Clock describes what is known of B's clock.
func (b *Between) Clock() string { return ClockText(&b.Merged.Clock) }

// Taps describes each capture.
func (b *Between) Taps() (rows []Row) {
	for i, t := range b.Merged.Taps {
		first, last := t.Session.Span()
		note := ""
		if n := b.Merged.Unfound[i]; n > 0 {
			note = show.Plural(n, "flow") + " that the other has nothing of"
		}
		rows = append(rows,
			Row{
				Name:  tapName(i),
				Cells: []string{b.Names[i], show.Plural(t.Session.Packets(), "packet"), show.SpanText(last.Sub(first)), note},
			})
	}
	return rows
}

func tapName(tap int) string { return string(rune('A' + tap)) }

func wayTitle(s machine.Side) string {
	return strings.ToUpper(s.String()) + " → " + strings.ToUpper(s.Other().String())
}

// More returns how many flows are not shown in full.
func (b *Between) More() int { return max(len(b.Merged.Pairs)-mostPairs, 0) }

// Pairs returns what the report shows of each flow.
func (b *Between) Pairs() []*betweenPair {
	if b.pairs != nil {
		return b.pairs
	}
	at := map[*merge.Pair]*betweenPair{}
	for _, p := range b.Merged.Pairs[:min(len(b.Merged.Pairs), mostPairs)] {
		x := &betweenPair{Pair: p}
		f := p.Flows[0].Flow
		for _, s := range []machine.Side{machine.A, machine.B} {
			x.Ways[s] = betweenWay{
				Title: wayTitle(s), Way: &p.Ways[s], Places: places(p, s),
				delays: graph.NewDelays(f.First, f.Last),
			}
		}
		at[p], b.pairs = x, append(b.pairs, x)
	}
	for q := range b.Merged.Passages() {
		if x := at[q.Pair]; x != nil {
			x.Ways[q.Side].take(&q)
		}
	}
	for i, x := range b.pairs {
		x.Group.Title = "One-way delay"
		for s := range x.Ways {
			w := &x.Ways[s]
			title := fmt.Sprintf("One-way delay %s, tap %s to tap %s", w.Title, tapName(x.Pair.First[s]),
				tapName(1-x.Pair.First[s]))
			plot, coarse := w.delays.Plot(title, max(b.fine, 1)), w.delays.Plot(title, max(b.graph, 1))
			if plot.Empty() {
				continue
			}
			x.Group.add(fmt.Sprintf("m%d-%d", i+1, s), plot, coarse, b.fine, true)
		}
	}
	return b.pairs
}

func (w *betweenWay) take(q *merge.Passage) {
	first := q.Pair.First[q.Side]
	switch q.Outcome {
	case "crossed":
		w.delays.Crossed(q.At, q.Delay, q.Frames[first])
	case "copy":
		w.delays.Copied(q.At, q.Delay, q.Frames[first])
	case "lost":
		w.delays.Lost(q.At, q.Frames[first])
		if len(w.Deaths) < mostDeaths {
			w.Deaths = append(w.Deaths, Death{q.At, w.Title, tapName(first), q.Frames[first]})
		} else {
			w.More++
		}
	}
}

// places lists where packets of a direction died, and what happened to others.
func places(p *merge.Pair, s machine.Side) (rows []Row) {
	x := &p.Ways[s]
	up, down := tapName(p.First[s]), tapName(1-p.First[s])
	for _, n := range []struct {
		name, doc string
		count     uint64
		grade     string
	}{
		{"seen at tap " + up, "", x.Upstream, ""},
		{"seen at tap " + down, "", x.Downstream, ""},
		{"lost before tap " + up, "numbers of the sender that neither tap saw", x.DiedBefore, "warn"},
		{
			"lost between the taps", "tap " + up + " captured it; tap " + down + " did not, though it recorded at that time",
			x.Lost, "warn",
		},
		{"of these, likely only", "the other tap has no packets any more there", x.LostAtEnds, ""},
		{"lost after tap " + down, "captured at both and never acknowledged: likely only", x.DiedAfter, "warn"},
		{"missed by tap " + down, "the receiver had it: the capture missed it, the network did not lose it", x.Missed, ""},
		{"doubled between them", "seen more often at the second tap", x.Copies, ""},
		{"overtaken", "came after one that was sent later", x.Reordered, ""},
		{"at tap " + down + " only", "missed by the first, or made between them", x.Unseen, ""},
		{"not decided", "the other tap may not have recorded at that time", x.Undecided + x.Outside, ""},
		{"one of several alike", "paired in the order in which they can have come", x.Ambiguous, ""},
	} {
		if n.count > 0 || n.doc == "" || n.name == "lost between the taps" {
			row := Row{Name: n.name, Cells: []string{show.Grouped(n.count), n.doc}}
			if n.count > 0 {
				row.Grade = n.grade
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// Delays returns the one-way delays, one row for each direction.
func (x *betweenPair) Delays() (rows []Row) {
	for s := range x.Ways {
		d := &x.Ways[s].Way.Delay
		if !d.Known {
			continue
		}
		var cells []string
		for _, v := range []time.Duration{d.Least, d.Median, d.P95, d.P99, d.Most} {
			cells = append(cells, Exact(v))
		}
		rows = append(rows, Row{Name: x.Ways[s].Title, Cells: cells})
	}
	return rows
}

// Ends names the flow at both taps.
func (x *betweenPair) Ends() string {
	p := x.Pair
	fa, fb := p.Flows[0], p.Flows[1]
	text := fmt.Sprintf("%s ⇄ %s", fa.A, fa.B)
	if a, b := p.AddrAtB(machine.A), p.AddrAtB(machine.B); a != fa.A || b != fa.B {
		text += fmt.Sprintf("; at tap B, as its flow %d, %s ⇄ %s", fb.ID, a, b)
	}
	return text
}

// Name returns the protocol of the flow.
func (x *betweenPair) Name() string { return show.FlowName(x.Pair.Flows[0].Flow) }

// ID returns the number of the flow at tap A.
func (x *betweenPair) ID() int { return x.Pair.Flows[0].ID }

// Deaths lists the packets of both directions that died, ordered by time.
func (x *betweenPair) Deaths() (rows []Row) {
	var list []Death
	for s := range x.Ways {
		list = append(list, x.Ways[s].Deaths...)
	}
	slices.SortStableFunc(list, func(a, b Death) int { return cmp.Compare(a.At, b.At) })
	for _, d := range list {
		rows = append(rows,
			Row{Cells: []string{d.At.Time().Format("15:04:05.000000"), d.Way, "tap " + d.Tap, show.Grouped(d.Frame.Frame())}})
	}
	return rows
}

// Unlisted returns how many packets died that are not listed.
func (x *betweenPair) Unlisted() int { return x.Ways[0].More + x.Ways[1].More }

// markdown writes the section.
func (b *Between) markdown(w *strings.Builder) {
	w.WriteString("\n## Between the taps\n\n")
	taps := b.Taps()
	table(w, []string{"tap", "capture", "packets", "time", ""},
		len(taps), func(i int) []string { return append([]string{taps[i].Name}, taps[i].Cells...) })
	fmt.Fprintf(w, "\nClocks: %s.\n", b.Clock())
	for _, x := range b.Pairs() {
		fmt.Fprintf(w, "\n### Flow %d: %s\n\n%s\n", x.ID(), plain(x.Name()), plain(x.Ends()))
		for s := range x.Ways {
			rows := x.Ways[s].Places
			w.WriteByte('\n')
			table(w, []string{x.Ways[s].Title, "packets", ""},
				len(rows), func(i int) []string { return append([]string{rows[i].Name}, rows[i].Cells...) })
		}
		if rows := x.Delays(); len(rows) > 0 {
			w.WriteByte('\n')
			table(w, []string{"one-way delay", "least", "median", "95 %", "99 %", "most"},
				len(rows), func(i int) []string { return append([]string{rows[i].Name}, rows[i].Cells...) })
		}
	}
	if n := b.More(); n > 0 {
		fmt.Fprintf(w, "\nAnd %s more.\n", show.Plural(n, "flow"))
	}
	w.WriteString("\nWhat follows is from the capture at tap A.\n")
}
