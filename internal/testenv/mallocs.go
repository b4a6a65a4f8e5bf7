package testenv

import "runtime"

// SteadyMallocs calls do with 0 to n-1. It returns how often a call of the second half allocated, on average.
func SteadyMallocs(n int, do func(int)) float64 {
	var before, after runtime.MemStats
	for i := range n {
		if i == n/2 {
			runtime.ReadMemStats(&before)
		}
		do(i)
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n-n/2)
}

// MostMallocs is how often a packet may allocate in steady state, on average. Rings that grow for a burst, and the
// runtime itself, allocate now and then.
const MostMallocs = 0.001
