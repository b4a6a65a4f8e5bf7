package gamelog

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Comparison is a counter or a figure of a log beside what the capture has of it.
type Comparison struct {
	Name   string // as in the log
	What   string // what the capture has: the definition that both are held against
	Values int    // that were compared
	// The rest says where both part first. Line is 0 if they do not.
	Line        int
	At          machine.Instant
	Frame       machine.Ref // the first packet of the side from then on; 0 if there is none
	Log         float64     // what the log has; of counters: since their first value
	Least, Most float64     // what the capture has
	Certainty   machine.Certainty
}

// partAfter is how many successive values must differ. One alone may have been read in the
// middle of a frame. Source: assumed
const partAfter = 2

// tripNames are names of round-trip times in milliseconds.
var tripNames = map[string]bool{
	"rtt": true, "rtt_ms": true, "smoothed_rtt": true, "smooth_rtt": true, "ping": true, "ping_ms": true,
}

// whatCounted defines what the capture counts.
var whatCounted = map[meaning]string{
	countSent:     "packets that it sent",
	countReceived: "packets that it accepted, or all that came",
	countAcked:    "packets that it learned to have arrived",
	countLost:     "packets that can no longer be acked",
}

// beganAt is the highest number of a side's first packet at which the capture has the beginning
// of the connection. Source: assumed, handshakes and a few lost packets
const beganAt = 8

// whatTrip defines what a round-trip time is held against.
const whatTrip = "between the least and the greatest round trip so far, as every average is"

// compare holds the log's counters against the capture's counts. It needs a tap at the side, and
// a log of one connection.
func (a *Aligned) compare(t *Trace) {
	f := t.flows[a.Flow.ID]
	if f == nil || a.Far || a.Unplaced || len(a.Peers) > 2 || t.Full {
		return
	}
	for id, other := range t.flows {
		for _, s := range []machine.Side{machine.A, machine.B} {
			if id != a.Flow.ID && other.flow.Addr(s) == a.Addr() {
				return // one process, several connections: its counters may be of any of them
			}
		}
	}
	x := &aligner{log: a.Log, base: a.base}
	s := &subject{f, a.Side, true}
	counts := x.counts(s)
	slack := 2 * usualGap(counts[countSent][0])
	for _, c := range a.series() {
		what := meaningOf(a.Names[c.name])
		var best *Comparison
		for _, count := range counts[what] {
			got := a.hold(&c, count, what, slack)
			if best == nil || best.Line > 0 && (got.Line == 0 || got.Line > best.Line) {
				best = got
			}
		}
		if best != nil {
			a.Compared = append(a.Compared, *best)
		}
	}
	a.trips(&f.sides[a.Side], slack)
	for i := range a.Compared {
		c := &a.Compared[i]
		c.Certainty = a.Certainty
		c.Frame = firstFrom(f.sides[a.Side].datagrams, c.At)
	}
}

// firstFrom returns the first packet from a time on.
func firstFrom(list []passed, at machine.Instant) machine.Ref {
	i := sort.Search(len(list), func(i int) bool { return list[i].at >= at })
	if i == len(list) || at == 0 {
		return 0
	}
	return list[i].ref
}

// hold compares a counter with a count, from the counter's first value on. A value that was read
// in a frame may be as old as the frame before.
func (a *Aligned) hold(c *counterSeries, t tally, what meaning, slack float64) *Comparison {
	out := &Comparison{Name: a.Names[c.name], What: whatCounted[what]}
	around := func(i int) (least, most float64) {
		x := a.fit.of(c.t[i] * a.unit)
		w := a.fit.error(c.t[i]*a.unit) + slack
		return t.at(x - w), t.at(x + w)
	}
	least0, most0 := around(0)
	apart := 0
	for i := range c.t {
		least, most := around(i)
		least, most = max(0, least-most0), most-least0
		out.Values++
		v := c.v[i] - c.v[0]
		if v >= least && v <= most {
			apart = 0
			continue
		}
		if apart++; apart == 1 {
			out.Log, out.Least, out.Most = v, least, most
			out.Line, out.At = int(a.line(c.entries[i])), a.instant(c.t[i])
		}
		if apart == partAfter {
			return out
		}
	}
	out.Line, out.At = 0, 0
	return out
}

// trips compares round-trip times with those of the capture.
func (a *Aligned) trips(s *sideTrace, slack float64) {
	by := map[uint8]*Comparison{}
	apart := map[uint8]int{}
	var names []uint8
	if len(s.sent) == 0 || s.sent[0].number > beganAt {
		return // the average has round trips from before the capture
	}
	samples := s.counts[Trip]
	next, least, most := 0, math.Inf(1), math.Inf(-1)
	for _, r := range a.Readings {
		name := strings.ToLower(a.Names[r.Name][strings.LastIndexByte(a.Names[r.Name], '.')+1:])
		at := a.instant(a.entryTime(r.Entry))
		for next < len(samples) && samples[next].at <= at.Add(seconds(slack)) {
			ms := float64(samples[next].number) / 1e6
			least, most, next = min(least, ms), max(most, ms), next+1
		}
		if !tripNames[name] || next == 0 || r.Value <= 0 {
			continue
		}
		c := by[r.Name]
		if c == nil {
			c = &Comparison{Name: a.Names[r.Name], What: whatTrip}
			by[r.Name] = c
			names = append(names, r.Name)
		}
		if apart[r.Name] == partAfter {
			continue
		}
		c.Values++
		// The library measures by its frames, the capture by its packets.
		if room := slack * 1e3; r.Value >= least-room && r.Value <= most+room {
			apart[r.Name] = 0
			continue
		}
		if apart[r.Name]++; apart[r.Name] == 1 {
			c.Line, c.At, c.Log, c.Least, c.Most = int(a.line(r.Entry)), at, r.Value, least, most
		}
	}
	for _, name := range names {
		c := by[name]
		if apart[name] < partAfter {
			c.Line, c.At = 0, 0
		}
		a.Compared = append(a.Compared, *c)
	}
}

// line returns the line of an entry that a reading names, and entryTime its time.
func (a *Aligned) line(entry uint32) uint32 { return a.Entries[entry].Line }

func (a *Aligned) entryTime(entry uint32) float64 { return a.Entries[entry].T }

// String says whether the log and the capture agree, or where they part first.
func (c *Comparison) String() string {
	name := string(show.AppendClean(nil, c.Name))
	if c.Line == 0 {
		return fmt.Sprintf("%s: %s agree with the capture (%s)", name, show.Plural(uint64(c.Values), "value"), c.What)
	}
	frame := ""
	if c.Frame != 0 {
		frame = fmt.Sprintf(", frame %d", c.Frame.Frame())
	}
	const form = "%s: parts from the capture in line %d (%s UTC%s): the log has %s, the capture %s to %s (%s; %s)"
	return fmt.Sprintf(form, name, c.Line, c.At.Time().Format("15:04:05.000"), frame, figure(c.Log), figure(c.Least),
		figure(c.Most), c.What, c.Certainty)
}

// figure formats a count or milliseconds.
func figure(v float64) string {
	if v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}
