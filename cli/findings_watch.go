package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/show"
)

// watch prints findings of traffic as it comes.
func (p *findingPrinter) watch(live *liveFlags, watch *watchFlags, from *recording) error {
	p.ask.begin(from)
	p.told = nil
	if err := p.heading(); err != nil {
		return err
	}
	o, err := p.app.options()
	if err != nil {
		return err
	}
	r, err := live.begin(p.app, watch, from)
	if err != nil {
		return err
	}
	o.Gone = func(f *analyze.Flow, why analyze.Reason) {
		p.app.letGo(f, why)
		found := p.counted(f)
		for _, x := range found {
			delete(p.told, x)
		}
		if r.err != nil || len(found) == 0 {
			return
		}
		r.screen.clear()
		r.err = p.flow(f, found)
	}
	return r.show(o, p.rows != nil, func() { p.tick(r) }, p.all)
}

// tick shows the findings as they are now.
func (p *findingPrinter) tick(r *running) {
	if r.screen != nil {
		r.screen.draw(p.table(r))
		return
	}
	if p.told == nil {
		p.told = map[*analyze.Finding]uint64{}
	}
	for _, f := range r.session.Flows() {
		for _, x := range p.passed(f) {
			if p.told[x] != x.Count && r.err == nil {
				p.told[x] = x.Count
				r.err = p.rows.Add(&export.FindingRow{Finding: x, File: p.ask.from.file(x.Refs[0]), Provisional: true})
			}
		}
	}
}

// table draws the findings that there is room for: the gravest, and of those the newest.
func (p *findingPrinter) table(r *running) []byte {
	width, height := r.screen.size()
	var all []*analyze.Finding
	for _, f := range r.session.Flows() {
		all = append(all, p.passed(f)...)
	}
	slices.SortStableFunc(all, func(x, y *analyze.Finding) int {
		return cmp.Or(cmp.Compare(y.Rule.Severity, x.Rule.Severity), cmp.Compare(y.Last, x.Last))
	})
	first, last := r.session.Span()
	var text strings.Builder
	head := fmt.Sprintf("%s · %s · %s · %s, %s", strings.Join(p.ask.from.paths, ", "), show.Plural(r.session.Packets(), "packet"), show.SpanText(last.Sub(first)),
		show.Plural(r.session.Begun(), "flow"), show.Plural(len(all), "finding"))
	text.Write(show.Fit([]byte(head), width))
	text.WriteString("\n\n")
	all = all[:min(len(all), max(1, height-4))]
	c := &columns{
		paint: p.paint, fit: width,
		heads: []string{"", "rule", "flow", "side", "count", "newest", "what"},
		right: []bool{false, false, true, false, true, false, false},
	}
	_ = c.render(&text, len(all), func(i int) { // a builder does not fail
		x := all[i]
		c.str(show.SeverityStyle(x.Rule.Severity), strings.ToUpper(x.Rule.Severity.String()))
		c.str(bold, x.Rule.ID)
		c.add("", func(b []byte) []byte { return strconv.AppendInt(b, int64(x.Flow.ID), 10) })
		c.add("", func(b []byte) []byte {
			return x.Flow.Addr(x.Side).AppendTo(append(append(b, x.Side.String()...), ' '))
		})
		c.str("", show.Grouped(x.Count))
		c.add(dim, func(b []byte) []byte { return x.Last.Time().AppendFormat(b, "15:04:05") })
		c.str("", x.Message())
	})
	return []byte(text.String())
}
