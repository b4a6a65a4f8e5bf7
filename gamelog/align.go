package gamelog

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// Owner says whose log a file is. The zero value leaves it open.
type Owner struct {
	Role string // "client", "server", "a" or "b"; empty for any
	Addr netip.AddrPort
	IP   netip.Addr // where the port is not given
}

// is reports whether a side of a flow can be the owner.
func (o *Owner) is(f *analyze.Flow, s machine.Side) bool {
	client := f.Facts().Client
	switch {
	case o.Addr.IsValid():
		return f.Addr(s) == o.Addr
	case o.IP.IsValid():
		return f.Addr(s).Addr() == o.IP
	case o.Role == "a" || o.Role == "b":
		return o.Role == s.String()
	case o.Role == "" || client[0] == client[1]:
		return true // any side, or it is not known which side is the client
	}
	return client[s] == (o.Role == "client")
}

// Method is how a log was aligned.
type Method uint8

const (
	None Method = iota
	Sequences
	Intervals
	Counters
)

// String describes the method in the words of output.
func (m Method) String() string {
	return [...]string{"none", "sequences", "intervals", "counters"}[m]
}

// Aligned is a log with its place on the capture's clock.
type Aligned struct {
	*Log
	Method    Method
	Certainty machine.Certainty // that the log is of this run
	Reason    string            // why it is not aligned; empty if it is
	Flow      *analyze.Flow     // that aligned it
	Side      machine.Side      // whose log it is
	Matched   int               // packets, or readings of counters
	Far       bool              // the capture was not taken at the side
	Compared  []Comparison      // its counters beside the capture's
	Unplaced  bool              // where it was taken is unknown: the way from the side to there is not in the bound

	fit  fit
	unit float64
	base machine.Instant
	way  time.Duration // from the side to the tap
	wall bool          // only the clocks' agreement shows that it is of this run

	ordered []Entry // by time; nil until they are asked for
}

// OK reports whether the log has a place on the capture's clock.
func (a *Aligned) OK() bool { return a.Method != None }

// Addr returns the address of the side whose log it is.
func (a *Aligned) Addr() netip.AddrPort { return a.Flow.Addr(a.Side) }

// At returns when an entry was written, on the capture's clock.
func (a *Aligned) At(e *Entry) machine.Instant { return a.instant(e.T) }

func (a *Aligned) instant(t float64) machine.Instant {
	return a.base.Add(seconds(a.fit.of(t * a.unit))).Add(-a.way)
}

// Within returns how far At may be off.
func (a *Aligned) Within(e *Entry) time.Duration { return a.within(e.T) }

func (a *Aligned) within(t float64) time.Duration {
	return seconds(a.fit.error(t*a.unit)) + a.way
}

// Error returns how far times may be off between the first and the last matched packet.
func (a *Aligned) Error() time.Duration { return seconds(a.fit.bound) + a.way }

// Skew returns how much faster the log's clock runs than the capture's, in millionths.
func (a *Aligned) Skew() float64 { return (1/a.fit.rate - 1) * 1e6 }

// SkewError returns how far Skew may be off.
func (a *Aligned) SkewError() float64 { return 2 * a.fit.bound / max(a.fit.to-a.fit.from, 1e-9) * 1e6 }

// Unit returns the unit of the log's times in seconds.
func (a *Aligned) Unit() float64 { return a.unit }

// Start returns when the first line was written, on the capture's clock.
func (a *Aligned) Start() machine.Instant { return a.instant(0) }

// Offset returns how far the log's clock is behind the capture's, at the first line. The log's
// epoch counts as that of 1970.
func (a *Aligned) Offset() float64 {
	return float64(a.Start())/1e9 - (float64(a.Log.base.whole)*a.unit + a.Log.base.fraction*a.unit)
}

// seconds turns seconds into a duration. It keeps within the range.
func seconds(s float64) time.Duration {
	const most = 1 << 33 // 272 years
	return time.Duration(min(max(s, -most), most) * 1e9)
}

// Bounds of what is tried.
const (
	// sidesMost is how many sides of flows are tried by numbers, those with most packets first.
	sidesMost = 64
	// sidesByInterval is how many are tried by intervals, which takes longer.
	sidesByInterval = 8
	// peersMost is how many other ends of a log are tried one by one.
	peersMost = 64
	// wallClock is how well the clocks of two hosts agree that NTP sets.
	// Source: assumed, hosts without NTP are off by more
	wallClock = 2 * time.Second
)

