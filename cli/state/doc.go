// Package state holds the command state, which shows what each side knew at a
// frame. For example, `ackscope state --at 591 match.pcapng` prints both sides
// at frame 591.
//
// The command prints a picture, JSON, or the difference between two frames.
package state
