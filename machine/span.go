package machine

import "time"

// Span bounds the instant of something that happened once: not before From and not after To,
// both in the time of the tap. For example, a message arrived between its sending, in frame
// 12, and the first header that names it, in frame 20.
//
// Certainty is how surely the instant lies within the bounds. It is Unknown, and both bounds
// are 0, where the capture lacks one of them.
type Span struct {
	From, To  Instant
	Certainty Certainty
}

// Known reports whether both bounds are known.
func (s *Span) Known() bool { return s.Certainty != Unknown }

// Width returns the time between the bounds. It is negative if they are unknown.
func (s *Span) Width() time.Duration {
	if !s.Known() {
		return -1
	}
	return s.To.Sub(s.From)
}

// Middle returns the instant halfway between the bounds.
func (s *Span) Middle() Instant { return s.From.Add(s.To.Sub(s.From) / 2) }

// At returns the span of an instant that the capture shows.
func At(t Instant, c Certainty) Span { return Span{t, t, c} }

// Elapsed bounds the time from one event to a later one. It is never negative, since the
// second event followed the first. Unknown bounds are negative.
//
//	least   from the latest begin to the earliest end
//	most    from the earliest begin to the latest end
func Elapsed(begin, end *Span) (least, most time.Duration, c Certainty) {
	if !begin.Known() || !end.Known() {
		return -1, -1, Unknown
	}
	least, most = max(0, end.From.Sub(begin.To)), max(0, end.To.Sub(begin.From))
	return least, most, min(begin.Certainty, end.Certainty)
}
