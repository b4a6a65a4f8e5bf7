package report

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"github.com/ackscope/ackscope/graph"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/show"
)

// Page is a page of several reports. Add writes each report at once, so that
// the caller need not keep it.
type Page struct {
	w        io.Writer
	html     htmlWriter
	name     string
	markdown bool
	reports  int // number of reports that the page will have
	added    int
}

// policy is what the page may do: run its own script, and be styled. It may ask for nothing.
var policy = func() string {
	sum := sha256.Sum256([]byte(pageScript))
	return "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}()

// NewPage begins a page of so many reports, in HTML or Markdown. name is its
// title.
func NewPage(w io.Writer, name string, markdown bool, reports int) (*Page, error) {
	p := &Page{w: printable.DocumentWriter(w), name: name, markdown: markdown, reports: reports}
	p.html.to = p.w
	if markdown || reports == 1 {
		return p, nil // the description of a single report is its verdict
	}
	return p, p.head(show.Plural(reports, "capture") + " of games, read packet by packet.")
}

// head begins a page in HTML.
func (p *Page) head(description string) error {
	p.html.head("ackscope report", policy, description, p.name+" – ackscope report", style)
	return p.html.flush()
}

// style is the style of the page: its colours in both themes, and of print.
var style = markup(":root{" + graph.Colours(false) + "}\n@media (prefers-color-scheme:dark){:root{" +
	graph.Colours(true) + "}}\n@media print{:root{" + graph.Colours(false) + "}}\n" + graph.Style + pageStyle)

// Add writes a report. The second and later reports of a page have anchors of
// their own.
func (p *Page) Add(r *Report) error {
	if p.added++; p.added > 1 {
		r.anchors = fmt.Sprintf("c%d-", p.added)
	}
	if !p.markdown {
		if p.reports == 1 {
			if err := p.head(r.Verdict()); err != nil {
				return err
			}
		}
		p.html.report(r.html(p.reports))
		return p.html.flush()
	}
	if p.added > 1 {
		if _, err := io.WriteString(p.w, "\n"); err != nil {
			return err
		}
	}
	return r.markdown(p.w)
}

// Close ends the page.
func (p *Page) Close() error {
	if p.markdown {
		return nil
	}
	p.html.foot()
	return p.html.flush()
}

// HTML writes the report as one self-contained page.
func (r *Report) HTML(w io.Writer) error { return r.alone(w, false) }

// Markdown writes the report for issues and wikis: the HTML page without its
// graphs.
func (r *Report) Markdown(w io.Writer) error { return r.alone(w, true) }

// alone writes a page of this report only.
func (r *Report) alone(w io.Writer, markdown bool) error {
	p, err := NewPage(w, r.Name, markdown, 1)
	if err != nil {
		return err
	}
	if err := p.Add(r); err != nil {
		return err
	}
	return p.Close()
}

// anchor returns the name of a flow's section in the page.
func (r *Report) anchor(flow int) string { return fmt.Sprintf("%sflow-%d", r.anchors, flow) }

// markdown writes the report's part of a page.
func (r *Report) markdown(w io.Writer) error {
	var b strings.Builder
	r.fillMarkdown(&b)
	_, err := io.WriteString(w, b.String())
	return err
}
