// Package table fits the columns of a table to a width. It knows only the
// widths of texts; the caller prints them.
//
//	t := table.New([]table.Column{{Title: "#", Right: true}, {Title: "findings", Yields: 1}}, 2)
//	t.Note(0, len("12"), false)              // each text of each row that is shown
//	t.Note(1, len("3 errors"), false)
//	t.Fit(80)                                // what has no room is left out
//	for _, p := range t.Places() {
//		fmt.Print(rows[0][p.Column])         // at p.Start(its width), p.Width wide
//	}
package table
