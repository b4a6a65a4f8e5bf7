// Package whatif runs a captured flow again under other settings. For example:
// what would the latency and the traffic have been with a shorter resend time,
// a larger window, another rate?
//
//	capture ──> recorder ──> machine.Trace ──> Stage.Prepare ─> machine.Run
//	            (record.go)  what was asked,   (machine/<p>)    two references
//	                         and what happened                       │
//	                         to each datagram                        v
//	                         (transit.go)  ─────────────────>  simulation
//	                                                           (simulation.go)
//
// It is trace-driven simulation: the network is the captured one. A datagram of
// a reference meets the fate of the captured one that left nearest in time. The
// package counts what the capture leaves open.
//
// It also runs the flow with the capture's own settings (the rehearsal). The
// output shows that run beside the original, so that a reader sees how good the
// estimate is.
//
// The package depends on no protocol. A protocol's machine.Stage says what a
// datagram is for, and makes the references.
package whatif
