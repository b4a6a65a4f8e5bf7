package tracker

import (
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// timing is what the copies of a sender show of its settings. They are the time
// between copies (timeout), and after how many copies it gives up (repeats).
type timing struct {
	recent  [16]uint32 // the newest intervals, in microseconds
	sorted  [16]uint32 // the same, in order
	count   uint32
	least   time.Duration
	most    time.Duration
	repeats [17]uint16 // by number of copies: packets given up after that many; the last entry counts all above
	gaveUp  uint32

	usual time.Duration     // the result of timeout, kept because callers ask more often than it changes
	known machine.Certainty // the certainty of usual
}

// interval adds the time between two copies of a packet.
func (t *timing) interval(d time.Duration) {
	if t.count == 0 || d < t.least {
		t.least = d
	}
	t.most = max(t.most, d)
	t.enter(uint32(min(d/time.Microsecond, 1<<32-1)))
	t.usual, t.known = t.median()
}

// enter adds an interval to the newest ones, in place of the oldest one if they are full.
func (t *timing) enter(x uint32) {
	oldest := &t.recent[int(t.count)%len(t.recent)]
	i := int(t.count) // the free place in sorted
	last := min(i, len(t.sorted)-1)
	if i > last {
		i, _ = slices.BinarySearch(t.sorted[:], *oldest)
	}
	for ; i > 0 && t.sorted[i-1] > x; i-- {
		t.sorted[i] = t.sorted[i-1]
	}
	for ; i < last && t.sorted[i+1] < x; i++ {
		t.sorted[i] = t.sorted[i+1]
	}
	t.sorted[i], *oldest = x, x
	t.count++
}

// waits reports whether a sender still waits for an acknowledgement when since
// has passed after the newest copy. That needs copies with one setting, all of
// them sent later than since. Otherwise the wire does not show when the sender
// gives up.
//
// The shortest interval of the whole flow is least, by an earlier run. It is 0
// if there was none.
func (t *timing) waits(since, least time.Duration) bool {
	return t != nil && t.known == machine.Likely && since < t.least && (least == 0 || since < least)
}

// timeout returns the usual interval: the median of the newest intervals. It
// returns 0 when none is known. Alike intervals are likely one setting; others
// may be the library's choice from time to time.
func (t *timing) timeout() (usual time.Duration, known machine.Certainty) {
	if t == nil {
		return 0, machine.Unknown
	}
	return t.usual, t.known
}

// timerStray is how far apart intervals with one setting can lie. An
// application looks at its timers once a frame.
// Source: measured, TestMarginsSRDP
const timerStray = 34 * time.Millisecond

func (t *timing) median() (usual time.Duration, known machine.Certainty) {
	n := min(int(t.count), len(t.sorted))
	usual = time.Duration(t.sorted[n/2]) * time.Microsecond
	spread := time.Duration(t.sorted[n-1]-t.sorted[0]) * time.Microsecond
	if n >= 3 && spread <= max(timerStray, usual/4) {
		return usual, machine.Likely
	}
	return usual, machine.Possible
}

// end takes the end of a packet that was never acknowledged.
func (t *timing) end(copies int32) {
	t.repeats[min(int(copies), len(t.repeats)-1)]++
	t.gaveUp++
}

// limit returns after how many copies the sender gives up: the most frequent
// number. It returns 0 when no packet was given up.
func (t *timing) limit() (copies int, known machine.Certainty) {
	if t == nil || t.gaveUp == 0 {
		return 0, machine.Unknown
	}
	most := 0
	for n, times := range t.repeats {
		if times > t.repeats[most] {
			most = n
		}
	}
	if times := uint32(t.repeats[most]); times >= 2 && times*5 >= t.gaveUp*4 {
		return most, machine.Likely
	}
	return most, machine.Possible
}
