// Package state holds the command state: what each side knew at a frame, as a picture,
// as JSON, or as the difference of two frames.
package state
