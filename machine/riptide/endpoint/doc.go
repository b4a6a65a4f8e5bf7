// Package endpoint is the reference client and server of every version of Riptide. It does no I/O:
// time is an argument, and messages go in and out as values. Each fault (fault.go) makes an
// endpoint do one thing wrong, to test replay.
package endpoint
