package report

import (
	"io"

	"github.com/ackscope/ackscope/compare"
	"github.com/ackscope/ackscope/printable"
)

// Comparison writes a comparison of captures as one self-contained page. names are those of
// the two sets.
func Comparison(w io.Writer, r *compare.Result, names [2]string) error {
	h := &htmlWriter{to: printable.DocumentWriter(w)}
	grade := "note"
	if r.Worse() > 0 {
		grade = "warn"
	}
	h.head("ackscope compare", "", "", names[0]+" and "+names[1]+" compared", style)
	h.put(`<header class="top {}">
<p class="file">{} → {}</p>
<h1><span class="badge" aria-hidden="true"></span>{}</h1>
<p class="facts">before: {} · after: {}</p>
`, grade, names[0], names[1], r.Headline(), r.Before.Describe(), r.After.Describe())
	for _, note := range r.Notes {
		h.put("<p>{}</p>\n", note)
	}
	h.put("</header>\n")
	h.differences(r)
	h.put("\n")
	for _, protocol := range r.Protocols() {
		h.put("\n"+`<section class="card"><h2>{}</h2>`+"\n", protocol)
		h.begin("", "figure", "#before", "#after", "#change", "#95 % interval", "")
		for _, d := range r.Table {
			if d.Protocol == protocol {
				h.put("<tr><td>{}</td>", d.Way)
				h.cells(d.Cells(), 1, 4)
				h.put("</tr>\n")
			}
		}
		h.end()
		h.put("\n</section>\n")
	}
	h.put("\n")
	if len(r.Findings) > 0 {
		h.put("\n" + `<section class="card"><h2>Findings</h2>` + "\n")
		h.begin("", "rule", "#before", "#after", "severity", "", "")
		for _, f := range r.Findings {
			h.put("<tr><td>{}</td>", f.Way)
			h.cells(f.Cells(), 1, 2)
			h.put("</tr>\n")
		}
		h.end()
		h.put("\n</section>\n")
	}
	h.put(`
<section class="card words"><h2>Words</h2>
<dl>
<dt>A→B, B→A</dt><dd>The way from client to server and back, where the captures show the roles.</dd>
<dt>chance</dt><dd>Captures of one and the same game differ as much.</dd>
<dt>95 % interval</dt><dd>The true change lies within it for 95 of 100 such pairs of captures.</dd>
</dl>
<p class="small">Written by ackscope compare.</p>
</section>
</main>
</body>
</html>
`)
	return h.flush()
}

// differences writes what differs, or else what would have been found.
func (h *htmlWriter) differences(r *compare.Result) {
	if len(r.Real) > 0 {
		var list []Change
		for _, d := range r.Real {
			list = append(list, Change{d.Worse(), d.Grade(), d.Sentence(), d.Protocol})
		}
		h.changes(list)
		return
	}
	if seen := r.Seen(); len(seen) > 0 {
		h.put(`
<section class="card" aria-labelledby="seen">
<h2 id="seen">What would have been found</h2>
<p>In four of five such pairs of captures, these changes would have been found:</p>
<ul>`)
		for _, text := range seen {
			h.put("<li>{}</li>", text)
		}
		h.put("</ul>\n</section>\n")
	}
}
