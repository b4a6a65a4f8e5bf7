package machine

import "time"

// Report appends an anomaly. figures are those that the rule puts into words
// (Rule.Say): as many as Anomaly.Figures holds, the rest is ignored. about is the
// frame that ref is compared with; 0 for none.
func (e *Effects) Report(rule *Rule, s Side, sure Certainty, at Instant, ref, about Ref, figures ...float64) {
	a := Anomaly{Rule: rule, Side: s, Certainty: sure, At: at, Ref: ref, About: about}
	copy(a.Figures[:], figures)
	e.Anomalies = append(e.Anomalies, a)
}

// Milliseconds gives a duration as the figures of findings have it.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Rounded gives a duration as sentences show it: whole milliseconds above 10 ms,
// hundredths of one above 100 µs, and exact below.
func Rounded(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Millisecond:
		return d.Round(time.Millisecond)
	case d > 100*time.Microsecond:
		return d.Round(10 * time.Microsecond)
	}
	return d
}
