package unit

import (
	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/machine"
)

// rows encodes the rows of a table, as far as there is room.
type rows struct {
	run    *run
	schema *export.Schema
	flow   UID // of the next row
	list   []Row
}

// rowCost is what a row takes beside its cells, in bytes.
// Source: bound, the memory for the rows of a capture: a Row, and the rounding up of allocations
const rowCost = 96

// Encode implements export.Encoder.
func (r *rows) Encode(cells []export.Cell) error {
	b := r.schema.AppendRow(nil, cells)
	if len(b)+rowCost > r.run.room {
		r.run.result.Status.LeftOut++
		r.run.reach(BoundMemory)
		return nil
	}
	r.run.room -= len(b) + rowCost
	r.list = append(r.list, Row{Flow: r.flow, Cells: b})
	return nil
}

// Close implements export.Encoder.
func (r *rows) Close() error { return nil }

// flowRows are rows of export.Flows.
type flowRows struct {
	rows
	to      *export.Rows[export.FlowRow]
	figures machine.Figures
}

func (r *run) flowRows() *flowRows {
	x := &flowRows{rows: rows{run: r, schema: &export.Flows.Schema}}
	x.to = export.NewRows(export.Flows, &x.rows)
	return x
}

// add adds the row of a flow. ended says why a bound ended the flow.
func (x *flowRows) add(f *analyze.Flow, ended string) {
	x.flow = FlowUID(f)
	f.Unpacked(&x.figures, func() {
		_ = x.to.Add(&export.FlowRow{Flow: f, File: x.run.fileOf(f.FirstRef), Ended: ended}) // rows.Encode never fails
	})
}

func (x *flowRows) gone(f *analyze.Flow, why analyze.Reason) { x.add(f, why.String()) }

// findingRows are rows of export.Findings.
type findingRows struct {
	rows
	to *export.Rows[export.FindingRow]
}

func (r *run) findingRows() *findingRows {
	x := &findingRows{rows: rows{run: r, schema: &export.Findings.Schema}}
	x.to = export.NewRows(export.Findings, &x.rows)
	return x
}

// add adds the rows of a flow's findings.
func (x *findingRows) add(f *analyze.Flow) {
	x.flow = FlowUID(f)
	for _, found := range f.Findings() {
		_ = x.to.Add(&export.FindingRow{Finding: found, File: x.run.fileOf(found.Refs[0])}) // rows.Encode never fails
	}
}
