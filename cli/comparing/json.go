package comparing

import (
	"bufio"
	"io"
	"math"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/compare"
	"github.com/ackscope/ackscope/figures"
)

// writeJSON writes one object.
func writeJSON(w io.Writer, r *compare.Result, names [2]string) error {
	var o app.Object
	o.Begin()
	for i, set := range []*compare.Capture{r.Before, r.After} {
		o.Key([]string{"before", "after"}[i])
		o.Inner(func() {
			o.Str("path", names[i])
			o.Uint("captures", uint64(set.Recordings))
			o.Uint("flows", uint64(set.Flows))
			o.Uint("other_flows", uint64(set.Other))
			o.Float("seconds", set.Span.Seconds(), 3)
		})
	}
	o.Str("headline", r.Headline())
	o.Uint("compared", uint64(r.Compared))
	o.Uint("worse", uint64(r.Worse()))
	differences := func(key string, list []*compare.Difference) {
		o.List(key, len(list), func(i int) { o.Inner(func() { difference(&o, list[i]) }) })
	}
	differences("differences", r.Real)
	differences("figures", r.Table)
	o.List("findings", len(r.Findings), func(i int) {
		f := r.Findings[i]
		o.Inner(func() {
			o.Str("protocol", f.Protocol)
			o.Str("way", f.Way)
			o.Str("rule", f.Rule.ID)
			o.Str("severity", f.Rule.Severity.String())
			o.Uint("before", f.Before)
			o.Uint("after", f.After)
			o.Str("kind", f.Kind())
			number(&o, "chance", f.Chance)
			o.Bool("real", f.Real)
		})
	})
	o.Texts("notes", r.Notes)
	to := bufio.NewWriter(w)
	if err := o.End(to); err != nil {
		return err
	}
	return to.Flush()
}

func difference(o *app.Object, d *compare.Difference) {
	unit := d.Figure.Spec().Unit
	scale, name := 1.0, "share"
	switch unit {
	case figures.Time:
		scale, name = 1e-6, "ms"
	case figures.Rate:
		name = "bytes/s"
	case figures.Share, figures.Count:
	}
	o.Str("protocol", d.Protocol)
	o.Str("way", d.Way)
	o.Word("type", d.Type)
	o.Str("figure", d.Figure.String())
	if d.Figure == figures.Loss {
		o.Bool("there_and_back", d.Round)
	}
	o.Str("unit", name)
	number(o, "before", d.Before*scale)
	number(o, "after", d.After*scale)
	number(o, "change", d.Change*scale)
	number(o, "change_least", d.Least*scale)
	number(o, "change_most", d.Most*scale)
	number(o, "seen_from", d.SeenFrom*scale)
	number(o, "chance", d.Chance)
	o.Bool("real", d.Real)
	if d.Real {
		o.Str("grade", d.Grade())
		o.Str("sentence", d.Sentence())
	}
}

// number writes a number, or null for one that is not known.
func number(o *app.Object, key string, v float64) {
	if math.IsNaN(v) {
		o.Null(key)
		return
	}
	o.Float(key, v, 6)
}
