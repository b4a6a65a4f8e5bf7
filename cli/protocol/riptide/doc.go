// Package riptide is Riptide on the command line. It serves simulate and lab. It also tells how
// connections ended, and has a command of its own: guess (what messages hold).
package riptide
