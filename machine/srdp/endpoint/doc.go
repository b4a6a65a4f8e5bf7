// Package endpoint is the reference endpoint of SRDP, with its proxies, without
// I/O: time is an argument, and packets go in and out as values. For example,
// Step with a Submit appends a datagram to Effects, and Step with a Wake sends
// it again.
//
// Each fault (fault.go) does one thing wrong, for the tests of replay.
package endpoint
