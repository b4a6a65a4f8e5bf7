package listing

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/show"
)

// watch prints findings of live traffic.
func (p *FindingPrinter) watch(live *reader.LiveFlags, watch *reader.WatchFlags, from *reader.Recording) error {
	p.Filter.Begin(from)
	p.printed = nil
	if err := p.heading(); err != nil {
		return err
	}
	o, err := p.App.Options()
	if err != nil {
		return err
	}
	r, err := live.Begin(p.App, watch, from)
	if err != nil {
		return err
	}
	o.Sink = p.condition.Sink(from, nil)
	o.Gone = func(f *analyze.Flow, why analyze.Reason) {
		p.App.LetGo(f, why)
		p.condition.Flow(f)
		found := p.counted(f)
		for _, x := range found {
			delete(p.printed, x)
		}
		if r.Err != nil || len(found) == 0 {
			return
		}
		r.Screen.Clear()
		r.Err = p.flow(f, found)
	}
	return r.Show(o, p.Rows != nil, func() { p.tick(r) }, func(s *analyze.Session) error {
		p.condition.Session(s)
		return p.all(s)
	})
}

// tick shows the current findings.
func (p *FindingPrinter) tick(r *reader.Running) {
	if r.Screen != nil {
		r.Screen.Draw(p.table(r))
		return
	}
	if p.printed == nil {
		p.printed = map[*analyze.Finding]uint64{}
	}
	for _, f := range r.Session.Flows() {
		for _, x := range p.passed(f) {
			if p.printed[x] != x.Count && r.Err == nil {
				p.printed[x] = x.Count
				r.Err = p.Rows.Add(&export.FindingRow{Finding: x, File: p.Filter.From.File(x.Refs[0]), Provisional: true})
			}
		}
	}
}

// table formats the findings for which there is room: the gravest first, and of
// equal ones the newest.
func (p *FindingPrinter) table(r *reader.Running) []byte {
	width, height := r.Screen.Size()
	var all []*analyze.Finding
	for _, f := range r.Session.Flows() {
		all = append(all, p.passed(f)...)
	}
	slices.SortStableFunc(all, func(x, y *analyze.Finding) int {
		return cmp.Or(cmp.Compare(y.Rule.Severity, x.Rule.Severity), cmp.Compare(y.Last, x.Last))
	})
	first, last := r.Session.Span()
	var text strings.Builder
	head := fmt.Sprintf("%s · %s · %s · %s, %s", strings.Join(p.Filter.From.Paths, ", "),
		show.Plural(r.Session.Packets(), "packet"), show.SpanText(last.Sub(first)),
		show.Plural(r.Session.Begun(), "flow"), show.Plural(len(all), "finding"))
	text.Write(show.Fit([]byte(head), width))
	text.WriteString("\n\n")
	all = all[:min(len(all), max(1, height-4))]
	c := &app.Columns{
		Paint: p.paint, Fit: width,
		Heads: []string{"", "rule", "flow", "side", "count", "newest", "what"},
		Right: []bool{false, false, true, false, true, false, false},
	}
	_ = c.Render(&text, len(all), func(i int) { // writing to a buffer cannot fail
		x := all[i]
		c.Str(show.SeverityStyle(x.Rule.Severity), strings.ToUpper(x.Rule.Severity.String()))
		c.Str(show.Bold, x.Rule.ID)
		c.Add("", func(b []byte) []byte { return strconv.AppendInt(b, int64(x.Flow.ID), 10) })
		c.Add("", func(b []byte) []byte {
			return x.Flow.Addr(x.Side).AppendTo(append(append(b, x.Side.String()...), ' '))
		})
		c.Str("", show.Grouped(x.Count))
		c.Add(show.Dim, func(b []byte) []byte { return x.Last.Time().AppendFormat(b, "15:04:05") })
		c.Str("", x.Message())
	})
	return []byte(text.String())
}
