package sim

import (
	"math/rand/v2"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Impairment applies a Path to what travels in one direction. It depends on no
// World and no socket. Its caller carries the bytes, in virtual or in real
// time, and asks it for the fate of each piece, in order of time. The same seed
// and names produce the same fates.
type Impairment struct {
	path  Path
	rng   *rand.Rand
	bad   bool            // the state of the Gilbert model
	free  machine.Instant // when the first hop is idle again
	ready machine.Instant // latest arrival so far, when none may overtake another
}

// Impair returns a path that carries datagrams between two hosts of a run.
func Impair(p Path, seed uint64, from, to string) *Impairment {
	return &Impairment{path: p, rng: Rand(seed, "path "+from+" to "+to)}
}

// ImpairStream returns a path that carries the segments of a stream.
func ImpairStream(p Path, seed uint64, from, to string) *Impairment {
	return &Impairment{path: p, rng: Rand(seed, "stream "+from+" to "+to)}
}

// Fate is what happens to one datagram, or to one attempt to carry a segment.
type Fate struct {
	Dropped bool            // the queue before the first hop was full; the other fields are then meaningless
	Leaves  machine.Instant // when it has left the first hop
	Travel  time.Duration   // from Leaves to the arrival, as if it were not lost

	Lost  bool
	Reach float64 // share of the way that it travelled; 1 when it arrived

	Twice      bool    // a copy of it arrives
	TwiceAt    float64 // share of the way at which it was duplicated
	CopyTravel time.Duration
}

// Datagram draws the fate of a datagram of size bytes, sent at now.
func (i *Impairment) Datagram(now machine.Instant, size int) Fate {
	f := Fate{Leaves: now, Reach: 1}
	if f.Lost = i.lose(now); f.Lost {
		f.Reach = i.rng.Float64() // below 1: the receiver's tap does not see a lost datagram
	}
	if i.path.Rate > 0 {
		wait, dropped := i.wait(now, size)
		if dropped {
			return Fate{Dropped: true}
		}
		f.Leaves = now.Add(wait)
	}
	f.Travel = i.travel(f.Leaves)
	if i.path.Duplicate > 0 && i.rng.Float64() < i.path.Duplicate {
		f.TwiceAt = i.rng.Float64()
		f.Twice = f.TwiceAt < f.Reach // otherwise it was lost before that
	}
	if f.Twice {
		// The copy takes its own time for the rest of the way.
		rest := share(i.travel(f.Leaves), 1-f.TwiceAt)
		f.CopyTravel = share(f.Travel, f.TwiceAt) + rest
		if i.path.InOrder {
			f.CopyTravel = max(f.CopyTravel, f.Travel)
		}
	}
	return f
}

// Segment returns the largest piece of a stream, in bytes.
func (i *Impairment) Segment() int {
	if i.path.Segment <= 0 {
		return 1460
	}
	return i.path.Segment
}

// Carry carries a segment of a stream that is sent at now, with as many
// attempts as it needs. It returns when the segment and all earlier ones have
// arrived. It calls watch for each attempt. Like TCP it gives up after fifteen
// attempts: some paths lose everything.
func (i *Impairment) Carry(now machine.Instant, watch func(Fate)) (at machine.Instant, arrived bool) {
	resend := i.path.Resend
	if resend <= 0 {
		resend = 200 * time.Millisecond
	}
	for range 15 {
		f := Fate{Leaves: now, Travel: i.path.Delay, Reach: 1}
		if i.path.Jitter > 0 {
			f.Travel += time.Duration(i.rng.Int64N(int64(i.path.Jitter) + 1))
		}
		if f.Lost = i.lose(now); f.Lost {
			f.Reach = i.rng.Float64()
		}
		watch(f)
		if !f.Lost {
			i.ready = max(i.ready, now.Add(f.Travel))
			return i.ready, true
		}
		now, resend = now.Add(resend), 2*resend
	}
	return 0, false
}

// lose decides whether a datagram sent at an instant is lost.
func (i *Impairment) lose(at machine.Instant) (lost bool) {
	if g := i.path.Bursts; g.ToBad > 0 {
		if i.bad {
			i.bad = i.rng.Float64() >= g.ToGood
		} else {
			i.bad = i.rng.Float64() < g.ToBad
		}
		lost = i.bad && (g.Loss == 0 || i.rng.Float64() < g.Loss)
	}
	if i.path.Loss > 0 && i.rng.Float64() < i.path.Loss {
		lost = true
	}
	for _, o := range i.path.Outages {
		lost = lost || o.covers(at)
	}
	return lost
}

// travel draws the travel time of a datagram that leaves at start.
func (i *Impairment) travel(start machine.Instant) time.Duration {
	t := i.path.Delay
	if i.path.Jitter > 0 {
		t += time.Duration(i.rng.Int64N(int64(i.path.Jitter) + 1))
	}
	if i.path.InOrder {
		i.ready = max(i.ready, start.Add(t))
		t = i.ready.Sub(start)
	}
	return t
}

// wait returns how long a datagram waits for the first hop and occupies it. It
// returns dropped when the queue is full.
func (i *Impairment) wait(now machine.Instant, size int) (long time.Duration, dropped bool) {
	limit := i.path.Queue
	if limit == 0 {
		limit = 64 << 10
	}
	i.free = max(i.free, now)
	waiting := int(int64(i.free-now) * int64(i.path.Rate) / 8 / int64(time.Second))
	if waiting+size > limit {
		return 0, true
	}
	i.free = i.free.Add(time.Duration(int64(size) * 8 * int64(time.Second) / int64(i.path.Rate)))
	return i.free.Sub(now), false
}
