// Package srdp describes endpoints of SRDP and its proxies to a run: how they are
// made, what their applications send, and the words of their logs. The commands
// simulate and lab share it.
package srdp
