// Package endpoint is the reference endpoint of the Gaffer family. It does no I/O: time
// is an argument, and datagrams go in and out as values. Its faults (fault.go) each do
// one thing wrong, to test replay. The transitions are those of machine/gaffer.
package endpoint
