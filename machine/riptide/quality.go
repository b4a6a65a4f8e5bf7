package riptide

import "time"

// Bounds for findings. They decide what is reported, never a fact.
const (
	AttemptsMany  = 10
	HeartbeatSlow = 1500 * time.Millisecond
	QualityRow    = 64
	QualityLoss   = 0.05
	QualitySends  = 5
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
