// Package endpoint is the reference endpoint of SRDP, with its proxies, sans IO: time is an
// argument, packets go in and out as values. Its faults (fault.go) do one thing wrong
// each, for tests of the judges.
package endpoint
