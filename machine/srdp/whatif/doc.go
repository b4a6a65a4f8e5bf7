// Package whatif prepares a captured SRDP flow to run again under other
// settings. For example: what would the latency have been with copies every 50
// ms?
//
// From the trace of the flow (machine.Trace) it makes the two endpoints, and
// what their applications asked for. It implements machine.Stage.
package whatif
