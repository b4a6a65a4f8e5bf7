// Package whatif prepares a captured Gaffer flow to run again under other
// settings. For example: what would the latency have been with a resend time of
// 50 ms?
//
// From the trace of the flow (machine.Trace) it makes the two endpoints, and
// what their applications asked for. It implements machine.Stage. The endpoints
// know the sizes of messages, but not their contents.
package whatif