// subject is a side that a log may belong to.
type subject struct {
	flow *flowTrace
	side machine.Side
	near bool
}

func (s *subject) trace() *sideTrace { return &s.flow.sides[s.side] }

// aligner is one try to align a log.
type aligner struct {
	log      *Log
	base     machine.Instant
	subjects []subject
	best     *Aligned // fits, but is not proven
	places   bool     // the sends fit at several places
}

// Align finds the place of a log on the clock of a capture. Times of the capture are counted from
// start. It is any time of the capture.
func Align(l *Log, owner Owner, trace *Trace, start machine.Instant) *Aligned {
	a := &aligner{log: l, base: start}
	for _, f := range trace.sorted() {
		for _, side := range []machine.Side{machine.A, machine.B} {
			if owner.is(f.flow, side) && len(f.sides[side].datagrams) > 0 {
				a.subjects = append(a.subjects, subject{f, side, f.flow.Facts().Vantage.Near(side)})
			}
		}
	}
	slices.SortStableFunc(a.subjects, func(x, y subject) int {
		if x.near != y.near {
			if x.near {
				return -1
			}
			return 1
		}
		return cmp.Compare(len(y.trace().datagrams), len(x.trace().datagrams))
	})
	for _, try := range []func() *Aligned{a.sequences, a.intervals, a.counters} {
		if found := try(); found != nil {
			found.compare(trace)
			return found
		}
	}
	if a.best != nil && a.best.atWall() {
		a.best.Certainty, a.best.wall = machine.Possible, true
		a.best.compare(trace)
		return a.best
	}
	return &Aligned{Log: l, Reason: a.reason()}
}

// sequences tries numbers.
func (a *aligner) sequences() (found *Aligned) {
	peers := []int{-1}
	for p := range min(len(a.log.Peers), peersMost) {
		if len(a.log.Peers) > 2 {
			peers = append(peers, p)
		}
	}
	var lists [][]event
	for _, peer := range peers {
		for stream := range a.log.Streams {
			if list := a.log.sends(peer, stream); len(list) >= pairsLeast {
				lists = append(lists, list)
			}
		}
	}
	for i := range a.subjects[:min(len(a.subjects), sidesMost)] {
		s := &a.subjects[i]
		for _, packets := range channels(s.trace().sent) {
			usual := usualPassed(packets)
			for _, list := range lists {
				f, unit := bySequence(list, packets, int64(a.base), a.log.quantum)
				if unit == 0 || f.share < shareLeast || math.Abs(f.rate-1) > skewMost || f.noise > usual/2 {
					continue
				}
				x := a.aligned(s, Sequences, &f, unit)
				if f.proven() && (found == nil || f.agree > found.fit.agree) {
					found = x
				}
				a.keep(x)
			}
		}
	}
	return found
}

// channels splits packets by what they count in.
func channels(list []passed) (out [][]passed) {
	by := map[uint8][]passed{}
	var order []uint8
	for _, p := range list {
		if by[p.channel] == nil {
			order = append(order, p.channel)
		}
		by[p.channel] = append(by[p.channel], p)
	}
	for _, c := range order {
		out = append(out, by[c])
	}
	return out
}

// usualPassed returns the median interval of packets in seconds.
func usualPassed(list []passed) float64 {
	times := make([]float64, len(list))
	for i := range list {
		times[i] = float64(list[i].at) / 1e9
	}
	slices.Sort(times)
	return usualGap(times)
}

// keep remembers a fit that is not proven, for the clocks of the hosts may agree.
func (a *aligner) keep(x *Aligned) {
	if a.best == nil || x.atWall() && !a.best.atWall() {
		a.best = x
	}
}

// aligned returns a log with its place.
func (a *aligner) aligned(s *subject, m Method, f *fit, unit float64) *Aligned {
	x := &Aligned{
		Log: a.log, Method: m, Certainty: machine.Likely, Flow: s.flow.flow, Side: s.side, Matched: f.n, Far: !s.near,
		fit: *f, unit: unit, base: a.base,
	}
	if !s.near {
		n, _ := s.flow.flow.Network(s.side)
		trip := n.RTT
		if other, _ := s.flow.flow.Network(s.side.Other()); trip < 0 {
			trip = other.RTT
		}
		if trip >= 0 && s.flow.flow.Facts().Vantage != machine.VantageUnknown {
			x.way = trip / 2
		} else {
			x.Far, x.Unplaced, x.Certainty = false, true, machine.Possible
		}
	}
	return x
}

