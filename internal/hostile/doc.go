// Package hostile runs the whole program over damaged captures: real ones with
// bits flipped, ends cut, lengths swapped, stretches zeroed, repeated or moved. It has tests only.
//
// Whatever the bytes, the program ends by itself, with the exit code that the
// contract promises, a message where it failed, well-formed output up to there,
// and memory in proportion to the file.
package hostile
