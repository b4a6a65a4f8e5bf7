//go:build race

package testenv

// Race reports whether the race detector is on. It makes sync.Pool drop objects
// at random, so that allocations cannot be counted.
const Race = true