// atWall reports whether the log's times, taken as times since 1970, agree with the capture's.
func (a *Aligned) atWall() bool { return math.Abs(a.Offset()) <= wallClock.Seconds() }

// times returns when packets passed, in seconds, sorted.
func (a *aligner) times(lists ...[]passed) (out tally) {
	for _, list := range lists {
		for i := range list {
			out = append(out, float64(int64(list[i].at-a.base))/1e9)
		}
	}
	slices.Sort(out)
	return out
}

// intervals tries the times of sends alone.
func (a *aligner) intervals() (found *Aligned) {
	events := a.log.sends(-1, -1)
	if len(events) < pairsLeast {
		return nil
	}
	for i := range a.subjects[:min(len(a.subjects), sidesByInterval)] {
		s := &a.subjects[i]
		packets := a.times(a.endpoint(s)...)
		for _, unit := range units {
			if a.log.Written && unit != 1 {
				continue
			}
			times := make([]float64, len(events))
			for k := range events {
				times[k] = events[k].t * unit
			}
			f, second := byIntervals(times, packets, a.log.quantum*unit)
			if f.n == 0 || f.share < matchedLeast || f.agree < agreeLeast {
				a.places = a.places || f.n > 0 && f.share >= matchedLeast
				continue
			}
			if f.agree < tellsApart*second || !f.proven() {
				a.places = true
				continue
			}
			if found == nil || f.agree > found.fit.agree {
				found = a.aligned(s, Intervals, &f, unit)
			}
		}
	}
	return found
}

// endpoint returns the packets of all flows of a side's address: one process sends them.
func (a *aligner) endpoint(s *subject) (lists [][]passed) {
	addr := s.flow.addr(s.side)
	for i := range a.subjects {
		if x := &a.subjects[i]; x.flow.addr(x.side) == addr {
			lists = append(lists, x.trace().datagrams)
		}
	}
	return lists
}

// counters tries counts of packets. It needs a tap at the side. A counter tells a time to one
// packet only, and the way to a tap elsewhere would add to that.
func (a *aligner) counters() (found *Aligned) {
	series := a.log.series()
	for i := range a.subjects[:min(len(a.subjects), sidesMost)] {
		s := &a.subjects[i]
		if !s.near || len(series) == 0 {
			break
		}
		counts := a.counts(s)
		slack := 2 * usualGap(counts[countSent][0])
		for k := range series {
			if meaningOf(a.log.Names[series[k].name]) != countSent {
				continue
			}
			for _, count := range counts[countSent] {
				f, unit := byCount(&series[k], count, 0)
				if unit == 0 {
					continue
				}
				x := a.aligned(s, Counters, &f, unit)
				a.keep(x)
				if !a.log.sameRun(series, counts, &f, unit, slack) {
					continue
				}
				if found != nil && found.Addr() != x.Addr() {
					return nil // two legs of one connection count alike
				}
				if found == nil || f.bound < found.fit.bound {
					found = x
				}
			}
		}
	}
	return found
}

// counts returns what the capture counts of a side.
func (a *aligner) counts(s *subject) map[meaning][]tally {
	t := s.trace()
	counts := map[meaning][]tally{
		countSent: {a.times(t.datagrams)}, countReceived: {a.times(t.counts[Received]), a.times(t.counts[Came])},
		countAcked: {a.times(t.counts[Acked])}, countLost: {a.times(t.counts[Lost])},
	}
	for _, packets := range channels(t.sent) {
		counts[countSent] = append(counts[countSent], a.times(packets))
	}
	return counts
}

// reason says why a log is not aligned.
func (a *aligner) reason() string {
	sends := len(a.log.sends(-1, -1))
	switch {
	case len(a.subjects) == 0:
		return "the capture has no flow of a known protocol that the log could be of"
	case a.best != nil && a.best.Method == Counters:
		return "its counters fit, and would fit any run at this pace: they are steady"
	case a.best != nil:
		return "its sequence numbers fit, and would fit any run at this pace: its intervals do not agree with those of " +
			"the packets"
	case a.places && !a.log.numbered():
		return "its sends fit at several places of the capture equally well: they are steady, and have no sequence numbers"
	case sends == 0 && len(a.log.series()) == 0:
		return `it has no sends ("event": "send"), and no counter of packets that grows`
	case sends > 0 && sends < pairsLeast && len(a.log.series()) == 0:
		return fmt.Sprintf("it has %d sends, and %d are the least", sends, pairsLeast)
	}
	return "neither its sends nor its counters fit the packets of a side: it may be the log of another run"
}
