package report

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/ackscope/ackscope/compare"
	"github.com/ackscope/ackscope/graph"
	"github.com/ackscope/ackscope/printable"
)

//go:embed comparison.html
var comparisonText string

var comparisonPage = template.Must(template.New("comparison").Parse(comparisonText))

// Comparison writes a comparison of captures as one self-contained page. names are those of
// the two sets.
func Comparison(w io.Writer, r *compare.Result, names [2]string) error {
	light, dark := graph.Colours(false), graph.Colours(true)
	style := ":root{" + light + "}\n@media (prefers-color-scheme:dark){:root{" + dark + "}}\n@media print{:root{" + light +
		"}}\n" + graph.Style + pageStyle
	grade := "note"
	if r.Worse() > 0 {
		grade = "warn"
	}
	return comparisonPage.Execute(printable.DocumentWriter(w), struct {
		*compare.Result
		Names [2]string
		Grade string
		Style template.CSS
	}{r, names, grade, template.CSS(style)}) //nolint:gosec // our own files
}
