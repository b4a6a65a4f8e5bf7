package machine

import "time"

// Moment is a frame in which something shows: see [Effects.At].
type Moment struct {
	effects *Effects
	at      Instant
	ref     Ref
}

// At returns the moment of a frame. A tracker reports on it what the frame
// shows.
//
//	out.At(p.at, p.ref).Report(StaleEntry, side, Likely, 0, jump)
func (e *Effects) At(at Instant, ref Ref) Moment { return Moment{e, at, ref} }

// Report appends an anomaly. about is the frame to compare with, or 0 for none.
// figures are the numbers that Rule.Say formats. Report ignores figures beyond
// those that Anomaly.Figures has room for.
func (m Moment) Report(rule *Rule, s Side, sure Certainty, about Ref, figures ...float64) {
	a := Anomaly{Rule: rule, Side: s, Certainty: sure, At: m.at, Ref: m.ref, About: about}
	copy(a.Figures[:], figures)
	m.effects.Anomalies = append(m.effects.Anomalies, a)
}

// Milliseconds returns a duration in milliseconds, the unit of figures of
// findings.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Rounded returns a duration as sentences show it. It rounds to 1 ms above 10
// ms and to 10 µs above 100 µs, and leaves shorter durations exact.
func Rounded(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Millisecond:
		return d.Round(time.Millisecond)
	case d > 100*time.Microsecond:
		return d.Round(10 * time.Microsecond)
	}
	return d
}
