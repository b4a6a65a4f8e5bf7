package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/overview"
	"github.com/ackscope/ackscope/show"
)

// counts returns the findings of all flows by severity.
func (r *Report) counts() (n [machine.Error + 1]uint64) {
	n = r.LetGo.Findings
	for _, f := range r.Session.Flows() {
		for i, x := range show.Severities(f) {
			n[i] += x
		}
	}
	return n
}

// Grade returns the verdict as a word, for colours: error, warn, good, unknown.
func (r *Report) Grade() string {
	grade := r.grade()
	if r.Between != nil && r.Between.lost() > 0 && grade != "error" {
		return "warn"
	}
	return grade
}

// grade returns the verdict of the flows.
func (r *Report) grade() string {
	n := r.counts()
	switch {
	case n[machine.Error] > 0 || r.diverges() > 0:
		return "error"
	case n[machine.Warn] > 0 || r.silent() > 0:
		return "warn"
	case r.LetGo.Known == 0 &&
		!slices.ContainsFunc(r.Session.Flows(), func(f *analyze.Flow) bool { return f.Protocol != nil }):
		return "unknown"
	}
	return "good"
}

func (r *Report) diverges() (n int) {
	if r.Replay == nil {
		return 0
	}
	for i := range r.Replay.Results {
		if x := &r.Replay.Results[i]; x.Expected && x.Divergence != nil {
			n++
		}
	}
	return n
}

// silent returns the number of connections that ended without an announcement.
func (r *Report) silent() (n int) {
	for _, e := range r.Ends {
		if e.Silent {
			n++
		}
	}
	return n
}

// Verdict returns the first sentence: the worst trouble, and where its cause most likely lies.
// Flows that ended early for lack of memory only count.
func (r *Report) Verdict() string {
	if r.verdict == "" {
		r.verdict = r.newVerdict()
	}
	return r.verdict
}

func (r *Report) newVerdict() string {
	diagnosis := overview.New(&overview.Input{Session: r.Session, Replay: overview.NewVerdicts(r.Replay), Ends: r.Ends}, 1)
	text := diagnosis.Sentence()
	if len(diagnosis.Cause.Verdicts) > 0 {
		text += " " + diagnosis.Cause.Sentence()
	}
	var parts []string
	for _, s := range []machine.Severity{machine.Error, machine.Warn} {
		if n := r.LetGo.Findings[s]; n > 0 {
			parts = append(parts, show.Plural(n, show.SeverityNoun(s)))
		}
	}
	if len(parts) > 0 {
		text += " Flows that ended early have " + strings.Join(parts, " and ") + "."
	}
	return text
}

// Facts describes the capture in short phrases.
func (r *Report) Facts() []string {
	first, last := r.Session.Span()
	known := r.LetGo.Known
	for _, f := range r.Session.Flows() {
		if f.Protocol != nil {
			known++
		}
	}
	facts := []string{
		first.Time().Format("2006-01-02 15:04:05") + " UTC", show.SpanText(last.Sub(first)),
		show.Plural(r.Session.Packets(), "packet"),
		fmt.Sprintf("%s, %d of a known protocol", show.Plural(len(r.Session.Flows())+r.LetGo.Flows, "flow"), known),
	}
	if n := r.LetGo.Flows; n > 0 {
		facts = append(facts, show.Plural(n, "flow")+" ended early because memory ran out, and counted only")
	}
	if n := r.Session.Duplicates(); n > 0 {
		facts = append(facts, show.Plural(n, "packet")+" captured twice")
	}
	return facts
}

// Point is something that stands out: one rule, and all places where it fired.
type Point struct {
	Grade string // error, warn, note
	Text  string
	Where []Place
	More  int // number of places that are not listed
}

// Place is a flow and side that a point is about.
type Place struct {
	Flow int
	Link string // in the page; empty if the flow is not shown in full
	Who  string
	Text string // what happened there; empty if the point says it all
	Sure string // how certain the capture makes it
}

// Limits of the part before the flows: points, and places of each.
const (
	mostPoints = 12
	mostPlaces = 4
)

// Points lists what stands out, the gravest first.
func (r *Report) Points() (points []Point, more int) {
	points = r.contradicted(points)
	for _, grade := range []machine.Severity{machine.Error, machine.Warn} {
		byRule := map[*machine.Rule]int{}
		for _, f := range r.Session.Flows() {
			for _, x := range f.Findings() {
				if x.Rule.Severity != grade {
					continue
				}
				i, ok := byRule[x.Rule]
				if !ok {
					i = len(points)
					byRule[x.Rule] = i
					points = append(points, Point{Grade: grade.String(), Text: x.Rule.Summary})
				}
				at := Place{Flow: f.ID, Link: r.link(f.ID), Who: who(f, x.Side), Sure: x.Certainty.String()}
				if x.Rule.Say != nil {
					at.Text = x.Message()
				}
				points[i].at(at)
			}
		}
	}
	points = r.silenced(points)
	points = r.waited(points)
	if len(points) > mostPoints {
		return points[:mostPoints], len(points) - mostPoints
	}
	return points, 0
}

