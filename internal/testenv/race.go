//go:build race

package testenv

// Race reports whether the race detector watches: pools then drop what they are
// given now and then, so that allocations cannot be counted.
const Race = true
