//go:build !linux

package reader

import "github.com/ackscope/ackscope/metrics"

// process knows nothing here.
func process() metrics.Process { return metrics.Process{} }
