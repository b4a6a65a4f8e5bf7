package riptide

import "time"

// Bounds for findings. They decide what is reported, never a fact.
const (
	// AttemptsMany is how many copies of one message count as many.
	// Source: definition, riptide-attempts-high: ten copies of a message are many
	AttemptsMany = 10
	// HeartbeatSlow is the time after a heartbeat beyond which the next one is late.
	// Source: definition, riptide-heartbeat-late: a heartbeat is late after 1.5 s
	HeartbeatSlow = 1500 * time.Millisecond
	// QualityRow is how many outcomes the library averages. It is also how many means in a row must be
	// beyond the limit to end a connection.
	// Source: library, Riptide 2.1.0: Connection.AvgSendAttemptsResilience and NotifyLossResilience
	QualityRow = 64
	// QualityLoss is the largest share of lost notify messages that the library allows.
	// Source: library, Riptide 2.1.0: Connection.MaxNotifyLoss
	QualityLoss = 0.05
	// QualitySends is the largest mean number of copies of a reliable message that the library allows.
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
