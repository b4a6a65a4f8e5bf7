package report

import (
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// head writes what comes before the first report.
func (h *htmlWriter) head(generator, policy, description, title string, style markup) {
	h.put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="{}">
`, generator)
	if policy != "" {
		h.put(`<meta http-equiv="Content-Security-Policy" content="{}">
<meta name="description" content="{}">
`, policy, description)
	}
	h.put("<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n", title, style)
}

// report writes a report.
func (h *htmlWriter) report(x *htmlReport) {
	h.put(`<header class="top {}">
<p class="file">{}</p>
<h1><span class="badge" aria-hidden="true"></span>`, x.Grade(), x.Name)
	if x.Between != nil {
		h.put("{}</h1>\n<p>At tap A: {}</p>", x.Between.Verdict(), x.Verdict())
	} else {
		h.put("{}</h1>\n", x.Verdict())
	}
	h.put("\n<p class=\"facts\">{}</p>\n", strings.Join(x.Facts(), " · "))
	if x.Problem != "" {
		h.put(`<p class="problem">The capture was not read to a clean end: {}</p>`, x.Problem)
	}
	h.put("\n</header>\n\n")
	if x.Between != nil {
		h.between(x.Between)
	}
	h.put("\n")
	h.points(x)
	h.put("\n\n")
	if len(x.Log) > 0 {
		h.put(`<section class="card" aria-labelledby="{}log"><h2 id="{}log">The game's own log</h2>`+"\n", x.Anchors, x.Anchors)
		for _, text := range x.Log {
			h.put("<p>{}.</p>\n", text)
		}
		h.put("</section>")
	}
	h.put("\n\n")
	if len(x.Full) > 1 {
		h.put("\n"+`<nav class="card" aria-labelledby="{}flows"><h2 id="{}flows">Flows</h2><div class="scroll">`+
			`<table class="flows"><thead><tr>`, x.Anchors, x.Anchors)
		h.heads(x.Heads...)
		h.put("</tr></thead><tbody>\n")
		for _, f := range x.Full {
			h.put(`<tr><th scope="row"><a href="#{}flow-{}"><span class="dot {}" aria-hidden="true"></span>Flow {}</a></th>`,
				x.Anchors, f.ID, f.Loudest(), f.Number())
			h.cells(f.Line(), none, none)
			h.put("</tr>\n")
		}
		h.put("</tbody></table></div></nav>\n")
	}
	h.put("\n\n")
	for _, f := range x.Full {
		h.flow(x.Anchors, f)
	}
	h.put("\n\n")
	h.rest(x)
	h.put("\n\n")
}

// points writes what stands out.
func (h *htmlWriter) points(x *htmlReport) {
	if len(x.Points) == 0 {
		return
	}
	h.put(`
<section class="card" aria-labelledby="{}stands-out">
<h2 id="{}stands-out">What stands out</h2>
<ul class="points">
`, x.Anchors, x.Anchors)
	for _, p := range x.Points {
		h.put(`<li class="{}"><span class="tag">{}</span><div><b>{}</b>`, p.Grade, p.Grade, p.Text)
		for _, w := range p.Where {
			h.put(`<p class="where">`)
			if w.Link != "" {
				h.put(`<a href="{}">flow {}</a>`, w.Link, w.Flow)
			} else {
				h.put("flow {}", w.Flow)
			}
			for _, text := range []string{w.Who, w.Sure} {
				if text != "" {
					h.put(" · {}", text)
				}
			}
			if w.Text != "" {
				h.put(`<span class="said">{}</span>`, w.Text)
			}
			h.put("</p>")
		}
		if p.More > 0 {
			h.put(`<p class="where">and {} more</p>`, p.More)
		}
		h.put("</div></li>\n")
	}
	h.put("</ul>\n")
	if x.More > 0 {
		h.put(`<p class="small">And {} more, with their flows below.</p>`, x.More)
	}
	h.put("\n</section>\n")
}

