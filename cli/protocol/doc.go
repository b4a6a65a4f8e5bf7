// Package protocol defines what a protocol adds to the command line. It needs a
// descriptor. It may add a simulator, a lab, commands of its own, and how its
// connections ended.
package protocol
