package table

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// Column says how to fit a column. Widths are in columns of the terminal.
type Column struct {
	Title string
	Right bool // align its texts to the right
	Min   int  // least width; the title's if that is greater, unless Max is less
	Max   int  // greatest width; 0 for any
	Fill  bool // give it the width that the other columns leave
	// Yields is the order in which columns are omitted if there is no room: 1
	// first, then 2, and so on. A column with 0 always stays.
	Yields int
	// Needed keeps a column that has no text in any row. Such columns are
	// otherwise omitted first.
	Needed bool
}

// Table is a set of columns that fit the texts of their rows.
type Table struct {
	// Bare omits columns without any text even if there is room.
	Bare bool

	columns []Column
	gap     int
	states  []state
	yields  []int // columns that may be omitted, in that order
	noted   bool
}

// state is what is known of a column.
type state struct {
	width  int  // width of its widest text
	filled bool // whether a row has text in it
	hidden bool
}

// Place is the position of a shown column.
type Place struct {
	Column    int // index of the column
	At, Width int
	right     bool
}

// Start returns the position of a text in the column, by the text's width. It
// is at the left of the column, or at the right for a column with Right set.
func (p Place) Start(width int) int {
	if p.right {
		return p.At + p.Width - width
	}
	return p.At
}

// New returns a table without rows. gap is the number of blanks between two
// columns.
func New(columns []Column, gap int) *Table {
	t := &Table{columns: columns, gap: gap, states: make([]state, len(columns))}
	for i := range columns {
		if columns[i].Yields > 0 {
			t.yields = append(t.yields, i)
		}
	}
	slices.SortStableFunc(t.yields, func(i, j int) int { return cmp.Compare(columns[i].Yields, columns[j].Yields) })
	return t
}

// Note records the width of the text of a column in one row. An empty text may
// have a width, such as a dash.
func (t *Table) Note(column, width int, empty bool) {
	x := &t.states[column]
	x.width = max(x.width, width)
	x.filled = x.filled || !empty
	t.noted = true
}

// width returns the width of a shown column.
func (t *Table) width(i int) int {
	c := &t.columns[i]
	if c.Fill {
		return 0
	}
	w := max(t.states[i].width, c.Min, utf8.RuneCountInString(c.Title))
	if c.Max > 0 {
		w = min(w, c.Max)
	}
	return w
}

// shown reports whether a column is shown.
func (t *Table) shown(i int) bool {
	return !t.states[i].hidden && (!t.Bare || t.states[i].filled)
}

// Total returns the width of the shown columns with the gaps between them.
func (t *Table) Total() int {
	total := -t.gap
	for i := range t.columns {
		if t.shown(i) {
			total += t.width(i) + t.gap
		}
	}
	return max(total, 0)
}

// Fit omits columns until the others fit a width. Columns without any text go
// first, then the others in the order of Yields. When a wide column has gone,
// narrower columns that fit again come back.
func (t *Table) Fit(width int) {
	for i := range t.states {
		t.states[i].hidden = false
	}
	for i := range t.columns {
		if t.omittable(i) && t.Total() > width {
			t.states[i].hidden = true
		}
	}
	for _, i := range t.yields {
		if t.Total() <= width {
			break
		}
		t.states[i].hidden = true
	}
	for _, i := range slices.Backward(t.yields) {
		if x := &t.states[i]; x.hidden && !t.omittable(i) {
			x.hidden = false
			x.hidden = t.Total() > width
		}
	}
	t.fill(width)
}

// omittable reports whether a column has no text and may be omitted.
func (t *Table) omittable(i int) bool { return t.noted && !t.states[i].filled && !t.columns[i].Needed }

// fill widens the columns with Fill set to use the remaining width.
func (t *Table) fill(width int) {
	rest := width
	for i := range t.columns {
		if t.shown(i) && !t.columns[i].Fill {
			rest -= t.width(i) + t.gap
		}
	}
	for i := range t.columns {
		if t.columns[i].Fill {
			t.states[i].width = max(rest, 0)
		}
	}
}

// Places returns the positions of the shown columns, from left to right.
func (t *Table) Places() []Place {
	places := make([]Place, 0, len(t.columns))
	at := 0
	for i := range t.columns {
		if !t.shown(i) {
			continue
		}
		w := t.width(i)
		if t.columns[i].Fill {
			w = t.states[i].width
		}
		places = append(places, Place{i, at, w, t.columns[i].Right})
		at += w + t.gap
	}
	return places
}