// flow writes a flow that is shown in full.
func (h *htmlWriter) flow(anchors string, f *htmlFlow) {
	h.put(`
<section class="card flow" id="{}flow-{}" aria-labelledby="{}h-{}">
<h2 id="{}h-{}">Flow {} <small>{}</small></h2>
<p class="ends"><span class="side a">A</span> {} <span aria-hidden="true">⇄</span> <span class="side b">B</span> {}</p>
<p class="small">{} Read as {}: {}.`, anchors, f.ID, anchors, f.ID, anchors, f.ID, f.Number(), f.Name, f.A, f.B, f.Tap, f.Name,
		f.Reason)
	if text := f.Continues(); text != "" {
		h.put(" {}.", text)
	}
	h.put("</p>\n\n")
	if len(f.Story) > 0 {
		h.put(`<h3>How it ended</h3><div class="story">`)
		for _, text := range f.Story {
			h.put("<p>{}</p>", text)
		}
		h.put("</div>")
	}
	h.put("\n\n")
	if len(f.Findings) > 0 {
		h.put("\n<h3>Findings</h3>\n<div class=\"findings\">\n")
		for _, x := range f.Findings {
			h.finding(f, x)
		}
		h.put("</div>\n")
	}
	h.put("\n\n<h3>Both sides</h3>\n" + `<div class="scroll"><table class="figures"><thead><tr>`)
	h.heads("", "A", "B")
	h.put("</tr></thead><tbody>\n")
	for i := range f.Figures {
		h.put(`<tr><th scope="row">{}</th>`, f.Figures[i].Name)
		h.cells(f.Figures[i].Cells, none, none)
		h.put("</tr>\n")
	}
	h.put("</tbody></table></div>\n\n")
	if len(f.Groups) > 0 {
		h.put("\n")
		h.graphs(f.Groups)
		h.put("\n")
	}
	h.put("\n\n")
	h.messages(f)
	h.put("\n\n")
	h.held(f)
	h.put("\n\n")
	h.costs(f)
	h.put("\n\n")
	if len(f.Replay) > 0 {
		h.put("\n<h3>Held against the reference</h3>\n" + `<ul class="replay">`)
		for i := range f.Replay {
			x := &f.Replay[i]
			h.put(`<li class="{}"><span class="tag">{}</span><div><b>{}</b> as {}: {}`, x.Verdict, x.Verdict, x.Who, x.Behaviour,
				x.Note)
			if d := x.Divergence; d != nil {
				h.put("<pre>reference: {}\ncaptured:  {}</pre>", d.Reference, d.Captured)
			}
			h.put("</div></li>\n")
		}
		h.put("</ul>\n")
	}
	h.put("\n</section>\n")
}

// finding writes a finding, with the explanation of its rule where it is the first of the rule.
func (h *htmlWriter) finding(f *htmlFlow, x *analyze.Finding) {
	said, grade, id := f.Paragraphs(x), f.Grade(x), x.Rule.ID
	h.put("<details")
	if len(said) > 0 {
		h.put(` id="{}"`, f.Explained(x))
	}
	h.put(` class="{}"`, grade)
	if grade != machine.Note.String() {
		h.put(" open")
	}
	h.put(`>
<summary><span class="tag">{}</span><span><b>{}</b><span class="where">{} · {} · {}</span></span></summary>
<div class="body"><p>{}</p>`, grade, x.Rule.Summary, f.Whose(x.Side), x.Certainty, id, x.Message())
	if text := f.Log(x); text != "" {
		h.put("<p>Log: {}</p>", text)
	}
	h.put(`<p class="frames">Frames {}</p>`, f.Frames(x))
	for _, text := range said {
		h.put(`<p class="explain">{}</p>`, text)
	}
	if len(said) == 0 {
		h.put(`<p class="explain"><a href="#{}">{} is explained above</a></p>`, f.Explained(x), id)
	}
	h.put("</div>\n</details>\n")
}

