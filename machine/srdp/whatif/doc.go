// Package whatif runs a captured SRDP flow again under other settings: it makes the two endpoints,
// and what their applications asked for, from the trace of the flow (machine.Stage).
package whatif
