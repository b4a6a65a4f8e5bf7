package export

import (
	"net/netip"
	"slices"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// shared declares columns in a row whose values many rows have in common. A third of a line is its
// flow with both addresses. So JSON Lines keep that text for each side of a flow.
type shared[R any] struct {
	first, end int // columns
	by         func(row *R) sharedBy
}

// sharedBy is all that decides the values of shared columns.
type sharedBy struct {
	flow      int
	side      machine.Side
	transport capture.Transport
	protocol  *dissect.Protocol
	dialect   string
	src, dst  netip.AddrPort
	ref       machine.Ref
	at        machine.Instant
}

// ofSide returns what decides the columns of a flow and of one of its sides.
func ofSide(f *analyze.Flow, side machine.Side) sharedBy {
	return sharedBy{
		flow: f.ID, side: side, protocol: f.Protocol, dialect: f.Config().Dialect,
		src: f.Addr(side), dst: f.Addr(side.Other()),
	}
}

// sharing says that the columns from first to last depend on nothing but what by returns.
func (t *Table[R]) sharing(first, last string, by func(row *R) sharedBy) *Table[R] {
	at := func(name string) int {
		return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
	}
	t.shared = append(t.shared, shared[R]{at(first), at(last) + 1, by})
	return t
}

// sharedTexts is how many texts of shared columns are kept: a power of two, since a place is found by
// a mask. A server of 128 players has twice as many sides of flows.
const sharedTexts = 256

// sharedText is the JSON of shared columns.
type sharedText struct {
	by   sharedBy
	text []byte // nil for nothing
}

// lineRows writes rows as JSON Lines, column by column. It keeps no cells.
type lineRows[R any] struct {
	table *Table[R]
	to    *Lines
	cell  Cell // of one column after the other
	texts [][]sharedText
}

func newLineRows[R any](t *Table[R], to *Lines) *lineRows[R] {
	w := &lineRows[R]{table: t, to: to, cell: Cell{refers: true}}
	for range t.shared {
		w.texts = append(w.texts, make([]sharedText, sharedTexts))
	}
	return w
}

// add writes a row.
func (w *lineRows[R]) add(row *R) error {
	w.to.buf = append(w.to.buf[:0], '{')
	next := 0
	for i := range w.table.shared {
		s := &w.table.shared[i]
		w.columns(row, next, s.first)
		w.shared(row, s, w.texts[i])
		next = s.end
	}
	w.columns(row, next, len(w.table.get))
	return w.to.end()
}

// columns appends the columns of a row from first, without end.
func (w *lineRows[R]) columns(row *R, first, end int) {
	for i, get := range w.table.get[first:end] {
		w.cell.reset()
		get(row, &w.cell)
		w.to.value(first+i, &w.cell)
	}
}

// shared appends columns that a kept text may have.
func (w *lineRows[R]) shared(row *R, s *shared[R], texts []sharedText) {
	by := s.by(row)
	x := &texts[(by.flow*2+int(by.side))%sharedTexts]
	if x.text == nil || x.by != by {
		from := len(w.to.buf)
		w.columns(row, s.first, s.end)
		x.by, x.text = by, append(x.text[:0], w.to.buf[from:]...)
		return
	}
	w.to.buf = append(w.to.buf, x.text...)
}
