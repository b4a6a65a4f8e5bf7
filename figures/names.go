package figures

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Figure is one figure of a flow's side.
type Figure uint8

// The figures. The side is the sender, and the way is from it to its peer.
const (
	Loss Figure = iota
	LossLeast
	LossMost
	RTT
	RTT95
	Jitter
	Stall
	Resends
	Bandwidth
	BandwidthPeak
	Arrival50
	Arrival95
	Arrival99
	HOL
	Findings
	Errors
	Warnings
	Notes
	Worse
	figures
)

// Unit is what a figure counts in. It decides how a figure is written.
type Unit uint8

const (
	Share Unit = iota // 0..1, written as a percentage
	Time              // nanoseconds
	Rate              // bytes a second
	Count
)

// Spec describes a figure.
type Spec struct {
	Name    string
	Unit    Unit
	Doc     string
	Compare bool // only a comparison of captures has it
}

var specs = [figures]Spec{
	Loss:          {"loss", Share, "packets that were lost on the way to the peer: the best single figure", false},
	LossLeast:     {"loss.least", Share, "the least loss that the capture proves", false},
	LossMost:      {"loss.most", Share, "the most loss that the capture allows", false},
	RTT:           {"rtt", Time, "mean round trip of the side's packets, from capture of packet to capture of ack", false},
	RTT95:         {"rtt.p95", Time, "95th percentile of these round trips", false},
	Jitter:        {"jitter", Time, "mean difference between successive round trips", false},
	Stall:         {"stall", Time, "longest time in which the side sent nothing, though it usually sends", false},
	Resends:       {"resends", Share, "what was sent again, as a share of what was sent", false},
	Bandwidth:     {"bandwidth", Rate, "payload bytes a second, over the whole flow", false},
	BandwidthPeak: {"bandwidth.peak", Rate, "payload bytes in the busiest second", false},
	Arrival50:     {"arrival.p50", Time, "median time from a message's first sending to its arrival", false},
	Arrival95:     {"arrival.p95", Time, "95th percentile of these times", false},
	Arrival99:     {"arrival.p99", Time, "99th percentile of these times", false},
	HOL:           {"hol", Time, "longest wait of a complete message for an earlier one (head-of-line blocking)", false},
	Findings:      {"findings", Count, "findings of any severity", false},
	Errors:        {"errors", Count, "findings of severity error", false},
	Warnings:      {"warnings", Count, "findings of severity warn", false},
	Notes:         {"notes", Count, "findings of severity note", false},
	Worse:         {"worse", Count, "differences that are real and for the worse", true},
}

// Spec returns the description of a figure.
func (f Figure) Spec() *Spec { return &specs[f] }

// String returns the name of a figure.
func (f Figure) String() string { return specs[f].Name }

// Way names the way that a side's packets take: "A→B".
func Way(from machine.Side) string { return [2]string{"A→B", "B→A"}[from] }

// All returns every figure, or without those of comparisons.
func All(compare bool) (list []Figure) {
	for f := range figures {
		if compare || !specs[f].Compare {
			list = append(list, f)
		}
	}
	return list
}

// Names returns the names of All.
func Names(compare bool) (names []string) {
	for _, f := range All(compare) {
		names = append(names, specs[f].Name)
	}
	return names
}

func lookup(name string) (Figure, bool) {
	i := slices.IndexFunc(specs[:], func(s Spec) bool { return s.Name == name })
	return Figure(max(i, 0)), i >= 0
}

// Value is a figure with its bounds: not below Least and not above Most. They are equal
// where one number is known. The zero value is unknown.
type Value struct {
	Known       bool
	Least, Most float64
}

// Exactly returns a value that one number says. A negative one means unknown, as in
// package analyze.
func Exactly(v float64) Value { return Value{v >= 0, v, v} }

// Text formats a value in its unit: "7.3%", "84 ms", "12.5 kB/s", "between 3% and 11%", or
// "?" for an unknown one.
func (u Unit) Text(v Value) string {
	switch {
	case !v.Known:
		return "?"
	case v.Least == v.Most:
		return u.Format(v.Least)
	}
	return "between " + u.Format(v.Least) + " and " + u.Format(v.Most)
}

// Format formats a number in its unit.
func (u Unit) Format(v float64) string {
	switch u {
	case Share:
		return digits(100*v) + "%"
	case Time:
		if math.Abs(v) >= float64(10*time.Second) {
			return digits(v/1e9) + " s"
		}
		return digits(v/1e6) + " ms"
	case Rate:
		switch {
		case math.Abs(v) >= 1e6:
			return digits(v/1e6) + " MB/s"
		case math.Abs(v) >= 1e3:
			return digits(v/1e3) + " kB/s"
		}
		return digits(v) + " B/s"
	}
	return digits(v)
}

// Change formats a difference with its sign. That of two shares is in percentage points.
func (u Unit) Change(v float64) string {
	sign := "+"
	if v < 0 {
		sign, v = "-", -v
	}
	if u == Share {
		return sign + digits(100*v) + " points"
	}
	return sign + u.Format(v)
}

// Range formats two numbers in one unit: "84 → 112 ms".
func (u Unit) Range(from, to float64) string {
	x, y := u.Format(from), u.Format(to)
	number, unit, _ := strings.Cut(x, " ")
	if _, other, ok := strings.Cut(y, " "); ok && other == unit {
		x = number
	}
	return x + " → " + y
}

// Bounds formats the bounds of a difference: "+19 to +36 ms".
func (u Unit) Bounds(least, most float64) string {
	x, y := u.Change(least), u.Change(most)
	number, unit, _ := strings.Cut(x, " ")
	if _, other, ok := strings.Cut(y, " "); ok && other == unit {
		x = number
	}
	return x + " to " + y
}

// digits formats a number with about three digits, and none below a hundredth.
func digits(v float64) string {
	places := 2
	switch a := math.Abs(v); {
	case a >= 99.95 || a == math.Trunc(a):
		places = 0
	case a >= 9.995:
		places = 1
	}
	return strconv.FormatFloat(v, 'f', places, 64)
}
