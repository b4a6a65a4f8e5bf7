package sim

import (
	"math/rand/v2"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// Impairment is a path at work on what travels one way. It knows no world and
// no socket: whoever carries the bytes, in virtual time or in real, asks it for
// the fate of each piece, in order of time. The same seed and names give the
// same fates to the same pieces.
type Impairment struct {
	path  Path
	rng   *rand.Rand
	bad   bool            // the Gilbert state
	free  machine.Instant // when the first hop is idle again
	ready machine.Instant // latest arrival so far, where none may overtake
}

// Impair returns a path that carries datagrams between two hosts of a run.
func Impair(p Path, seed uint64, from, to string) *Impairment {
	return &Impairment{path: p, rng: Rand(seed, "path "+from+" to "+to)}
}

// ImpairStream returns a path that carries the segments of a stream.
func ImpairStream(p Path, seed uint64, from, to string) *Impairment {
	return &Impairment{path: p, rng: Rand(seed, "stream "+from+" to "+to)}
}

// Fate is what becomes of one datagram, or of one attempt to bring a segment over.
type Fate struct {
	Dropped bool            // before the first hop: the queue was full; the rest is then without meaning
	Leaves  machine.Instant // when the first hop has let it through
	Travel  time.Duration   // from then until it is there, were it not lost

	Lost  bool
	Reach float64 // share of the way that it came, 1 for all of it

	Twice      bool    // a copy of it arrives
	TwiceAt    float64 // share of the way at which it was doubled
	CopyTravel time.Duration
}

// Datagram draws the fate of a datagram of size bytes that is sent at now.
func (i *Impairment) Datagram(now machine.Instant, size int) Fate {
	f := Fate{Leaves: now, Reach: 1}
	if f.Lost = i.lose(now); f.Lost {
		f.Reach = i.rng.Float64() // below 1: what is lost is not seen by the receiver's tap
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
		f.Twice = f.TwiceAt < f.Reach // else it was lost before that
	}
	if f.Twice {
		// The copy takes its own time for what is left of the way.
		rest := share(i.travel(f.Leaves), 1-f.TwiceAt)
		f.CopyTravel = share(f.Travel, f.TwiceAt) + rest
		if i.path.InOrder {
			f.CopyTravel = max(f.CopyTravel, f.Travel)
		}
	}
	return f
}

// Segment returns the most bytes that travel in one piece of a stream.
func (i *Impairment) Segment() int {
	if i.path.Segment <= 0 {
		return 1460
	}
	return i.path.Segment
}

// Carry brings a segment of a stream over that is sent at now, however often it
// must be sent, and gives when it and all before it are there. Each attempt is
// told to watch. A path that loses everything for good would never let go of
// the segment; TCP gives up after some fifteen attempts, and so does this.
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

// lose decides whether what is sent at instant at is lost.
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

// travel draws the time that a datagram takes that leaves at start.
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

// wait returns how long a datagram waits for the first hop and is being put on
// it, or that the queue is full.
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
