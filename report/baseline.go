package report

import (
	"io"

	"github.com/ackscope/ackscope/printable"
)

// Changes is what a page tells of two runs over many captures.
type Changes struct {
	Names    [2]string // before and after
	Facts    [2]string // what each holds
	Headline string
	Worse    bool // something is
	Notes    []string
	Points   []Change
	Tables   []ChangeTable
}

// Change is a difference that is told in a sentence.
type Change struct {
	Worse                    bool
	Verdict, Sentence, Where string
}

// ChangeTable is a table of differences. A head that begins with "#" is of numbers.
type ChangeTable struct {
	Title       string
	Heads       []string
	First, Last int // the columns of numbers
	Rows        [][]string
}

// Baseline writes a comparison of two runs over many captures as one self-contained page.
func Baseline(w io.Writer, r *Changes) error {
	h := &htmlWriter{to: printable.DocumentWriter(w)}
	grade := "note"
	if r.Worse {
		grade = "warn"
	}
	h.head("ackscope batch", "", "", r.Names[0]+" and "+r.Names[1]+" compared", style)
	h.put(`<header class="top {}">
<p class="file">{} → {}</p>
<h1><span class="badge" aria-hidden="true"></span>{}</h1>
<p class="facts">before: {} · after: {}</p>
`, grade, r.Names[0], r.Names[1], r.Headline, r.Facts[0], r.Facts[1])
	for _, note := range r.Notes {
		h.put("<p>{}</p>\n", note)
	}
	h.put("</header>\n")
	h.changes(r.Points)
	for _, t := range r.Tables {
		h.put("\n"+`<section class="card"><h2>{}</h2>`+"\n", t.Title)
		h.begin(t.Heads...)
		for _, row := range t.Rows {
			h.put("<tr>")
			h.cells(row, t.First, t.Last)
			h.put("</tr>\n")
		}
		h.end()
		h.put("\n</section>\n")
	}
	h.put(`
<section class="card words"><h2>Words</h2>
<dl>
<dt>of 1,000 flows</dt><dd>How many flows of the protocol have a finding of the rule.</dd>
<dt>chance</dt><dd>Sets of captures without a difference differ as much.</dd>
<dt>95 % interval</dt><dd>Newcombe's interval of the change.
Flows of one capture count for less than flows of several.</dd>
<dt>distance</dt><dd>The largest difference of the shares of flows below any value:
0 for the same, 1 for nothing in common.</dd>
</dl>
<p class="small">Written by ackscope batch.</p>
</section>
</main>
</body>
</html>
`)
	return h.flush()
}

// changes writes what differs.
func (h *htmlWriter) changes(list []Change) {
	if len(list) == 0 {
		return
	}
	h.put(`
<section class="card" aria-labelledby="real">
<h2 id="real">What differs</h2>
<ul class="points">
`)
	for _, x := range list {
		grade := "note"
		if x.Worse {
			grade = "warn"
		}
		h.put(`<li class="{}"><span class="tag">{}</span><div><b>{}.</b><p class="where">{}</p></div></li>`+"\n", grade,
			x.Verdict, x.Sentence, x.Where)
	}
	h.put("</ul>\n</section>\n")
}
