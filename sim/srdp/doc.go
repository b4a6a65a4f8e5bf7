// Package srdp defines SRDP endpoints and proxies for a run: how to make them,
// what their applications send, and the words of their logs. The commands
// simulate and lab use it.
package srdp
