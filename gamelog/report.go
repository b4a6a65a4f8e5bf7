package gamelog

import (
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Report is what the logs of a game say of a capture. A nil report has no logs.
type Report struct {
	Logs []*Aligned
}

// Explain returns what the logs say of a pause of a side. It returns false if none is the
// side's.
func (r *Report) Explain(f *analyze.Flow, s machine.Side, p analyze.Pause) (Explanation, bool) {
	if r == nil {
		return Explanation{}, false
	}
	for _, a := range r.Logs {
		if a.Owns(f, s) {
			return a.Explain(p), true
		}
	}
	return Explanation{}, false
}

// Finding returns what the logs say of the pause that a finding is about. It returns false if
// it is about none, or no log is the side's.
func (r *Report) Finding(x *analyze.Finding) (Explanation, bool) {
	if r == nil {
		return Explanation{}, false
	}
	p, ok := x.Pause()
	if !ok {
		return Explanation{}, false
	}
	return r.Explain(x.Flow, x.Side, p)
}

// Series is where the frames of a game are drawn: a graph.Flow.
type Series interface {
	Frame(side machine.Side, at machine.Instant, ms float64)
}

// Draw adds the frames of the game to the series of a flow.
func (r *Report) Draw(f *analyze.Flow, to Series) {
	if r == nil {
		return
	}
	for _, side := range []machine.Side{machine.A, machine.B} {
		for _, a := range r.Logs {
			if !a.Owns(f, side) || a.Frames == 0 {
				continue
			}
			for i := range a.Entries {
				if e := &a.Entries[i]; e.Frame >= 0 {
					to.Frame(side, a.At(e), float64(e.Frame))
				}
			}
			break
		}
	}
}

// NoFrames says why Draw adds no frames of a log to the series of a flow, for each such log.
func (r *Report) NoFrames(f *analyze.Flow) (list []string) {
	for _, a := range r.Logs {
		switch {
		case !a.OK():
			list = append(list, a.String())
		case !a.Owns(f, machine.A) && !a.Owns(f, machine.B):
			list = append(list, fmt.Sprintf("%s: the log of %s of flow %d", a.name(), strings.ToUpper(a.Side.String()),
				a.Flow.ID))
		case a.Frames == 0:
			list = append(list, fmt.Sprintf("%s: the log of %s, and it has no frame_ms", a.name(),
				strings.ToUpper(a.Side.String())))
		}
	}
	return list
}

// Sentences say how each log was aligned, and which lines were left out.
func (r *Report) Sentences() (list []string) {
	if r == nil {
		return nil
	}
	for _, a := range r.Logs {
		list = append(list, a.String())
		for i := range a.Compared {
			list = append(list, a.name()+": "+a.Compared[i].String())
		}
		if a.BadCount > 0 {
			list = append(list, fmt.Sprintf("%s: %s left out; line %d: %s", a.name(), were(a.BadCount), a.Bad[0].Line,
				string(show.AppendClean(nil, a.Bad[0].Reason))))
		}
		if a.More {
			list = append(list, fmt.Sprintf("%s: only its first %s were read", a.name(),
				show.Plural(uint64(len(a.Entries)), "line")))
		}
	}
	return list
}

func were(n int) string {
	if n == 1 {
		return "1 line was"
	}
	return show.Grouped(n) + " lines were"
}

func (a *Aligned) name() string { return string(show.AppendClean(nil, a.Name)) }

// String says where the log lies on the capture's clock, or why it has no place.
func (a *Aligned) String() string {
	if !a.OK() {
		return fmt.Sprintf("%s: not aligned: %s", a.name(), a.Reason)
	}
	by := map[Method]string{
		Sequences: "%s by their sequence numbers", Intervals: "%s by their intervals", Counters: "%s of a counter",
	}[a.Method]
	what := show.Plural(uint64(a.Matched), "packet")
	if a.Method == Counters {
		what = show.Plural(uint64(a.Matched), "value")
	}
	s := fmt.Sprintf("%s: the log of %s of flow %d, aligned within %s through "+by+" (%s)", a.name(),
		strings.ToUpper(a.Side.String()), a.Flow.ID, millis(a.Error()), what, a.Certainty)
	s += fmt.Sprintf("; its clock runs %s, and its first line is at %s UTC", a.pace(),
		a.Start().Time().Format("2006-01-02 15:04:05.000000"))
	if a.Far {
		s += "; the capture was taken elsewhere, so half of the round trip is a part of the bound"
	}
	if a.Unplaced {
		s += "; the way from there to the place of capture is unknown, and is not in the bound"
	}
	if a.wall {
		s += "; the intervals do not show that it is of this run, but its clock agrees with the capture's"
	}
	return s
}

// pace says how fast the log's clock runs.
func (a *Aligned) pace() string {
	skew, sure := a.Skew(), a.SkewError()
	switch {
	case skew > sure:
		return fmt.Sprintf("%.1f ± %.1f ppm fast", skew, sure)
	case -skew > sure:
		return fmt.Sprintf("%.1f ± %.1f ppm slow", -skew, sure)
	}
	return fmt.Sprintf("as fast as the capture's (± %.1f ppm)", sure)
}
