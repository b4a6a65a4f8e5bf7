// Package whatif runs a captured Riptide connection again under other settings: it makes the
// two endpoints, and what their applications asked for, from the trace (machine.Stage).
package whatif