// graphs writes groups of graphs.
func (h *htmlWriter) graphs(groups []htmlGroup) {
	h.put(`<div class="graphs">
<div class="tools" hidden><button type="button" data-do="in">Zoom in</button><button type="button" data-do="out">` +
		`Zoom out</button><button type="button" data-do="left" aria-label="Earlier">◀</button>` +
		`<button type="button" data-do="right" aria-label="Later">▶</button>` +
		`<button type="button" data-do="all">Reset</button>` +
		`<span class="hint">Drag over a graph to zoom in, double-click to reset.</span></div>` + "\n")
	for i := range groups {
		g := &groups[i]
		h.put("<h3>{}</h3>\n<p class=\"small\">{} {}</p>\n<div class=\"pair\">", g.Title, g.Doc, g.Fine)
		for k := range g.Plots {
			p := &g.Plots[k]
			h.put(`<figure class="graph" id="{}">{}<script type="application/json">`, p.ID, p.SVG)
			h.data(p.Data)
			h.put("</script></figure>")
		}
		h.put("</div>\n")
	}
	h.put("</div>")
}

// messages writes the types of messages.
func (h *htmlWriter) messages(f *htmlFlow) {
	if len(f.Types) == 0 {
		return
	}
	h.put("\n<h3>Messages</h3>\n" + `<p class="small">Arrival is the estimate of the time from the first sending of a ` +
		`message until its receiver had it. "At most" is what the capture proves. Percentiles are within 3 %. Waiting ` +
		`is head-of-line blocking: complete, but behind an earlier one that was missing.</p>` + "\n")
	h.types(f.Types, f.Waits)
	h.put("\n")
	if len(f.Further) > 0 {
		h.put(`<details class="plain"><summary>{}</summary>`, show.Plural(len(f.Further), "further type"))
		h.types(f.Further, f.Waits)
		h.put("</details>")
	}
	h.put("\n")
}

// types writes a table of types of messages. waits says that some message of the flow waited.
func (h *htmlWriter) types(list []*Type, waits bool) {
	heads := []string{
		"from", "type", "promised", "#sent", "#in packets", "#delivered", "#not", "#unknown", "#arrival p50, ms", "#p95",
		"#at most p50", "#p95",
	}
	if waits {
		heads = append(heads, "#waited", "#wait p95, ms", "#max")
	}
	h.begin(heads...)
	counted := func(n uint64) string {
		if n == 0 {
			return ""
		}
		return show.Grouped(n)
	}
	for _, t := range list {
		h.put(`<tr><td><span class="side {}">{}</span></td><td>{}</td><td>{}</td>`, t.Side, upper(t.Side), t.Name, t.Mode)
		h.cells([]string{show.Grouped(t.Count), show.Grouped(t.Sends), show.Grouped(t.Delivered)}, 0, 2)
		bad := ""
		if t.Missed > 0 {
			bad = " bad"
		}
		h.put(`<td class="n{}">{}</td><td class="n">{}</td>`, bad, counted(t.Missed), counted(t.Unknown))
		if t.Arrival.N > 0 {
			h.cells([]string{
				show.Millis(t.Arrival.At(0.5)), show.Millis(t.Arrival.At(0.95)), show.Millis(t.Most.At(0.5)),
				show.Millis(t.Most.At(0.95)),
			}, 0, 3)
		} else {
			h.cells([]string{"?", "?", "?", "?"}, none, none)
		}
		switch {
		case waits && t.Wait.N > 0:
			h.cells([]string{show.Grouped(t.Wait.N), show.Millis(t.Wait.At(0.95)), show.Millis(t.Wait.Max)}, 0, 2)
		case waits:
			h.cells([]string{"", "", ""}, none, none)
		}
		h.put("</tr>\n")
	}
	h.end()
}

