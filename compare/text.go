package compare

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/ackscope/ackscope/figures"
	"github.com/ackscope/ackscope/show"
)

// Headline sums up the comparison in one sentence.
func (r *Result) Headline() string {
	n := len(r.Real)
	for _, f := range r.Findings {
		if f.Real {
			n++
		}
	}
	switch {
	case r.Compared == 0:
		return "Nothing could be compared."
	case n == 0:
		return "No difference is larger than chance."
	case n == 1:
		return "1 difference is larger than chance."
	}
	return fmt.Sprintf("%d differences are larger than chance.", n)
}

// Grade is "worse", "better" or "other", of a real difference.
func (d *Difference) Grade() string {
	switch {
	case d.Worse():
		return "worse"
	case d.Better():
		return "better"
	}
	return "other"
}

// Sentence tells a finding in one sentence, without the period.
func (f *Finding) Sentence() string {
	return fmt.Sprintf("%s: %s %s: %s → %s", f.Way, f.Rule.ID, f.Kind(), show.Plural(f.Before, "time"),
		show.Plural(f.After, "time"))
}

// Describe describes one of the two sets of captures.
func (c *Capture) Describe() string {
	text := show.Plural(c.Flows, "flow") + " of a known protocol, " + show.SpanText(c.Span)
	if c.Recordings != 1 {
		text = show.Plural(c.Recordings, "capture") + ", " + text
	}
	return text
}

// Seen says what size of change would have been found, for the figures that matter most.
func (r *Result) Seen() []string {
	var list []string
	for _, d := range r.Table {
		if f := d.Figure; (f == figures.Loss || f == figures.Resends || f == figures.Arrival95 || f == figures.RTT) &&
			d.way != bothWays && !math.IsNaN(d.SeenFrom) {
			list = append(list, fmt.Sprintf("%s %s from %s", f, d.Way, f.Spec().Unit.Change(d.SeenFrom)))
		}
	}
	return list
}

// Text writes the comparison for a terminal of a width; 0 is any. names are those of the two
// sets.
func (r *Result) Text(w io.Writer, names [2]string, paint show.Painter, width int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "before  %s: %s\nafter   %s: %s\n\n", show.AppendClean(nil, names[0]), r.Before.Describe(),
		show.AppendClean(nil, names[1]), r.After.Describe())
	b.WriteString(paint.String(show.Bold, r.Headline()) + "\n")
	r.sentences(&b, paint, width)
	if seen := r.Seen(); len(r.Real) == 0 && len(seen) > 0 {
		b.WriteString(show.Wrap("These changes would have been found in four of five such pairs: "+
			strings.Join(seen, ", ")+".", "", width) + "\n")
	}
	for _, note := range r.Notes {
		b.WriteString(show.Wrap(note, "", width) + "\n")
	}
	for _, protocol := range r.Protocols() {
		rows := [][]string{{protocol, "", "before", "after", "change", "95% interval", ""}}
		for _, d := range r.Table {
			if d.Protocol == protocol {
				rows = append(rows, append([]string{d.Way}, d.Cells()...))
			}
		}
		writeRows(&b, rows, paint)
	}
	if len(r.Findings) > 0 {
		rows := [][]string{{"findings", "", "before", "after", "", "", ""}}
		for _, f := range r.Findings {
			rows = append(rows, append([]string{f.Way}, f.Cells()...))
		}
		writeRows(&b, rows, paint)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// sentences writes the differences that are real.
func (r *Result) sentences(b *strings.Builder, paint show.Painter, width int) {
	styles := map[string]show.Style{"worse": show.Red, "better": show.Green}
	several := len(r.Protocols()) > 1
	line := func(grade, protocol, text string) {
		if several {
			text = protocol + ", " + text
		}
		const indent = "          "
		text = strings.TrimPrefix(show.Wrap(text, indent, width), indent)
		fmt.Fprintf(b, "  %s  %s\n", paint.String(styles[grade], fmt.Sprintf("%-6s", grade)), text)
	}
	for _, d := range r.Real {
		line(d.Grade(), d.Protocol, d.Sentence())
	}
	for _, f := range r.Findings {
		switch {
		case f.Worse():
			line("worse", f.Protocol, f.Sentence())
		case f.Real:
			line("other", f.Protocol, f.Sentence())
		}
	}
}

// Cells returns the columns of the table: figure, before, after, change, interval, verdict.
func (d *Difference) Cells() []string {
	unit := d.Figure.Spec().Unit
	number := func(v float64, format func(float64) string) string {
		if math.IsNaN(v) {
			return "?"
		}
		return format(v)
	}
	verdict := d.Why
	switch {
	case d.Real:
		verdict = d.Grade()
	case verdict == "":
		verdict = "chance"
	}
	name := d.Figure.String()
	if d.Round {
		name += " there and back"
	}
	return []string{
		name, number(d.Before, unit.Format), number(d.After, unit.Format), number(d.Change, unit.Change),
		d.Interval(), verdict,
	}
}

// Cells returns the columns of the table of findings.
func (f *Finding) Cells() []string {
	verdict := f.Kind()
	switch {
	case f.Worse():
		verdict += ", worse"
	case f.Real, verdict == "as often":
	case math.IsNaN(f.Chance):
		verdict += ", chance unknown"
	default:
		verdict += ", chance"
	}
	return []string{f.Rule.ID, show.Grouped(f.Before), show.Grouped(f.After), f.Rule.Severity.String(), "", verdict}
}

// writeRows writes rows in columns, after an empty line. Columns of numbers are aligned to
// the right.
func writeRows(b *strings.Builder, rows [][]string, paint show.Painter) {
	var widths [7]int
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	b.WriteString("\n")
	for n, row := range rows {
		var line strings.Builder
		for i, text := range row {
			blanks := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
			switch {
			case widths[i] == 0:
			case i >= 2 && i <= 5:
				line.WriteString(blanks + text + "  ")
			default:
				line.WriteString(text + blanks + "  ")
			}
		}
		text := strings.TrimRight(line.String(), " ")
		if n == 0 {
			text = paint.String(show.Bold, text)
		}
		b.WriteString(text + "\n")
	}
}
