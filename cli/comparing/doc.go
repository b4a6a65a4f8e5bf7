// Package comparing implements the command that compares captures from before a change of a
// game with those from after it: compare.
package comparing
