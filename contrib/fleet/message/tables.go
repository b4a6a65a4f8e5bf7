package message

import (
	"github.com/ackscope/ackscope/export"
)

// Columns that a sensor adds before those of core's tables.
var (
	uidColumn   = export.Column{Name: "uid", Type: export.Text, Doc: "Name of the flow, for good and on every machine."}
	pairColumns = []export.Column{
		{Name: "a", Type: export.Text, Doc: "Address and port of side A of the flow."},
		{Name: "b", Type: export.Text, Doc: "Address and port of side B of the flow."},
		{Name: "begun", Type: export.Time, Doc: "When the flow's first packet was captured."},
	}
)

// schemas are the rows of messages.
var schemas = map[Kind]*export.Schema{
	Flows:    schemaOf(&export.Flows.Schema, uidColumn),
	Findings: schemaOf(&export.Findings.Schema, append([]export.Column{uidColumn}, pairColumns...)...),
}

func schemaOf(of *export.Schema, first ...export.Column) *export.Schema {
	return &export.Schema{Name: of.Name, Doc: of.Doc, Columns: append(first, of.Columns...)}
}

// Schema returns the columns of a stored kind's rows.
func Schema(kind Kind) *export.Schema { return schemas[kind] }

// Rows makes the bodies of stored messages. It is not safe for concurrent use.
type Rows struct{ flows, findings []export.Cell }

// NewRows returns a Rows.
func NewRows() *Rows { return &Rows{schemas[Flows].Cells(), schemas[Findings].Cells()} }

// Flow returns the row of a flow. It is valid until the next call.
func (r *Rows) Flow(uid string, row *export.FlowRow) []export.Cell {
	setText(&r.flows[0], uid)
	export.Flows.Fill(row, r.flows[1:])
	return r.flows
}

// Finding returns the row of a finding. It is valid until the next call.
func (r *Rows) Finding(uid string, row *export.FindingRow) []export.Cell {
	cells, f := r.findings, row.Flow
	setText(&cells[0], uid)
	setText(&cells[1], f.A.String())
	setText(&cells[2], f.B.String())
	cells[3].Set, cells[3].Int = true, int64(f.First)
	export.Findings.Fill(row, cells[1+len(pairColumns):])
	return cells
}

func setText(c *export.Cell, text string) { c.Set, c.Bytes = true, append(c.Bytes[:0], text...) }

// Column returns the position of a column, or -1.
func Column(s *export.Schema, name string) int {
	for i := range s.Columns {
		if s.Columns[i].Name == name {
			return i
		}
	}
	return -1
}
