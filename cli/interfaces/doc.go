// Package interfaces has the flags of a live capture, and opens its interfaces with the least
// privileges. `ackscope` and the sensor of contrib/fleet share it, so both capture alike.
package interfaces
