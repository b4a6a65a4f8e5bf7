// Package gaffer describes endpoints of the Gaffer family to a simulated or real run. It
// says how to create them, what their applications send, and what their logs say. The
// commands simulate and lab share it.
package gaffer
