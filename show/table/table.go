package table

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// Column says how a column is fitted. Widths are in columns of the terminal.
type Column struct {
	Title string
	Right bool // its texts end where the column ends
	Min   int  // its least width; its title's where that is more, unless Max is less
	Max   int  // its greatest width; 0 for any
	Fill  bool // it has what the other columns leave, and no width of its own
	// Yields says when the column is left out where there is no room: 1 before 2, and
	// so on; 0 for a column that always stays.
	Yields int
	// Needed keeps a column that has no text in any row. Others go before all else.
	Needed bool
}

// Table is columns that are fitted to what their rows hold.
type Table struct {
	// Bare leaves out columns without any text, whether there is room or not.
	Bare bool

	columns []Column
	gap     int
	states  []state
	yields  []int // columns that may be left out, in that order
	noted   bool
}

// state is what is known of a column.
type state struct {
	width  int  // of its widest text
	filled bool // a row has text in it
	hidden bool
}

// Place is where a column that is shown stands.
type Place struct {
	Column    int // its index
	At, Width int
	right     bool
}

// Start returns where a text of a width begins: at the left of its column, or so that it ends
// where the column does.
func (p Place) Start(width int) int {
	if p.right {
		return p.At + p.Width - width
	}
	return p.At
}

// New makes a table without rows, with so many blanks between two columns.
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

// Note takes up the text of a column in one row, by its width. An empty text may have a
// width, such as a dash has.
func (t *Table) Note(column, width int, empty bool) {
	x := &t.states[column]
	x.width = max(x.width, width)
	x.filled = x.filled || !empty
	t.noted = true
}

// width returns the width of a column that is shown.
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

// shown reports whether a column is.
func (t *Table) shown(i int) bool {
	return !t.states[i].hidden && (!t.Bare || t.states[i].filled)
}

// Total is the width of the columns that are shown, with the gaps between them.
func (t *Table) Total() int {
	total := -t.gap
	for i := range t.columns {
		if t.shown(i) {
			total += t.width(i) + t.gap
		}
	}
	return max(total, 0)
}

// Fit leaves out columns until the others fit a width: those without any text, then those
// that yield first. A wide one that had to go may have made room for narrower ones, which
// stay then.
func (t *Table) Fit(width int) {
	for i := range t.states {
		t.states[i].hidden = false
	}
	for i := range t.columns {
		if t.vain(i) && t.Total() > width {
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
		if x := &t.states[i]; x.hidden && !t.vain(i) {
			x.hidden = false
			x.hidden = t.Total() > width
		}
	}
	t.fill(width)
}

// vain reports whether a column without text may go.
func (t *Table) vain(i int) bool { return t.noted && !t.states[i].filled && !t.columns[i].Needed }

// fill gives the columns that fill what the others leave.
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

// Places returns the columns that are shown, from left to right.
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
