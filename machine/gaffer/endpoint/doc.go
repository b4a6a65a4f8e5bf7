// Package endpoint is the reference endpoint of the Gaffer family, sans IO: time is an
// argument, datagrams go in and out as values. Its faults (fault.go) do one thing
// wrong each, for tests of the judges. The transitions are those of machine/gaffer.
package endpoint
