// Package unit analyses one capture and returns all that is kept of it: rows, aggregates and a
// status. It is the unit of work of a run over many captures, on one machine or on many.
//
//	input := unit.Input{Name: "eu/17.pcapng", Size: size, Reader: body}
//	result, err := unit.Analyze(ctx, "eu/17.pcapng", []unit.Input{input}, unit.Options{
//		Labels: []unit.Label{{Name: "build", Value: "1.4.2"}},
//	})
//	if err != nil {
//		// the bytes did not come, or ctx ended: try again
//	}
//	total.Merge(result.Aggregates)
//
// Analyze tells two kinds of trouble apart:
//
//   - A failed transport is an error of Analyze. A reader that fails or ends before its stated size
//     is one, and so is the end of ctx. There is no result, and another try may succeed.
//   - Everything else is a state of the capture. A capture that is cut or damaged keeps its rows up
//     to there. A bound that is reached keeps the rows of what was read. A panic of the analysis
//     keeps its stack. Another try gives the same.
//
// The result depends on the bytes, the name and the options alone, and not on the machine. There is
// one exception, Options.Time: Status.Bound then says so.
//
// Rows are those of `ackscope flows --json` and `ackscope findings --json` for the same capture. In
// each format of package export they give the same bytes. The column file has the name of the input.
package unit