// held writes the messages that waited longest.
func (h *htmlWriter) held(f *htmlFlow) {
	if len(f.Held) == 0 {
		return
	}
	h.put("\n<h3>Longest head-of-line waits</h3>\n")
	h.begin("from", "type", "#id", "#first in frame", "#waited, ms", "#arrived after", "#for id")
	number := func(n int64) string {
		if n < 0 {
			return ""
		}
		return fmt.Sprint(n)
	}
	for i := range f.Held {
		x := &f.Held[i]
		h.put(`<tr><td><span class="side {}">{}</span></td>`, x.Side, upper(x.Side))
		h.cells([]string{
			x.Name, number(x.ID), fmt.Sprint(x.Frame.Frame()), show.Millis(x.Wait), x.Arrival, number(x.Blocker),
		}, 1, 5)
		h.put("</tr>\n")
	}
	h.end()
	h.put("\n")
}

// costs writes what the bytes of each side were for.
func (h *htmlWriter) costs(f *htmlFlow) {
	if len(f.Costs) == 0 {
		return
	}
	h.put("\n<h3>What the bytes were for</h3>\n" + `<p class="small">Every byte of every frame, as it was on the wire. ` +
		`What the messages of one packet share is charged to each in proportion to its size; where a protocol packs ` +
		`bits, bytes come in eighths.</p>` + "\n")
	for i := range f.Costs {
		c := &f.Costs[i]
		h.put("<h4>{} <small>{}</small></h4>\n<div class=\"bar\" aria-hidden=\"true\">", c.Who, c.Total)
		for _, p := range c.Parts {
			h.put(`<i class="{}" style="width:{}%"></i>`, p.Class, fmt.Sprintf("%.3f", p.Percent))
		}
		h.put("</div>\n<p class=\"parts\">")
		for _, p := range c.Parts {
			h.put(`<span><i class="{}" aria-hidden="true"></i>{} {}</span>`, p.Class, p.Name, p.Share)
		}
		h.put("</p>\n" + `<details class="plain"><summary>By type of message</summary>`)
		h.begin("type", "#count", "#copies", "#bytes", "#share", "#goodput", "#again", "#acks", "#header", "#IP+UDP", "#link")
		for _, row := range c.Rows {
			h.put("<tr><td>{}</td>", row.Name)
			h.cells(row.Cells, 0, len(row.Cells))
			h.put("</tr>\n")
		}
		h.end()
		h.put("</details>\n")
	}
}

// rest writes the flows that have a line each.
func (h *htmlWriter) rest(x *htmlReport) {
	if len(x.Rest) == 0 {
		return
	}
	h.put("\n" + `<section class="card"><h2>Further flows</h2>` + "\n")
	h.begin("##", "protocol", "A", "B", "#packets A / B", "")
	for _, row := range x.Rest {
		h.put(`<tr><td class="n">{}</td>`, row.Name)
		h.cells(row.Cells, 3, 3)
		h.put("</tr>\n")
	}
	h.end()
	if x.More > 0 {
		h.put("\n<p>{}</p>", x.MoreText())
	}
	h.put("</section>\n")
}

// foot writes what comes after the last report.
func (h *htmlWriter) foot() {
	h.put(`<section class="card words"><h2>Words</h2>
<dl>
<dt>A, B</dt><dd>The two ends of a flow: A spoke first, or is the client of the handshake.</dd>
<dt>certain, likely, possible</dt><dd>How surely the capture proves it. What a side knew is only as certain as the ` +
		`packets that passed where the capture was taken.</dd>
<dt>acked</dt><dd>The sender learned that its packet arrived. That is later than the arrival, and can fail though the ` +
		`packet came.</dd>
<dt>frame</dt><dd>The number of a packet in the capture, as Wireshark counts.</dd>
<dt>goodput</dt><dd>What the application sent, counted once.</dd>
</dl>
<p class="small">Written by ackscope. <code>ackscope findings</code>, <code>messages</code>, ` +
		`<code>state --at FRAME</code> and <code>tui</code> tell more of the same capture.</p>
</section>
</main>
`)
	h.put("<script>{}</script>\n</body>\n</html>\n", markup(pageScript))
}

func upper(s machine.Side) string { return strings.ToUpper(s.String()) }
