// Package labs holds the command lab: reference endpoints on real sockets. What a
// protocol brings is a Protocol with its flags and the sim.Kit that they describe.
package labs
