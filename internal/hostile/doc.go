// Package hostile runs the whole program over damaged captures. They are real
// captures with flipped bits, cut ends, swapped lengths, and parts that are
// zeroed, repeated or moved. It has tests only.
//
// For all input, the program must
//
//   - end by itself, with one of its exit codes;
//   - print a message if it fails, and valid output up to that point;
//   - use memory in proportion to the file.
package hostile
