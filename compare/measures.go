package compare

import (
	"time"

	"github.com/ackscope/ackscope/figures"
)

// figure says how a figure is compared.
type figure struct {
	is     figures.Figure
	weight float64 // its share of alpha
	least  float64 // smaller changes do not matter
	timed  bool    // how frames fall on each other changes it
	pooled bool    // it has a meaning for both ways together
	typed  bool    // and for a type of messages
	ratio  func(x *sideSlice, kind string, seconds float64) (number, per float64)
	// longest is set for a figure that is the longest of all times. One time says nothing
	// about chance.
	longest func(x *longest) time.Duration
}

const millisecond = 1e6

// compared lists the figures. Resends have the largest share of alpha, as their differences
// are the hardest to tell from chance.
var compared = []figure{
	{
		is: figures.Loss, weight: 1, least: 0.002,
		ratio: loss(lossOneWay),
	},
	{
		is: figures.RTT, weight: 0.5, least: millisecond, timed: true,
		ratio: func(x *sideSlice, _ string, _ float64) (float64, float64) {
			return float64(x.tripSum), float64(x.trips)
		},
	},
	{
		is: figures.Jitter, weight: 0.25, least: millisecond, timed: true,
		ratio: func(x *sideSlice, _ string, _ float64) (float64, float64) {
			return float64(x.changes), float64(x.trips)
		},
	},
	{is: figures.Resends, weight: 2, least: 0.001, pooled: true, typed: true, ratio: resends(0, 0)},
	{is: figures.Arrival50, weight: 0.25, least: millisecond, timed: true, typed: true},
	{is: figures.Arrival95, weight: 0.5, least: millisecond, timed: true, typed: true},
	{is: figures.Arrival99, weight: 0.25, least: millisecond, timed: true, typed: true},
	{
		is: figures.Bandwidth, weight: 0.25, least: 20,
		ratio: func(x *sideSlice, _ string, seconds float64) (float64, float64) { return float64(x.bytes), seconds },
	},
	{is: figures.Stall, longest: func(x *longest) time.Duration { return x.stall }},
	{is: figures.HOL, longest: func(x *longest) time.Duration { return x.wait }},
}

// loss returns the ratio of lost packets, by how they are counted.
func loss(kind int) func(x *sideSlice, _ string, _ float64) (number, per float64) {
	return func(x *sideSlice, _ string, _ float64) (number, per float64) {
		lost := float64(x.lost[kind])
		if kind == lossBounded {
			lost += float64(x.open) / 2
		}
		return lost, float64(x.settled[kind])
	}
}

// resends returns the ratio of resends. The factors subtract resends that other frames would
// have spared, and add those that they would have caused.
func resends(fewer, further float64) func(x *sideSlice, kind string, _ float64) (number, per float64) {
	return func(x *sideSlice, kind string, _ float64) (number, per float64) {
		for name, t := range x.types {
			if kind == "" || kind == name {
				number += float64(t.resends) - fewer*float64(t.fewer) + further*float64(t.further)
				per += float64(t.messages)
			}
		}
		return number, per
	}
}

// lossOf chooses how the losses of a way are counted. Where their bounds are near each other, it
// takes these, else the packets of known fate. It returns false if one capture has those of one
// way, and the other those of the way there and back.
func (p *pair) lossOf(w way) (kind int, ok bool) {
	var kinds [2]int
	told := true
	for i, s := range []*sample{p.before, p.after} {
		settled, open := [lossKinds]int64{}, int64(0)
		for j := range s.units {
			x := s.units[j].ways[w]
			for k, n := range x.settled {
				settled[k] += n
			}
			open += x.open
		}
		if kinds[i] = lossOneWay; settled[lossRound] > settled[lossOneWay] {
			kinds[i] = lossRound
		}
		told = told && settled[lossBounded] >= settledFew && float64(open) <= toldWithin*float64(settled[lossBounded])
	}
	if told {
		return lossBounded, true
	}
	return kinds[0], kinds[0] == kinds[1]
}

// toldWithin is how far apart the bounds of a loss may be to count it by them.
// Source: definition, as of package analyze: a tap tells a loss to one point
const toldWithin = 0.01

// settledFew is how many packets of known fate show a loss.
// Source: definition, the fewest packets of known fate that a loss is compared over
const settledFew = 200
