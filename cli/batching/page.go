package batching

import (
	"cmp"

	"github.com/ackscope/ackscope/batch/baseline"
	"github.com/ackscope/ackscope/report"
)

// page returns what the page of a comparison tells.
func page(r *baseline.Result) *report.Changes {
	p := &report.Changes{
		Names: [2]string{r.Before.Name, r.After.Name}, Facts: [2]string{r.Before.Describe(), r.After.Describe()},
		Headline: r.Headline(), Worse: r.Worse() > 0, Notes: r.Notes,
	}
	rules := report.ChangeTable{
		Title: "Rules, of 1,000 flows", First: 3, Last: 6,
		Heads: []string{"", "rule", "severity", "#before", "#after", "#change", "#95 % interval", ""},
	}
	for _, x := range r.Rules {
		if x.Real() {
			p.Points = append(p.Points, report.Change{
				Worse: x.Worse(), Verdict: x.Verdict(), Sentence: x.Sentence(),
				Where: "for example " + cmp.Or(x.Example.Capture, "none"),
			})
		}
		rules.Rows = append(rules.Rows, append([]string{x.Protocol}, x.Cells()...))
	}
	figures := report.ChangeTable{
		Title: "Figures of both sides of each flow", First: 2, Last: 6,
		Heads: []string{"", "figure", "#median before", "#after", "#p95 before", "#after", "#distance", ""},
	}
	for _, x := range r.Figures {
		if x.Real() {
			p.Points = append(p.Points, report.Change{
				Worse: x.Worse(), Verdict: x.Verdict(), Sentence: x.Sentence(), Where: x.Protocol,
			})
		}
		figures.Rows = append(figures.Rows, append([]string{x.Protocol}, x.Cells()...))
	}
	for _, t := range []report.ChangeTable{rules, figures} {
		if len(t.Rows) > 0 {
			p.Tables = append(p.Tables, t)
		}
	}
	return p
}
