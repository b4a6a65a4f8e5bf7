// Package framing begins TCP streams at random places, and compares the messages
// that capture/stream reads with those of the whole stream.
//
// It has tests only: a connection holds the framings of all protocols, and no
// package of the program may name them together.
package framing
