package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/gamelog"
	"github.com/ackscope/ackscope/graph"
	"github.com/ackscope/ackscope/ledger"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay"
	"github.com/ackscope/ackscope/show"
)

// The parts of the page.
var (
	//go:embed page.html
	pageText string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string
)

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"upper":  func(s machine.Side) string { return strings.ToUpper(s.String()) },
	"count":  show.Grouped[uint64],
	"ms":     func(d time.Duration) string { return show.Millis(d) },
	"plural": func(n int, noun string) string { return show.Plural(n, noun) },
	"list":   func(g htmlGroup) []htmlGroup { return []htmlGroup{g} },
	"messages": func(types []*Type, waits bool) any {
		return struct {
			Types []*Type
			Waits bool
		}{types, waits}
	},
}).Parse(pageText))

// html returns the contents of the page. reports is how many reports the page
// has.
func (r *Report) html(reports int) *htmlReport {
	x := &htmlReport{Report: r, Anchors: r.anchors}
	x.Points, x.More = r.Points()
	graphs := len(r.Flows)
	if r.Between != nil {
		graphs += 1 + min(len(r.Between.Merged.Pairs), mostPairs)/4 // two graphs each instead of ten
	}
	static, fine := columnsFor(graphs * reports)
	if r.Between != nil {
		r.Between.graph, r.Between.fine = static, fine
	}
	for _, f := range r.Flows {
		x.Full = append(x.Full, r.htmlFlow(f, static, fine))
	}
	for _, f := range r.Others {
		x.Rest = append(x.Rest, restOf(f))
	}
	if r.Replay != nil {
		for i := range r.Replay.Skipped {
			x.Skipped = append(x.Skipped, fmt.Sprintf("flow %d: %s", r.Replay.Skipped[i].Flow.ID, r.Replay.Skipped[i].Reason))
		}
	}
	return x
}

// columnsFor returns the columns of drawn graphs and of zoomed ones. More flows
// get fewer columns, so that the page stays small.
func columnsFor(flows int) (static, fine int) {
	return min(max(2400/max(flows, 1), 200), 560), min(max(8000/max(flows, 1), 400), 2048)
}

type htmlReport struct {
	*Report
	Anchors string
	Points  []Point
	More    int
	Full    []*htmlFlow
	Rest    []Row
	Skipped []string
}

type htmlFlow struct {
	logs *gamelog.Report
	*Flow
	Name     string
	Reason   string
	Tap      string
	Figures  []Row
	Groups   []htmlGroup
	Types    []*Type // types shown at once, and the rest
	Further  []*Type
	Waits    bool // some message had to wait
	Held     []Held
	Findings []*analyze.Finding
	Costs    []htmlCost
	Story    []string
	Replay   []htmlReplay
}

// htmlGroup is the graphs of one kind. They are beside each other if there is
// room.
type htmlGroup struct {
	Title, Doc string
	Plots      []htmlPlot
	Fine       string // the time of one column
}

// add adds a plot to the group: p for zooming, coarse for the drawn graph.
func (g *htmlGroup) add(id string, p, coarse *graph.Plot, columns int, zero bool) {
	g.Plots = append(g.Plots, htmlPlot{ID: id, SVG: template.HTML(coarse.Inline(id)), Data: dataOf(p, columns, zero)}) //nolint:gosec // graph escapes what it writes
	g.Doc = p.Doc
	if p.Joined {
		g.Fine = fmt.Sprintf("Each column stands for %s and shows the least and the greatest of what fell into it.",
			graph.Length(p.Column))
	}
}

type htmlPlot struct {
	SVG  template.HTML
	Data plotData
	ID   string
}

// plotData is a plot for the script of the page. It contains only numbers. A
// column is stored as its distance from the previous one.
type plotData struct {
	Title   string      `json:"title"`
	Unit    string      `json:"unit"`
	Span    float64     `json:"span"`
	Columns int         `json:"columns"`
	Zero    bool        `json:"zero"`
	Traces  []traceData `json:"traces"`
}

type traceData struct {
	Name  string   `json:"name"`
	Class string   `json:"class"`
	Shape string   `json:"shape"`
	Sign  string   `json:"sign,omitempty"`
	Bare  bool     `json:"bare,omitempty"`
	X     []int    `json:"x"`
	Low   []number `json:"low,omitempty"`  // below High; absent if always equal
	High  []number `json:"high"`           //
	Last  []number `json:"last,omitempty"` // of levels
	N     []uint32 `json:"n,omitempty"`    // absent if always 1
	Frame []int64  `json:"frame,omitempty"`
}

// number is a number with only the digits that a graph needs.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	v := float64(n)
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("0"), nil
	}
	digits := 5 - int(math.Ceil(math.Log10(math.Abs(v))))
	scale := math.Pow10(min(max(digits, 0), 6))
	return strconv.AppendFloat(nil, math.Round(v*scale)/scale, 'f', -1, 64), nil
}

var shapeWords = map[graph.Shape]string{
	graph.Bars: "bars", graph.Steps: "steps", graph.Levels: "levels",
	graph.Line: "line", graph.Marks: "marks", graph.Area: "area",
}

