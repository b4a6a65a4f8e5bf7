// Package dial scales constants of the machines while a test runs. The test measures how far
// each may be off before something that ackscope says becomes wrong.
//
// Example: nearProof is 4 ms. Scale("machine/riptide/vantage.nearProof", 1.5) makes
// it 6 ms, and Reset() makes it 4 ms again.
//
// A normal build has no dials. `go run ./internal/thresholds -measure` builds the measuring
// tests over changed sources. There each measured constant is a variable that adds itself
// here (see package constants).
package dial

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// number is what a measured constant can be.
type number interface {
	~int | ~int8 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float64
}

// dials are the setters by name; each takes a factor of the constant's own value.
var (
	dials   = map[string]func(factor float64){}
	derived []func()
)

// Add makes a variable scalable under a name. It is called before any test runs.
func Add[T number](name string, p *T) {
	own := *p
	dials[name] = func(factor float64) { *p = scaled(own, factor) }
}

// Derive has f called after each change: it computes the variables that follow from
// others. Those of imported packages come first.
func Derive(f func()) { derived = append(derived, f) }

// scaled returns a value times a factor. A count moves by at least one.
func scaled[T number](own T, factor float64) T {
	v := float64(own) * factor
	var whole T
	if _, duration := any(own).(time.Duration); duration || T(1)/2 != whole {
		return T(v)
	}
	switch {
	case factor > 1:
		return T(math.Ceil(v))
	case factor < 1:
		return T(math.Floor(v))
	}
	return own
}

// Names lists the dials. A normal build has none.
func Names() (names []string) {
	for name := range dials {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Scale sets the constant of a name to its own value times a factor.
func Scale(name string, factor float64) error {
	set, ok := dials[name]
	if !ok {
		return fmt.Errorf("thresholds: constant %q: expected one of the %d that are measured", name, len(dials))
	}
	set(factor)
	for _, f := range derived {
		f()
	}
	return nil
}
