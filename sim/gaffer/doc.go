// Package gaffer describes endpoints of the Gaffer family to a run: how they are
// made, what their applications send, and the words of their logs. The commands
// simulate and lab share it.
package gaffer
