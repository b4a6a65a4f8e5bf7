package report

import "github.com/ackscope/ackscope/show"

// between writes what two captures show of the path between their taps.
func (h *htmlWriter) between(b *Between) {
	h.put(`<section class="card" aria-labelledby="between">
<h2 id="between">Between the taps</h2>
`)
	h.begin("tap", "capture", "#packets", "#time", "")
	for _, row := range b.Taps() {
		h.put(`<tr><th scope="row">{}</th>`, row.Name)
		h.cells(row.Cells, 1, 2)
		h.put("</tr>\n")
	}
	h.end()
	h.put(`
<h3>Clocks</h3>
<p>{}.</p>
<p class="small">One-way delays share the uncertainty of the offset; how they differ from each other does not depend on it.</p>
`, b.Clock())
	for _, x := range b.Pairs() {
		h.pair(x)
	}
	if n := b.More(); n > 0 {
		h.put(`<p class="small">And {} more: <code>ackscope merge</code> tells of all.</p>`, show.Plural(n, "flow"))
	}
	h.put("\n<p class=\"small\">What follows is from the capture at tap A.</p>\n</section>")
}

// pair writes a flow that both taps saw.
func (h *htmlWriter) pair(x *betweenPair) {
	h.put("<h3>Flow {} <small>{}</small></h3>\n<p class=\"ends\">{}</p>\n<div class=\"pair\">", x.ID(), x.Name(), x.Ends())
	for s := range x.Ways {
		h.put(`<div><h4>{}</h4><table class="fates"><tbody>`, x.Ways[s].Title)
		for _, row := range x.Ways[s].Places {
			h.put("<tr")
			if row.Grade != "" {
				h.put(` class="{}"`, row.Grade)
			}
			h.put(`><th scope="row">{}`, row.Name)
			if doc := row.Cells[1]; doc != "" {
				h.put(`<span class="where">{}</span>`, doc)
			}
			h.put(`</th><td class="n">{}</td></tr>`, row.Cells[0])
		}
		h.put("</tbody></table></div>")
	}
	h.put("</div>\n")
	if rows := x.Delays(); len(rows) > 0 {
		h.begin("one-way delay", "#least", "#median", "#95 %", "#99 %", "#most")
		for _, row := range rows {
			h.put(`<tr><th scope="row">{}</th>`, row.Name)
			h.cells(row.Cells, 0, len(row.Cells))
			h.put("</tr>\n")
		}
		h.end()
	}
	h.put("\n")
	if len(x.Group.Plots) > 0 {
		h.graphs([]htmlGroup{x.Group})
	}
	h.put("\n")
	if rows := x.Deaths(); len(rows) > 0 {
		h.put(`<details class="plain long"><summary>Where each lost packet died</summary>`)
		h.begin("time, by A's clock", "direction", "seen last at", "#frame there")
		for _, row := range rows {
			h.put("<tr>")
			h.cells(row.Cells, 3, 3)
			h.put("</tr>\n")
		}
		h.end()
		if n := x.Unlisted(); n > 0 {
			h.put(`<p class="small">And {} more: <code>ackscope merge --packets</code> lists all.</p>`, n)
		}
		h.put("</details>")
	}
	h.put("\n")
}
