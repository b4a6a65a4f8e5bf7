package analyze

import (
	"cmp"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// keptPauses is how many pauses of a side are kept, the longest ones. A trouble that many
// flows share shows in each of them. Four are enough to find several such troubles, and cost
// 96 bytes a side.
const keptPauses = 4

// pauseShown is the shortest pause that is kept. It is three frames of a game that sends 30
// times a second. A player sees less than that hardly.
const pauseShown = 100 * time.Millisecond

// Pause is a time in which nothing of a side was captured, although the side usually sends.
// The side sent at its usual pace before and after it.
type Pause struct {
	Until machine.Instant // when the next packet was captured
	Took  time.Duration
	Frame machine.Ref // the packet that ended it
}

// keep keeps a pause if it is among the longest.
func (l *longPace) keep(s *silence) {
	if s.took < pauseShown {
		return
	}
	least := 0
	for i := range l.kept {
		if l.kept[i].took < l.kept[least].took {
			least = i
		}
	}
	if s.took > l.kept[least].took {
		l.kept[least] = *s
	}
}

// Pauses appends the longest pauses of a side, at most four, in order of time. A side that
// pauses as a habit, or that sent less than 64 packets, has none: its pauses are no trouble.
func (f *Flow) Pauses(s machine.Side, list []Pause) []Pause {
	if f.pace == nil {
		return list
	}
	p := &f.pace[s]
	if took, _ := p.stall(); took < 0 || p.long == nil {
		return list
	}
	from := len(list)
	for _, x := range p.long.kept {
		if x.took > 0 {
			list = append(list, Pause{x.at, x.took, x.ref})
		}
	}
	slices.SortFunc(list[from:], func(x, y Pause) int { return cmp.Compare(x.Until, y.Until) })
	return list
}

// Step is a lasting rise of the round trips of a side's packets.
type Step struct {
	At            machine.Instant // when the rise was seen
	Before, After time.Duration
}

// When round trips have risen: the new ones are half as long again as the old, and 20 ms
// longer. They stay so in two samples. Less is jitter of a wireless link.
const (
	stepEach  = 500 * time.Millisecond // between samples: a step is placed as exactly as this
	stepLeast = 20 * time.Millisecond
	// trendSmoothed is over how many samples the usual round trip is smoothed.
	trendSmoothed = 8
	// trendLeast is how many samples show the usual round trip.
	trendLeast = 4
)

// trend follows the smoothed round trip of a side. The zero value has seen nothing.
type trend struct {
	level   time.Duration // the usual round trip
	samples uint8
	rising  machine.Instant // the first of two samples that are higher; 0 if the last was not
	step    Step            // the greatest
}

// sample takes a sample of the smoothed round trip. It ignores a negative one, which is unknown.
func (p *pace) sample(at machine.Instant, trip time.Duration) {
	p.sampleAt = at.Add(stepEach)
	if trip < 0 {
		return
	}
	l := p.more()
	if l.trend == nil {
		l.trend = new(trend)
	}
	l.trend.note(at, trip)
}

// note adds a sample.
func (t *trend) note(at machine.Instant, trip time.Duration) {
	if t.samples < trendLeast {
		t.samples++
		t.level += (trip - t.level) / time.Duration(t.samples)
		return
	}
	if trip-t.level < stepLeast || trip-t.level < t.level/2 {
		t.level += (trip - t.level) / trendSmoothed
		t.rising = 0
		return
	}
	if t.rising == 0 {
		t.rising = at
		return
	}
	if trip-t.level > t.step.After-t.step.Before {
		t.step = Step{t.rising, t.level, trip}
	}
	t.level, t.rising, t.samples = trip, 0, 1
}

// Step returns the greatest lasting rise of the round trips of a side's packets. It returns
// false if they did not rise.
func (f *Flow) Step(s machine.Side) (Step, bool) {
	if f.pace == nil || f.pace[s].long == nil || f.pace[s].long.trend == nil {
		return Step{}, false
	}
	x := f.pace[s].long.trend.step
	return x, x.After > 0
}

// Pause returns the pause that a finding is about. It returns false if the finding is about
// none.
func (f *Finding) Pause() (Pause, bool) {
	if f.Rule == stalled || f.Rule == silenceAtTap {
		return Pause{f.Last, time.Duration(f.Figures[0] * 1e6), f.Refs[0]}, true
	}
	if !f.Rule.ToldPause || f.Flow == nil {
		return Pause{}, false
	}
	var longest Pause
	for _, p := range f.Flow.Pauses(f.Side, nil) {
		// The rules of protocols report a pause at its first packet, its last one, or within it.
		if p.Until.Add(-p.Took) <= f.Last && p.Until >= f.First && p.Took > longest.Took {
			longest = p
		}
	}
	return longest, longest.Took > 0
}