// dataOf encodes a plot for the script.
func dataOf(p *graph.Plot, columns int, zero bool) plotData {
	d := plotData{Title: p.Title, Unit: p.Unit, Span: p.Span, Columns: columns, Zero: zero}
	for i := range p.Traces {
		t := &p.Traces[i]
		x := traceData{Name: t.Name, Class: t.Class, Shape: shapeWords[t.Shape], Sign: t.Sign, Bare: t.Bare}
		before, frame, ranged, several, framed := 0, int64(0), false, false, false
		for _, q := range t.Points {
			column := min(max(int(q.At/p.Span*float64(columns)), 0), columns-1)
			x.X = append(x.X, column-before)
			before = column
			x.High = append(x.High, number(q.High))
			x.Low = append(x.Low, number(q.High-q.Low))
			x.N = append(x.N, q.N)
			if t.Shape == graph.Levels {
				x.Last = append(x.Last, number(q.Last))
			}
			n := int64(q.Ref.Frame())
			x.Frame = append(x.Frame, n-frame)
			frame = n
			ranged, several, framed = ranged || q.High != q.Low, several || q.N > 1, framed || q.Ref != 0
		}
		if !ranged {
			x.Low = nil
		}
		if !several {
			x.N = nil
		}
		if !framed {
			x.Frame = nil
		}
		d.Traces = append(d.Traces, x)
	}
	return d
}

// Number returns the flow's number, and that of the flow whose connection it continues.
func (f *htmlFlow) Number() string { return show.FlowNumber(f.Flow.Flow) }

// Continues says which flow it continues, and what shows it; empty if none is known.
func (f *htmlFlow) Continues() string { return show.WasText(f.Flow.Flow) }

// Log returns what the game's own log says of a finding; empty if nothing.
func (f *htmlFlow) Log(x *analyze.Finding) string {
	e, ok := f.logs.Finding(x)
	if !ok {
		return ""
	}
	return e.String()
}

func (r *Report) htmlFlow(f *Flow, static, fine int) *htmlFlow {
	x := &htmlFlow{
		logs: r.Logs, Flow: f, Name: show.FlowName(f.Flow), Reason: f.Verdict.Reason, Figures: figures(f.Flow),
		Types: r.Messages.Types(f.ID), Held: r.Messages.Held(f.ID), Findings: f.Findings(), Story: r.Ends[f.ID].Story,
	}
	x.Tap = tapText(f.Flow)
	for _, t := range x.Types {
		x.Waits = x.Waits || t.Wait.N > 0
	}
	x.Types, x.Further = divide(x.Types)
	for _, kind := range graph.Names {
		g := htmlGroup{}
		for _, side := range []machine.Side{machine.A, machine.B} {
			coarse := f.Series.Plots(kind, side, static)
			for i, p := range f.Series.Plots(kind, side, fine) {
				if p.Empty() || i >= len(coarse) {
					continue
				}
				columns := fine
				if kind == graph.Spent {
					columns = min(fine, graph.SpentColumns)
				}
				g.add(fmt.Sprintf("%sf%d-%s-%s-%d", r.anchors, f.ID, kind, side, i), p, coarse[i], columns,
					kind != graph.TimeSequence)
			}
		}
		if len(g.Plots) > 0 {
			g.Title = map[string]string{
				graph.TimeSequence: "Time and sequence", graph.RoundTrip: "Round-trip time",
				graph.Window: "In flight and loss", graph.Spent: "Bandwidth", graph.FrameTimes: "Frames of the game",
			}[kind]
			x.Groups = append(x.Groups, g)
		}
	}
	if f.Cost != nil {
		for side := range f.Cost.Sides {
			if c := costOf(f, machine.Side(side)); len(c.Rows) > 0 {
				x.Costs = append(x.Costs, c)
			}
		}
	}
	if r.Replay != nil {
		for i := range r.Replay.Results {
			if v := &r.Replay.Results[i]; v.Flow.ID == f.ID && v.Expected {
				x.Replay = append(x.Replay, replayOf(v))
			}
		}
	}
	return x
}

// mostMessages is how many types of messages of a side are shown at once.
const mostMessages = 10

// divide splits the types, which are ordered by side and count. first has the
// most frequent of each side.
func divide(all []*Type) (first, rest []*Type) {
	var n [2]int
	for _, t := range all {
		if n[t.Side]++; n[t.Side] <= mostMessages {
			first = append(first, t)
		} else {
			rest = append(rest, t)
		}
	}
	if len(rest) <= 3 {
		return all, nil
	}
	return first, rest
}

func tapText(f *analyze.Flow) string {
	switch v := f.Facts().Vantage; v {
	case machine.VantageA, machine.VantageB:
		side := machine.A
		if v == machine.VantageB {
			side = machine.B
		}
		return fmt.Sprintf("%s (%s) was captured here: the capture shows what it sent and received. What the other side "+
			"received is inferred from its acks.", strings.ToUpper(v.String()), f.Addr(side))
	case machine.VantageBoth:
		return "Both sides were captured here: the capture shows what each sent and received."
	case machine.VantageBetween:
		return "The capture was taken between the sides: what each received is inferred from its acks."
	case machine.VantageUnknown:
	}
	return "Where the capture was taken is not known: what each side received is inferred from its acks."
}

