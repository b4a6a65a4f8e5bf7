package gamelog

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Why is what a log says of a pause of its side.
type Why uint8

const (
	Outside   Why = iota // the log does not cover the pause
	Uncertain            // the clocks are known too badly
	FrameTook            // one frame of the game took most of it
	Still                // the log has no line for most of it
	SentOn               // the log has sends in it
	RanOn                // the log has lines throughout, and no send
)

var whyWords = [...]string{"outside", "uncertain", "frame-took", "still", "sent-on", "ran-on"}

// String returns the word of output.
func (w Why) String() string { return whyWords[w] }

// Explanation is what a log says of one pause.
type Explanation struct {
	Why       Why
	Certainty machine.Certainty // of Why; Unknown if the log says nothing
	Took      time.Duration     // of the frame, or for which the log has no line
	Line      int               // of the frame, or the line before the gap in the log
	Count     int               // sends or lines in the pause
	Within    time.Duration     // how far the log's times may be off there
	log       *Aligned
}

// Owns reports whether a log is that of a side: the process at its address wrote it.
func (a *Aligned) Owns(f *analyze.Flow, s machine.Side) bool { return a.OK() && a.Addr() == f.Addr(s) }

// most is the share of a pause that a frame explains, or that a log lacks lines for.
// Source: definition, more than half
const most = 2

// Explain says what the log tells of a pause of its side.
func (a *Aligned) Explain(p analyze.Pause) Explanation {
	entries := a.inOrder()
	from := p.Until.Add(-p.Took)
	before := sort.Search(len(entries), func(i int) bool { return a.At(&entries[i]) > from })
	after := before + sort.Search(len(entries)-before, func(i int) bool {
		return a.At(&entries[before+i]) >= p.Until
	})
	x := Explanation{log: a, Within: a.Error()}
	if before > 0 {
		x.Within = a.Within(&entries[before-1])
	}
	if x.Within >= p.Took/most {
		x.Why = Uncertain
		return x
	}
	if frame, ok := a.frameIn(entries, from, p, before, after, x.Within); ok {
		x.Why, x.Certainty = FrameTook, a.Certainty
		x.Took, x.Line = time.Duration(float64(frame.Frame)*1e6), int(frame.Line)
		return x
	}
	if before == 0 || after == len(entries) {
		return x // Outside
	}
	sends := 0
	for i := before - 1; i < after; i++ {
		e := &entries[i]
		if gap := a.At(&entries[i+1]).Sub(max(from, a.At(e))); gap > x.Took {
			x.Took, x.Line = gap, int(e.Line)
		}
		if e.Kind == Send && a.At(e) > from.Add(x.Within) && a.At(e) < p.Until.Add(-x.Within) {
			sends++
		}
	}
	x.Certainty = a.Certainty
	switch {
	case sends > 0:
		x.Why, x.Count = SentOn, sends
	case x.Took >= p.Took/most:
		x.Why = Still
	default:
		x.Why, x.Count = RanOn, after-before
	}
	return x
}

// inOrder returns the entries in order of time. Readings name them by their place in the file.
func (a *Aligned) inOrder() []Entry {
	if a.ordered == nil {
		a.ordered = slices.Clone(a.Entries)
		slices.SortStableFunc(a.ordered, func(x, y Entry) int { return cmp.Compare(x.T, y.T) })
	}
	return a.ordered
}

// frameIn returns the longest frame that took most of a pause. A log may write a frame when it
// begins or when it ends.
func (a *Aligned) frameIn(entries []Entry, from machine.Instant, p analyze.Pause, before, after int,
	within time.Duration,
) (longest Entry, ok bool) {
	longest.Frame = -1
	try := func(e *Entry) {
		took := time.Duration(float64(e.Frame) * 1e6)
		if took < p.Took/most || e.Frame <= longest.Frame {
			return
		}
		at := a.At(e)
		begin, end := max(from, at.Add(-took-within)), min(p.Until, at.Add(took+within))
		if end.Sub(begin) >= p.Took/most {
			longest, ok = *e, true
		}
	}
	// Frames that lie a little before and after the pause overlap it, if they are as long.
	for i := before - 1; i >= 0 && from.Sub(a.At(&entries[i])) <= 2*p.Took+within; i-- {
		try(&entries[i])
	}
	for i := before; i < len(entries) && (i < after || a.At(&entries[i]).Sub(p.Until) <= 2*p.Took+within); i++ {
		try(&entries[i])
	}
	return longest, ok
}

// String says what the log tells, for a person: "the game's frame took 180 ms (line 713 of
// client.jsonl, likely)".
func (x *Explanation) String() string {
	name := string(show.AppendClean(nil, x.log.Name))
	switch x.Why {
	case FrameTook:
		return fmt.Sprintf("the game's frame took %s (line %d of %s, %s)", millis(x.Took), x.Line, name, x.Certainty)
	case Still:
		return fmt.Sprintf("%s has no line for %s after line %d: the game stood still, or wrote nothing (%s)", name,
			millis(x.Took), x.Line, x.Certainty)
	case SentOn:
		return fmt.Sprintf("%s has %s in it: the game ran and sent, and nothing was captured (%s)", name,
			show.Plural(uint64(x.Count), "send"), x.Certainty)
	case RanOn:
		return fmt.Sprintf("%s has %s in it: the game ran, and sent nothing (%s)", name,
			show.Plural(uint64(x.Count), "line"), x.Certainty)
	case Uncertain:
		return fmt.Sprintf("%s is known to %s only there: it says nothing about so short a time", name, millis(x.Within))
	}
	return name + " does not cover it"
}

// millis formats a time in milliseconds, and short ones in more digits.
func millis(d time.Duration) string {
	ms := machine.Milliseconds(d)
	switch {
	case ms < 1:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}
