package riptide

import "time"

// Bounds for findings. They decide what is reported, never a fact.
const (
	// Source: definition, riptide-attempts-high: ten copies of a message are many
	AttemptsMany = 10
	// Source: definition, riptide-heartbeat-late: a heartbeat is late after 1.5 s
	HeartbeatSlow = 1500 * time.Millisecond
	// Source: library, Riptide 2.1.0: Connection.AvgSendAttemptsResilience and NotifyLossResilience
	QualityRow = 64
	// Source: library, Riptide 2.1.0: Connection.MaxNotifyLoss
	QualityLoss = 0.05
	// Source: library, Riptide 2.1.0: Connection.MaxAvgSendAttempts
	QualitySends = 5
)

// Quality is the library's running measure of a connection: the last 64 outcomes, and how many
// means in a row were beyond the limit.
type Quality struct {
	values [QualityRow]uint8
	Sum    int
	Count  int
	Row    int
}

// Add records an outcome. It returns the mean of the last 64.
func (q *Quality) Add(v uint8) float64 {
	slot := &q.values[q.Count%QualityRow]
	q.Sum += int(v) - int(*slot)
	*slot = v
	q.Count++
	return float64(q.Sum) / float64(min(q.Count, QualityRow))
}
