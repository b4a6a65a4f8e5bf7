//go:build !linux

package reader

import "github.com/ackscope/ackscope/metrics"

// process returns nothing: this system does not report it.
func process() metrics.Process { return metrics.Process{} }
