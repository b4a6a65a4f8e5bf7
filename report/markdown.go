package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/show"
)

// fillMarkdown writes the report's part of a page.
func (r *Report) fillMarkdown(b *strings.Builder) {
	if r.Between != nil {
		fmt.Fprintf(b, "# %s\n\n**%s**\n\nAt tap A: %s\n\n%s\n", plain(r.Name), r.Between.Verdict(), r.Verdict(),
			strings.Join(r.Facts(), " · "))
	} else {
		fmt.Fprintf(b, "# %s\n\n**%s**\n\n%s\n", plain(r.Name), r.Verdict(), strings.Join(r.Facts(), " · "))
	}
	if r.Problem != "" {
		fmt.Fprintf(b, "\nThe capture was not read to a clean end: %s\n", plain(r.Problem))
	}
	if r.Between != nil {
		r.Between.markdown(b)
	}
	if said := r.Logs.Sentences(); len(said) > 0 {
		b.WriteString("\n## The game's own log\n\n")
		for _, sentence := range said {
			b.WriteString("- " + plain(sentence) + ".\n")
		}
	}
	if points, more := r.Points(); len(points) > 0 {
		b.WriteString("\n## What stands out\n\n")
		for _, p := range points {
			fmt.Fprintf(b, "- **%s** %s\n", p.Grade, plain(p.Text))
			for _, at := range p.Where {
				fmt.Fprintf(b, "  - flow %d", at.Flow)
				for _, s := range []string{at.Who, at.Text, at.Sure} {
					if s != "" {
						b.WriteString(", " + plain(s))
					}
				}
				b.WriteByte('\n')
			}
			if p.More > 0 {
				fmt.Fprintf(b, "  - and %d more\n", p.More)
			}
		}
		if more > 0 {
			fmt.Fprintf(b, "- and %d more, with their flows below\n", more)
		}
	}
	for _, f := range r.Flows {
		r.markdownFlow(b, f)
	}
	if len(r.Others) > 0 {
		b.WriteString("\n## Further flows\n\n")
		table(b, []string{"#", "protocol", "A", "B", "packets A / B", ""}, len(r.Others), func(i int) []string {
			row := restOf(r.Others[i])
			return append([]string{row.Name}, row.Cells...)
		})
	}
	if r.More > 0 {
		fmt.Fprintf(b, "\n%s\n", r.MoreText())
	}
}

func (r *Report) markdownFlow(b *strings.Builder, f *Flow) {
	x := r.htmlFlow(f, 1, 1)
	fmt.Fprintf(b, "\n## Flow %s: %s\n\nA `%s` and B `%s`. %s Read as %s: %s.\n", x.Number(), plain(x.Name), f.A, f.B,
		plain(x.Tap), plain(x.Name), plain(x.Reason))
	if was := x.Continues(); was != "" {
		fmt.Fprintf(b, "%s.\n", plain(was))
	}
	if len(x.Story) > 0 {
		b.WriteString("\n### How it ended\n\n")
		for _, s := range x.Story {
			fmt.Fprintf(b, "%s\n", plain(s))
		}
	}
	b.WriteString("\n### Both sides\n\n")
	table(b, []string{"", "A", "B"},
		len(x.Figures), func(i int) []string { return append([]string{x.Figures[i].Name}, x.Figures[i].Cells...) })
	if len(x.Findings) > 0 {
		b.WriteString("\n### Findings\n\n")
		for _, y := range x.Findings {
			fmt.Fprintf(b, "- **%s** `%s` (%s), %s: %s. Frames %s\n", y.Rule.Severity, y.Rule.ID, y.Certainty,
				plain(x.Whose(y.Side)), plain(y.Message()), show.FrameList(y))
			if said := x.Log(y); said != "" {
				fmt.Fprintf(b, "  Log: %s\n", plain(said))
			}
		}
	}
	if all := append(x.Types, x.Further...); len(all) > 0 { //nolint:gocritic // both are this flow's own
		b.WriteString("\n### Messages\n\n")
		table(b, []string{
			"from", "type", "promised", "sent", "packets", "delivered", "not", "unknown", "arrival p50, ms",
			"p95", "at most p50", "p95", "waited", "wait max, ms",
		}, len(all), func(i int) []string {
			t := all[i]
			row := []string{
				strings.ToUpper(t.Side.String()), t.Name, t.Mode.String(), show.Grouped(t.Count),
				show.Grouped(t.Sends), show.Grouped(t.Delivered), show.Grouped(t.Missed), show.Grouped(t.Unknown), "?",
				"?", "?", "?", "", "",
			}
			if t.Arrival.N > 0 {
				row[8], row[9] = show.Millis(t.Arrival.At(0.5)), show.Millis(t.Arrival.At(0.95))
				row[10], row[11] = show.Millis(t.Most.At(0.5)), show.Millis(t.Most.At(0.95))
			}
			if t.Wait.N > 0 {
				row[12], row[13] = show.Grouped(t.Wait.N), show.Millis(t.Wait.Max)
			}
			return row
		})
	}
	if len(x.Held) > 0 {
		b.WriteString("\n### Longest head-of-line waits\n\n")
		table(b, []string{"from", "type", "id", "first in frame", "waited, ms", "arrived after", "for id"},
			len(x.Held), func(i int) []string {
				h := &x.Held[i]
				id := func(n int64) string {
					if n < 0 {
						return ""
					}
					return strconv.FormatInt(n, 10)
				}
				return []string{
					strings.ToUpper(h.Side.String()), h.Name, id(h.ID), strconv.FormatUint(h.Frame.Frame(), 10),
					show.Millis(h.Wait), h.Arrival, id(h.Blocker),
				}
			})
	}
	for i, c := range x.Costs {
		if i == 0 {
			b.WriteString("\n### What the bytes were for\n")
		}
		fmt.Fprintf(b, "\n%s, %s:", plain(c.Who), c.Total)
		for j, p := range c.Parts {
			if j > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(b, " %s %s", p.Share, p.Name)
		}
		b.WriteString("\n\n")
		table(b, []string{
			"type", "count", "copies", "bytes", "share", "goodput", "again", "acks", "header", "IP+UDP",
			"link",
		}, len(c.Rows), func(j int) []string {
			return append([]string{c.Rows[j].Name}, c.Rows[j].Cells...)
		})
	}
	if len(x.Replay) > 0 {
		b.WriteString("\n### Held against the reference\n\n")
		for _, v := range x.Replay {
			fmt.Fprintf(b, "- **%s** %s as %s: %s\n", v.Verdict, plain(v.Who), plain(v.Behaviour), plain(v.Note))
		}
	}
}

// table writes a table. It escapes the texts.
func table(b *strings.Builder, heads []string, rows int, row func(i int) []string) {
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + plain(c) + " ")
		}
		b.WriteString("|\n")
	}
	line(heads)
	b.WriteString(strings.Repeat("|---", len(heads)) + "|\n")
	for i := range rows {
		line(row(i))
	}
}

// plain escapes Markdown in the text of a capture, so that it makes no markup
// and no new line.
func plain(s string) string {
	var out []byte
	for _, c := range show.AppendClean(nil, s) {
		if strings.IndexByte("\\`*_{}[]<>#|!", c) >= 0 {
			out = append(out, '\\')
		}
		out = append(out, c)
	}
	return string(out)
}
