// Package state holds the command state: what each side knew at a frame. It
// prints a picture, JSON, or the difference between two frames.
package state
