package machine

import "time"

// Fastest keeps the shortest of some measured times. An example is how soon a
// side answers what passes the tap. The zero value holds no times.
type Fastest struct {
	count  int
	rising [4]time.Duration // the shortest times, in rising order
}

// strayShare is how many times there are for each that is passed over. One time in so many can
// be too short. For example, the capture missed the first copy of what was answered.
// Source: measured, TestMarginsRiptide
const strayShare = 256

// NearProof is how soon a side must answer what passes the tap, at the soonest, to be shown at
// the tap. At less than that nothing tells it from a side that is a little way off. A side that
// reads its socket seldom, or is seldom sent to, may take longer.
// Source: measured, TestMarginsGaffer
const NearProof = 4 * time.Millisecond

// Add adds one measured time.
func (f *Fastest) Add(d time.Duration) {
	i := min(f.count, len(f.rising))
	for ; i > 0 && f.rising[i-1] > d; i-- {
		if i < len(f.rising) {
			f.rising[i] = f.rising[i-1]
		}
	}
	if i < len(f.rising) {
		f.rising[i] = d
	}
	f.count++
}

// Count returns how many times were added.
func (f *Fastest) Count() int { return f.count }

// Least returns the shortest time. Of many times it skips the very shortest
// ones, which can be outliers. It returns 0 when no time was added.
func (f *Fastest) Least() time.Duration { return f.rising[min(f.count/strayShare, len(f.rising)-1)] }

// Second returns the next time after Least, or 0 when there is none.
func (f *Fastest) Second() time.Duration {
	return f.rising[min(1+f.count/strayShare, len(f.rising)-1)]
}
