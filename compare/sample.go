package compare

import (
	"math"
	"math/rand/v2"
	"time"
)

// way is the direction of packets, by who sent them: the client's to the server, the
// server's to the client, or both. Where the capture does not tell the roles, side A is
// the client.
type way int

const (
	toServer way = iota
	toClient
	bothWays
)

func (w way) String() string { return [...]string{"A→B", "B→A", "both ways"}[w] }

// unit is what the bootstrap draws: a flow, or a slice of time of one.
type unit struct {
	ways    [2]*sideSlice
	seconds float64
}

// sample is the units of one protocol of one capture.
type sample struct {
	flows    int
	byFlow   bool
	units    []unit
	block    int // units that follow each other and are drawn together
	blocks   float64
	steps    [2][]*steps // of both ends
	longest  [2]longest
	drawn    [][]float64
	arrivals map[target]*arrivals
}

// longest is the longest times of a way. Each is noTime if it is not known.
type longest struct{ stall, wait time.Duration }

// target says of which messages a figure is: those of a way, and of a type, or of all types
// for "".
type target struct {
	way  way
	kind string
}

// manyFlows is how many flows make a sample of flows. Fewer are compared by slices of time.
// Source: definition, so many flows give an estimate of how much flows differ
const manyFlows = 10

// blocksLeast is how many blocks a sample needs. With fewer, chance cannot be estimated.
// Source: definition, the fewest values for a standard error within a third
const blocksLeast = 6

// blockLeast is how many seconds a block covers, unless the capture is short. Losses and delays of
// times that are near each other are alike.
// Source: definition, blocks of a bootstrap over time
const blockLeast = 5

// sampleOf returns the units of a protocol. byFlow says that a unit is a flow. The map ports has
// the number of flows of each port: the server's port is in more of them.
func (c *Capture) sampleOf(protocol string, byFlow bool, ports map[uint16]int, seed uint64) *sample {
	s := &sample{byFlow: byFlow, block: 1, arrivals: map[target]*arrivals{}}
	s.longest = [2]longest{{noTime, noTime}, {noTime, noTime}}
	shortest := math.Inf(1)
	for _, f := range c.flows {
		if f.protocol != protocol {
			continue
		}
		s.flows++
		swap := ports[f.ports[0]] > ports[f.ports[1]]
		for side, x := range f.steps {
			if swap {
				side = 1 - side
			}
			s.steps[side] = append(s.steps[side], x)
		}
		for side := range f.stall {
			x := &s.longest[side]
			if swap {
				x = &s.longest[1-side]
			}
			x.stall, x.wait = max(x.stall, f.stall[side]), max(x.wait, f.wait[side])
		}
		list := f.slices
		if byFlow {
			whole := slice{}
			for i := range list {
				for side := range whole {
					whole[side].join(&list[i][side])
				}
			}
			list = []slice{whole}
		}
		for i := range list {
			u := unit{ways: [2]*sideSlice{&list[i][0], &list[i][1]}, seconds: f.width.Seconds()}
			if swap {
				u.ways[0], u.ways[1] = u.ways[1], u.ways[0]
			}
			if i == len(list)-1 {
				u.seconds = max(0.001, f.last.Sub(f.first).Seconds()-float64(i)*f.width.Seconds())
			}
			if !byFlow {
				shortest = min(shortest, f.width.Seconds())
			}
			s.units = append(s.units, u)
		}
	}
	if !byFlow && len(s.units) > 0 {
		// A short capture has shorter blocks, rather than too few.
		s.block = max(2, min(int(math.Ceil(blockLeast/shortest)), len(s.units)/blocksLeast))
	}
	s.blocks = float64(len(s.units)) / float64(s.block)
	if s.blocks >= blocksLeast {
		s.drawn = weights(rand.New(rand.NewPCG(seed, 0x5eed)), len(s.units), s.block)
	}
	return s
}

// ratio returns a figure that is a ratio of sums, over all units and over each draw.
func (s *sample) ratio(w way, of func(*sideSlice, float64) (number, per float64)) (point float64, list []float64) {
	numbers, pers := make([]float64, len(s.units)), make([]float64, len(s.units))
	number, per := 0.0, 0.0
	for i := range s.units {
		u := &s.units[i]
		for side, x := range u.ways {
			if w == bothWays || int(w) == side {
				n, p := of(x, u.seconds)
				numbers[i], pers[i] = numbers[i]+n, pers[i]+p
			}
		}
		number, per = number+numbers[i], per+pers[i]
	}
	if per <= 0 {
		return math.NaN(), nil
	}
	for _, drawn := range s.drawn {
		n, p := 0.0, 0.0
		for i, times := range drawn {
			n, p = n+times*numbers[i], p+times*pers[i]
		}
		if p > 0 {
			list = append(list, n/p)
		}
	}
	return number / per, list
}

// kinds counts the messages of a way by type.
func (s *sample) kinds(w way) map[string]int64 {
	counts := map[string]int64{}
	for i := range s.units {
		for name, t := range s.units[i].ways[w].types {
			counts[name] += max(t.messages, int64(t.arrival.Count()))
		}
	}
	return counts
}
