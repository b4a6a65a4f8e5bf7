// Package figures names what a flow shows of its network and its messages, and evaluates
// conditions about it. For example, the condition `loss > 5%` holds where one packet of a
// side in ten was lost.
//
//	analyze.Record, Flow -> Collector -> Set (one of each side of a flow)
//	"loss > 5%" -> Parse -> Condition -> Evaluate(values) -> Result
//
// A figure that the capture does not show is unknown, so a condition about it is neither
// true nor false. Figures of a flow that still runs are those so far.
package figures
