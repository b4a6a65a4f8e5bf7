package app

import (
	"io"
	"unicode/utf8"

	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/show/table"
)

// Columns prints a table of any length in little memory. It formats the rows
// twice: first to measure the widths, then to print.
type Columns struct {
	Paint show.Painter
	Heads []string
	Right []bool // columns aligned to the right
	// Yields is the order in which columns are left out where the terminal is too narrow: 1
	// first. A column with 0 always stays. It is nil if all stay.
	Yields []int
	Fit    int // the terminal's width; 0 for no limit

	cells []cell
	text  []byte
}

// cell is one entry of a row. Its text is in Columns.text.
type cell struct {
	from, to int
	style    show.Style
}

const columnGap = 2

// Add appends the next cell of the row. fill writes the text; Add escapes
// control characters.
func (c *Columns) Add(s show.Style, fill func(to []byte) []byte) {
	from := len(c.text)
	c.text = fill(c.text)
	if text := c.text[from:]; !printable.Clean(string(text)) {
		c.text = append(c.text[:from], printable.String(string(text))...)
	}
	c.cells = append(c.cells, cell{from, len(c.text), s})
}

// Str appends text as the next cell of the row.
func (c *Columns) Str(s show.Style, text string) {
	c.Add(s, func(to []byte) []byte { return append(to, text...) })
}

// Both appends the next cell of the row: the texts of A and of B.
func (c *Columns) Both(a, b string) {
	c.Add("", func(to []byte) []byte { return append(append(append(to, a...), " / "...), b...) })
}

// Render prints n rows below the headings. row adds the cells of one row.
// Columns without any text are omitted.
func (c *Columns) Render(w io.Writer, n int, row func(i int)) error {
	t := c.fitted(n, row)
	if c.Fit > 0 && c.Yields != nil {
		t.Fit(c.Fit)
	}
	places := t.Places()
	var line []byte
	for _, p := range places {
		line = c.put(line, []byte(c.Heads[p.Column]), show.Bold, p)
	}
	if _, err := w.Write(show.Fit(finish(line), c.Fit)); err != nil {
		return err
	}
	for i := range n {
		c.make(i, row)
		line = line[:0]
		for _, p := range places {
			if p.Column < len(c.cells) {
				x := c.cells[p.Column]
				line = c.put(line, c.text[x.from:x.to], x.style, p)
			}
		}
		if _, err := w.Write(show.Fit(finish(line), c.Fit)); err != nil {
			return err
		}
	}
	return nil
}

// fitted returns the table with columns as wide as the rows need.
func (c *Columns) fitted(n int, row func(i int)) *table.Table {
	of := make([]table.Column, len(c.Heads))
	for j, head := range c.Heads {
		of[j] = table.Column{Title: head, Right: c.Right[j]}
		if c.Yields != nil {
			of[j].Yields = c.Yields[j]
		}
	}
	t := table.New(of, columnGap)
	t.Bare = true
	for i := range n {
		c.make(i, row)
		for j, x := range c.cells {
			t.Note(j, utf8.RuneCount(c.text[x.from:x.to]), x.from == x.to)
		}
	}
	return t
}

// Fits reports whether the rows fit the terminal.
func (c *Columns) Fits(n int, row func(i int)) bool {
	return c.Fit == 0 || c.fitted(n, row).Total() <= c.Fit
}

func (c *Columns) make(i int, row func(int)) {
	c.cells, c.text = c.cells[:0], c.text[:0]
	row(i)
}

// put appends a text at its position, after blanks.
func (c *Columns) put(line, text []byte, s show.Style, p table.Place) []byte {
	width := utf8.RuneCount(text)
	before := p.Start(width) - p.At
	line = AppendBlanks(line, before)
	line = c.Paint.Begin(line, s)
	line = append(line, text...)
	line = c.Paint.End(line, s)
	return AppendBlanks(line, p.Width-before-width+columnGap)
}

// AppendBlanks appends n blanks.
func AppendBlanks(to []byte, n int) []byte {
	for range n {
		to = append(to, ' ')
	}
	return to
}

// finish ends a line and removes its trailing blanks.
func finish(line []byte) []byte {
	for len(line) > 0 && line[len(line)-1] == ' ' {
		line = line[:len(line)-1]
	}
	return append(line, '\n')
}
