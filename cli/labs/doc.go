// Package labs implements the command lab: reference endpoints on real sockets.
// For a protocol it needs a Protocol: its flags, and the sim.Kit that they
// describe.
package labs