func (p *Point) at(x Place) {
	if len(p.Where) == mostPlaces {
		p.More++
		return
	}
	p.Where = append(p.Where, x)
}

// contradicted appends the sides that the reference contradicts.
func (r *Report) contradicted(points []Point) []Point {
	if r.diverges() == 0 {
		return points
	}
	p := Point{Grade: machine.Error.String(), Text: "packets that the reference would not have sent"}
	for i := range r.Replay.Results {
		x := &r.Replay.Results[i]
		if x.Expected && x.Divergence != nil {
			p.at(Place{
				Flow: x.Flow.ID, Link: r.link(x.Flow.ID), Who: who(x.Flow, x.Side), Sure: machine.Certain.String(),
				Text: fmt.Sprintf("as %s, frame %d: %s", x.Behaviour, x.Divergence.Ref.Frame(), x.Divergence.Because),
			})
		}
	}
	return append(points, p)
}

// silenced appends the connections that ended without an announcement.
func (r *Report) silenced(points []Point) []Point {
	p := Point{Grade: machine.Warn.String(), Text: "a connection ended without a goodbye"}
	for _, f := range r.Session.Flows() {
		if e, ok := r.Ends[f.ID]; ok && e.Silent && len(e.Story) > 0 {
			p.at(Place{Flow: f.ID, Link: r.link(f.ID), Text: e.Story[0]})
		}
	}
	if len(p.Where) > 0 {
		points = append(points, p)
	}
	return points
}

// waited appends the longest head-of-line waits.
func (r *Report) waited(points []Point) []Point {
	p := Point{Grade: machine.Note.String(), Text: "the longest head-of-line waits"}
	for _, f := range r.Flows {
		if held := r.Messages.Held(f.ID); len(held) > 0 {
			h := &held[0]
			p.at(Place{
				Flow: f.ID, Link: r.link(f.ID), Who: who(f.Flow, h.Side),
				Text: fmt.Sprintf("message %s had arrived and waited %s ms for an earlier one that was missing", h.Name,
					show.Millis(h.Wait)),
			})
		}
	}
	if len(p.Where) > 0 {
		points = append(points, p)
	}
	return points
}

// link returns the link to a flow's section. It returns "" if the flow is not
// shown in full.
func (r *Report) link(flow int) string {
	for _, f := range r.Flows {
		if f.ID == flow {
			return "#" + r.anchor(flow)
		}
	}
	return ""
}

func who(f *analyze.Flow, s machine.Side) string {
	return strings.ToUpper(s.String()) + " " + f.Addr(s).String()
}

// Row is one line of a table: its subject, and a cell for each column.
type Row struct {
	Name  string
	Cells []string
	Grade string // severity of the line; empty for none
}

// figures returns the known lines of a flow's table of both sides.
func figures(f *analyze.Flow) []Row {
	rows := []Row{
		{"packets", []string{show.Grouped(f.Packets[0]), show.Grouped(f.Packets[1])}, ""},
		{"payload bytes", []string{show.Grouped(f.Bytes[0]), show.Grouped(f.Bytes[1])}, ""},
	}
	a, ok := f.Summary(machine.A)
	b, _ := f.Summary(machine.B)
	if !ok {
		return rows
	}
	if v, known := f.Versions(machine.A); known {
		w, _ := f.Versions(machine.B)
		rows = append(rows, Row{"version, as its packets show", []string{show.VersionText(&v), show.VersionText(&w)}, ""})
	}
	both := func(name string, text func(*machine.Summary) string) {
		x, y := text(&a), text(&b)
		if (x == "–" || x == "" || x == "0") && (y == "–" || y == "" || y == "0") {
			return
		}
		rows = append(rows, Row{name, []string{x, y}, ""})
	}
	both("known to have arrived", func(s *machine.Summary) string { return show.Grouped(s.Acked) })
	both("never acked", func(s *machine.Summary) string { return show.Percent(s.NeverAcked) })
	both("loss, as it estimates it", func(s *machine.Summary) string { return show.Percent(s.Loss) })
	both("RTT, as it smooths it, ms", func(s *machine.Summary) string { return show.Millis(s.RTT) })
	both("from packet to ack where the capture was taken, ms",
		func(s *machine.Summary) string { return show.Millis(s.WireRTT) })
	both("sent again", func(s *machine.Summary) string { return show.Grouped(s.Resends) })
	both("refused as duplicates", func(s *machine.Summary) string { return show.Grouped(s.Duplicates) })
	both("refused as too old", func(s *machine.Summary) string { return show.Grouped(s.Stale) })
	both("peer's packets that never reached this capture",
		func(s *machine.Summary) string { return show.Grouped(s.Missing) })
	return rows
}
