// Package whatif runs a captured flow again under other settings: what would
// the latency have been, and the traffic, with a shorter resend time, a larger
// window, another rate?
//
//	capture ──> recorder ──> machine.Trace ──> Stage.Cast ──> two references
//	            (record.go)  what was asked,   (machine/<p>)       │
//	                         and what became                       v
//	                         of each datagram  ──────────────>  theatre
//	                                             (transit.go)  (theatre.go)
//
// It is trace-driven simulation: the network is the captured one. A datagram
// that a reference sends meets the fate of the captured one that left nearest in
// time. What the capture does not tell is counted, not hidden; and the run with
// the settings of the capture itself (the rehearsal) is printed beside the
// original, so that a reader sees how far the estimate carries.
//
// Ring 4 of the house. It knows no protocol: what a datagram is to its receiver,
// and which references act, the protocol's Stage says.
package whatif
