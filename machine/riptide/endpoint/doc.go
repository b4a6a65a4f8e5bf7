// Package endpoint is the reference client and server of every version of Riptide, sans IO:
// time is an argument, messages go in and out as values. Its faults (fault.go) do one
// thing wrong each, for tests of the judges.
package endpoint
