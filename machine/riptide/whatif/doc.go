// Package whatif runs a captured Riptide connection again with other settings. From the trace it
// makes the two endpoints and the requests of their applications. machine.Stage is its interface.
package whatif