// htmlCost is the ledger of one side.
type htmlCost struct {
	Who   string
	Total string
	Parts []htmlPart
	Rows  []Row
	More  int
}

// htmlPart is a part of the bar that shows what bytes were spent on.
type htmlPart struct {
	Name, Class, Share string
	Percent            float64
}

// mostCosts limits the types in a side's ledger.
const mostCosts = 16

func costOf(f *Flow, side machine.Side) htmlCost {
	s := &f.Cost.Sides[side]
	rows, sum := s.Rows(), s.Total()
	c := htmlCost{Who: who(f.Flow, side), Total: show.Bytes(sum.Total())}
	for _, p := range []struct {
		name, class string
		bits        uint64
	}{
		{"goodput", "goodput", sum.Goodput},
		{"sent again", "again", sum.Resent},
		{"acks", "acks", sum.Acks},
		{"protocol's headers", "header", sum.Header},
		{"IP and UDP or TCP", "ip", sum.IP + sum.Transport},
		{"link", "link", sum.Link},
	} {
		if p.bits > 0 {
			c.Parts = append(c.Parts,
				htmlPart{p.name, p.class, show.Share(p.bits, sum.Total()), 100 * float64(p.bits) / float64(sum.Total())})
		}
	}
	var rest ledger.Row
	for i, row := range rows {
		if i < mostCosts {
			c.Rows = append(c.Rows, costRow(row, row.Type, sum.Total()))
			continue
		}
		c.More++
		rest.Count += row.Count
		rest.Copies += row.Copies
		rest.Add(&row.Cost)
	}
	if c.More > 0 {
		c.Rows = append(c.Rows, costRow(&rest, show.Plural(c.More, "further type"), sum.Total()))
	}
	return c
}

func costRow(r *ledger.Row, name string, whole uint64) Row {
	again := ""
	if r.Copies > 0 {
		again = show.Grouped(r.Copies)
	}
	return Row{Name: name, Cells: []string{
		show.Grouped(r.Count), again, show.Octets(r.Total()), show.Share(r.Total(), whole),
		show.Octets(r.Goodput), show.Octets(r.Resent), show.Octets(r.Acks), show.Octets(r.Header),
		show.Octets(r.IP + r.Transport), show.Octets(r.Link),
	}}
}

type htmlReplay struct {
	Who, Behaviour, Verdict, Note string
	Divergence                    *machine.Divergence
}

func replayOf(x *replay.Result) htmlReplay {
	h := htmlReplay{Who: who(x.Flow, x.Side), Behaviour: x.Behaviour, Verdict: x.Verdict(), Divergence: x.Divergence}
	switch {
	case x.Divergence != nil:
		d := x.Divergence
		h.Note = fmt.Sprintf("frame %d, %s: %s expected, %s found. %s", d.Ref.Frame(), d.Field, d.Expected, d.Got, d.Because)
	case x.Undecided > 0:
		h.Note = fmt.Sprintf("nothing contradicts it; %s of %s could not be decided from here", show.Grouped(x.Undecided),
			show.Plural(x.Compared, "packet"))
	default:
		h.Note = "all of its " + show.Plural(x.Compared, "packet") + " are as the reference would have sent them"
	}
	return h
}

// restOf returns the line of a flow that is not shown in full.
func restOf(f *analyze.Flow) Row {
	note := f.Verdict.Reason
	if f.Protocol != nil {
		n := show.Severities(f)
		note = fmt.Sprintf("%d errors, %d warnings, %d notes", n[machine.Error], n[machine.Warn], n[machine.Note])
	}
	return Row{
		Name: show.FlowNumber(f),
		Cells: []string{show.FlowName(f), f.A.String(), f.B.String(), show.Grouped(f.Packets[0]) + " / " +
			show.Grouped(f.Packets[1]), note},
	}
}

// Grade returns the class of a finding's severity.
func (f *htmlFlow) Grade(x *analyze.Finding) string { return x.Rule.Severity.String() }

// Paragraphs splits the explanation of a rule.
func (f *htmlFlow) Paragraphs(x *analyze.Finding) []string {
	return strings.Split(x.Rule.Explain, "\n\n")
}

// Frames names the frames that show a finding.
func (f *htmlFlow) Frames(x *analyze.Finding) string { return show.FrameList(x) }

// Whose names the side of a finding.
func (f *htmlFlow) Whose(s machine.Side) string { return who(f.Flow.Flow, s) }

// Loudest returns the class of the flow's gravest finding.
func (f *htmlFlow) Loudest() string {
	for _, x := range f.Findings {
		return x.Rule.Severity.String() // findings are ordered by severity
	}
	return "good"
}

var _ json.Marshaler = number(0)
