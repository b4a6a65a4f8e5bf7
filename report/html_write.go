package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// htmlWriter writes HTML. Every value is escaped unless its type is markup. So text of a capture
// remains text. It uses no template of the standard library. A template calls methods by name, so
// the linker keeps all methods of the program, and the page in the browser would load them.
type htmlWriter struct {
	text strings.Builder
	to   io.Writer
	err  error
}

// markup is HTML that the program itself made.
type markup string

// flushAt is how many bytes are collected before they are written.
const flushAt = 64 << 10

// put writes a form, and in it the next value for each "{}". The values stand in text or in a quoted
// attribute. The attribute is none of a script or a style, and an address begins with "#".
func (h *htmlWriter) put(form string, values ...any) {
	for _, v := range values {
		before, after, _ := strings.Cut(form, "{}")
		h.text.WriteString(before)
		switch v := v.(type) {
		case markup:
			h.text.WriteString(string(v))
		case string:
			h.text.WriteString(escaped.Replace(v))
		default:
			h.text.WriteString(escaped.Replace(fmt.Sprint(v)))
		}
		form = after
	}
	h.text.WriteString(form)
	if h.text.Len() >= flushAt {
		_ = h.flush() // the last flush returns the error
	}
}

// escaped replaces what has a meaning in HTML, as html/template does.
var escaped = strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;", "<", "&lt;",
	">", "&gt;")

// flush writes what was collected. It returns the first error of all.
func (h *htmlWriter) flush() error {
	if h.err == nil {
		_, h.err = io.WriteString(h.to, h.text.String())
	}
	h.text.Reset()
	return h.err
}

// data writes a value as JSON, for a script element: encoding/json escapes "<" in it.
func (h *htmlWriter) data(v any) {
	text, err := json.Marshal(v)
	if err != nil && h.err == nil {
		h.err = err
	}
	h.put("{}", markup(text))
}

// heads writes the cells of a table's head. The names are the program's own. One that begins with
// "#" is of a column of numbers.
func (h *htmlWriter) heads(names ...string) {
	for _, name := range names {
		if number, ok := strings.CutPrefix(name, "#"); ok {
			h.put(`<th scope="col" class="n">{}</th>`, markup(number))
		} else {
			h.put(`<th scope="col">{}</th>`, markup(name))
		}
	}
}

// begin begins a table that scrolls sideways, with its head.
func (h *htmlWriter) begin(names ...string) {
	h.put(`<div class="scroll"><table><thead><tr>`)
	h.heads(names...)
	h.put("</tr></thead><tbody>\n")
}

// end ends such a table.
func (h *htmlWriter) end() { h.put("</tbody></table></div>") }

// cells writes the cells of a row. Those from the first-th to the last-th are numbers.
func (h *htmlWriter) cells(list []string, first, last int) {
	for i, text := range list {
		if i >= first && i <= last {
			h.put(`<td class="n">{}</td>`, text)
		} else {
			h.put("<td>{}</td>", text)
		}
	}
}

// none is a column of cells that no row has.
const none = -1
