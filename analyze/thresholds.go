package analyze

import "time"

// Thresholds are the limits above which steady trouble is a finding. DefaultThresholds has
// the usual ones with their sources; --thresholds and --set change them.
type Thresholds struct {
	Loss      float64       // share of a side's packets that the network lost, 0..1
	RTT       time.Duration // the median round trip
	Jitter    time.Duration // mean difference of successive round trips
	Stall     time.Duration // the longest silence of a side that usually sends
	Resends   float64       // share of messages that were sent again, 0..1
	Bandwidth float64       // bytes of one side in its busiest second
}

// DefaultThresholds returns the limits that hold where the user gives none.
func DefaultThresholds() Thresholds {
	return Thresholds{
		Loss: steadyShare,
	}
}
