package batch

import (
	"io"

	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/export/parquet"
	"github.com/ackscope/ackscope/unit"
)

// capturesSchema returns the table of captures, with the labels that a manifest has.
func capturesSchema(labels []string) *export.Schema {
	column := func(name string, kind export.Type, absent export.Absence, doc string) export.Column {
		return export.Column{Name: name, Type: kind, Absent: absent, Doc: doc}
	}
	s := &export.Schema{Name: "captures", Doc: "What became of each capture.", Columns: []export.Column{
		column(captureColumn, export.Text, export.Never, "Its name, which is the column file of flows and findings."),
	}}
	for _, name := range labels {
		s.Columns = append(s.Columns, column(name, export.Text, export.Null, "The manifest's column of this name."))
	}
	s.Columns = append(s.Columns,
		column("state", export.Text, export.Never,
			"ok, bounded, cut, damaged, unreadable, panic, unread, timeout or quarantined."),
		column("bound", export.Text, export.Null, "The bound that was reached: memory, packets or time."),
		column("error", export.Text, export.Null, "What is wrong with it, in words."),
		column("stack", export.Text, export.Null, "Where the analysis panicked."),
		column("files", export.Uint, export.Never, "Its files."),
		column("bytes", export.Int, export.Never, "Their sizes."),
		column("packets", export.Uint, export.Never, "The frames that its flows are made of."),
		column("studied", export.Uint, export.Never, "The frames that its findings are made of."),
		column("flows", export.Uint, export.Never, "Its rows of flows."),
		column("findings", export.Uint, export.Never, "Its rows of findings."),
		column("ended_early", export.Uint, export.Never, "Flows that the bound of memory ended early."),
		column("rows_left_out", export.Uint, export.Never, "Rows that the bound of memory left out."),
		column("first", export.Time, export.Null, "Time of its first frame."),
		column("last", export.Time, export.Null, "The newest time of a frame."))
	return s
}

// Captures writes the table of captures. Rows come by the name of the capture.
type Captures struct {
	labels  []string
	cells   []export.Cell
	at      int
	encoder *parquet.Encoder
}

// NewCaptures starts the table. labels are the columns of the manifest other than capture.
func NewCaptures(w io.Writer, labels []string) *Captures {
	s := capturesSchema(labels)
	return &Captures{labels: labels, cells: s.Cells(), encoder: parquet.New(w, s)}
}

// Add adds a capture.
func (t *Captures) Add(c *Capture, s *unit.Status) error {
	t.at = 0
	t.text(c.Name, true)
	for i := range t.labels {
		value := ""
		if i < len(c.Labels) {
			value = c.Labels[i].Value
		}
		t.text(value, value != "")
	}
	t.text(string(s.State), true)
	t.text(string(s.Bound), s.Bound != "")
	t.text(s.Error, s.Error != "")
	t.text(s.Stack, s.Stack != "")
	t.count(uint64(s.Files))
	t.next(true).Int = s.Bytes
	for _, n := range []uint64{s.Packets, s.Studied, s.Flows, s.Findings, s.EndedEarly, s.LeftOut} {
		t.count(n)
	}
	first, last := t.next(s.First != nil), t.next(s.Last != nil)
	if s.First != nil {
		first.Int = s.First.UnixNano()
	}
	if s.Last != nil {
		last.Int = s.Last.UnixNano()
	}
	return t.encoder.Encode(t.cells)
}

// next returns the next cell of the row.
func (t *Captures) next(set bool) *export.Cell {
	c := &t.cells[t.at]
	t.at++
	c.Set = set
	return c
}

func (t *Captures) text(s string, set bool) {
	c := t.next(set)
	c.Bytes = append(c.Bytes[:0], s...)
}

func (t *Captures) count(n uint64) { t.next(true).Uint = n }

// Close ends the table.
func (t *Captures) Close() error { return t.encoder.Close() }
