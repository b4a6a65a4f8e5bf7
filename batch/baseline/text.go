package baseline

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/show"
)

// Headline says in one sentence what was found.
func (r *Result) Headline() string {
	switch n := r.Real(); {
	case len(r.Rules)+len(r.Figures) == 0:
		return "Nothing could be compared."
	case n == 0:
		return fmt.Sprintf("No difference is larger than chance, of %d compared.", len(r.Rules)+len(r.Figures))
	case n == 1:
		return fmt.Sprintf("1 difference is larger than chance, of %d compared.", len(r.Rules)+len(r.Figures))
	default:
		return fmt.Sprintf("%d differences are larger than chance, of %d compared.", n, len(r.Rules)+len(r.Figures))
	}
}

// Describe says what a set holds.
func (s *Set) Describe() string {
	return fmt.Sprintf("%s: %s read, %s of a known protocol", s.Name, show.Plural(s.Analysed(), "capture"),
		show.Plural(s.Flows(), "flow"))
}

// Sentence says what changed of a rule.
func (r *Rule) Sentence() string {
	what := map[string]string{
		"new": " is new", "gone": " is gone", "more": " is more frequent", "less": " is less frequent",
	}[r.Kind()]
	return fmt.Sprintf("%s: %s%s: %s → %s of 1,000 flows (%s, 95%% interval %s to %s)", r.Protocol, r.Rule, what,
		number(r.Before.Rate), number(r.After.Rate), signed(r.Change), signed(r.Least), signed(r.Most))
}

// Sentence says how a figure is distributed now.
func (f *Figure) Sentence() string {
	return fmt.Sprintf("%s: %s is distributed otherwise: median %s → %s, p95 %s → %s (distance %s)", f.Protocol, f.Name,
		number(f.Before.Median), number(f.After.Median), number(f.Before.P95), number(f.After.P95), number(f.Distance))
}

// Cells returns the texts of a row of a table: rule, severity, before, after, change, interval and verdict.
func (r *Rule) Cells() []string {
	return []string{
		printable.String(r.Rule), printable.String(r.Severity), rateText(&r.Before), rateText(&r.After), signed(r.Change),
		signed(r.Least) + " to " + signed(r.Most), r.Verdict(),
	}
}

func rateText(x *Rate) string { return fmt.Sprintf("%s (%d of %d)", number(x.Rate), x.Flows, x.Of) }

// Cells returns the texts of a row of a table: figure, medians, 95 % quantiles, distance and verdict.
func (f *Figure) Cells() []string {
	return []string{
		f.Name, number(f.Before.Median), number(f.After.Median), number(f.Before.P95), number(f.After.P95),
		number(f.Distance), f.Verdict(),
	}
}

// number formats a figure with three digits that count.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "?"
	case math.IsInf(v, 0):
		return "more"
	case math.Abs(v) >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func signed(v float64) string {
	if text := number(v); v < 0 || text == "?" {
		return text
	} else {
		return "+" + text
	}
}

// Text writes the comparison for a terminal.
func (r *Result) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "before  %s\nafter   %s\n\n%s\n", printable.String(r.Before.Describe()),
		printable.String(r.After.Describe()), r.Headline())
	for _, x := range r.Rules {
		if x.Real() {
			fmt.Fprintf(&b, "  %-7s %s\n", x.Verdict(), printable.String(x.Sentence()))
		}
	}
	for _, x := range r.Figures {
		if x.Real() {
			fmt.Fprintf(&b, "  %-7s %s\n", x.Verdict(), printable.String(x.Sentence()))
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintln(&b, printable.String(note))
	}
	t := tabwriter.NewWriter(&b, 0, 1, 2, ' ', 0)
	if len(r.Rules) > 0 {
		fmt.Fprint(t, "\nof 1,000 flows\trule\tseverity\tbefore\tafter\tchange\t95% interval\t\n")
		for _, x := range r.Rules {
			fmt.Fprintf(t, "%s\t%s\n", printable.String(x.Protocol), strings.Join(x.Cells(), "\t"))
		}
		_ = t.Flush() // to a strings.Builder
	}
	if len(r.Figures) > 0 {
		fmt.Fprint(t, "\nof each side\tfigure\tmedian\t\tp95\t\tdistance\t\n")
		for _, x := range r.Figures {
			fmt.Fprintf(t, "%s\t%s\n", printable.String(x.Protocol), strings.Join(x.Cells(), "\t"))
		}
		_ = t.Flush()
	}
	_, err := io.WriteString(w, b.String())
	return err
}
