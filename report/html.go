package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/gamelog"
	"github.com/ackscope/ackscope/graph"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// The parts of the page.
var (
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string
)

// html returns the contents of the page. reports is how many reports the page
// has.
func (r *Report) html(reports int) *htmlReport {
	x := &htmlReport{Report: r, Anchors: r.anchors, Heads: flowHeads, Log: r.Logs.Sentences()}
	x.Points, x.More = r.Points()
	graphs := len(r.Flows)
	if r.Between != nil {
		graphs += 1 + min(len(r.Between.Merged.Pairs), mostPairs)/4 // two graphs each instead of ten
	}
	static, fine := columnsFor(graphs * reports)
	if r.Between != nil {
		r.Between.graph, r.Between.fine = static, fine
	}
	explained := map[string]*analyze.Finding{}
	for _, f := range r.Flows {
		full := r.htmlFlow(f, static, fine)
		full.anchors, full.explained = r.anchors, explained
		for _, finding := range full.Findings {
			if explained[finding.Rule.ID] == nil {
				explained[finding.Rule.ID] = finding
			}
		}
		x.Full = append(x.Full, full)
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
	Heads   []string // of the list of flows
	Log     []string // what the game's own logs say
	Points  []Point
	More    int
	Full    []*htmlFlow
	Rest    []Row
	Skipped []string
}

type htmlFlow struct {
	logs      *gamelog.Report
	anchors   string
	explained map[string]*analyze.Finding // by rule: the first finding of the page
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
	g.Plots = append(g.Plots, htmlPlot{ID: id, SVG: markup(coarse.Inline(id)), Data: dataOf(p, columns, zero)})
	g.Doc = p.Doc
	if p.Joined {
		g.Fine = fmt.Sprintf("Each column stands for %s and shows the least and the greatest of what fell into it.",
			graph.Length(p.Column))
	}
}

type htmlPlot struct {
	SVG  markup
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
	Whole   bool        `json:"whole,omitempty"` // values are whole numbers
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
	graph.Line: "line", graph.Marks: "marks", graph.Area: "area", graph.Band: "band", graph.Shade: "shade",
}

// dataOf encodes a plot for the script.
func dataOf(p *graph.Plot, columns int, zero bool) plotData {
	d := plotData{Title: p.Title, Unit: p.Unit, Span: p.Span, Columns: columns, Zero: zero, Whole: p.Whole}
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

// flowHeads are the columns of the list of flows.
var flowHeads = []string{"", "protocol", "A", "B", "packets A→B / B→A", "loss A→B / B→A", "RTT ms", "findings"}

// Line returns what the list of flows tells of the flow. The loss is that of the path, as far as it
// is known; the RTT is the one that each side computes.
func (f *htmlFlow) Line() []string {
	loss, rtt := "–", "–"
	if a, ok := f.Summary(machine.A); ok {
		b, _ := f.Summary(machine.B)
		loss = show.LossText(f.Flow.Flow, machine.A) + " / " + show.LossText(f.Flow.Flow, machine.B)
		rtt = show.Millis(a.RTT) + " / " + show.Millis(b.RTT)
	}
	return []string{
		f.Name, f.A.String(), f.B.String(), show.Grouped(f.Packets[0]) + " / " + show.Grouped(f.Packets[1]), loss, rtt,
		severities(f.Flow.Flow),
	}
}

// severities counts the findings of a flow, the gravest first.
func severities(f *analyze.Flow) string {
	n := show.Severities(f)
	var parts []string
	for s := machine.Error; ; s-- {
		if n[s] > 0 {
			parts = append(parts, show.Plural(n[s], show.SeverityNoun(s)))
		}
		if s == machine.Note {
			break
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

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
				graph.Arrivals: "Arrival of messages",
				graph.Window:   "In flight and loss", graph.Spent: "Bandwidth", graph.FrameTimes: "Frames of the game",
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

// restOf returns the line of a flow that is not shown in full.
func restOf(f *analyze.Flow) Row {
	note := f.Verdict.Reason
	if f.Protocol != nil {
		note = severities(f)
	}
	return Row{
		Name: show.FlowNumber(f),
		Cells: []string{show.FlowName(f), f.A.String(), f.B.String(), show.Grouped(f.Packets[0]) + " / " +
			show.Grouped(f.Packets[1]), note},
	}
}

// Grade returns the class of a finding's severity.
func (f *htmlFlow) Grade(x *analyze.Finding) string { return x.Rule.Severity.String() }

// Explained is where the page explains the rule of a finding: its first finding of that rule.
func (f *htmlFlow) Explained(x *analyze.Finding) string { return f.anchors + "rule-" + x.Rule.ID }

// Paragraphs splits the explanation of a rule. It is empty where a finding above has it.
func (f *htmlFlow) Paragraphs(x *analyze.Finding) []string {
	if f.explained[x.Rule.ID] != x {
		return nil
	}
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
