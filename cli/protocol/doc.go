// Package protocol says what a protocol brings to the command line: its descriptor, and
// where it has them a simulator, a lab, commands of its own, and how its connections
// ended.
package protocol
