package machine

import "time"

// Fastest keeps the shortest of the times that were measured: how soon a side
// answers what passes the tap. The zero Fastest has none.
type Fastest struct {
	count  int
	rising [4]time.Duration // the shortest ones
}

// strayShare is how many times there are for each that is passed over: one in
// so many can be too short, as where the capture missed the first copy of what
// was answered.
const strayShare = 256

// Add takes a time.
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

// Count returns how many times there were.
func (f *Fastest) Count() int { return f.count }

// Least returns the shortest time; of many, not the very shortest, which can be one
// that strays. It is 0 where there was none.
func (f *Fastest) Least() time.Duration { return f.rising[min(f.count/strayShare, len(f.rising)-1)] }

// Second returns the time after Least; 0 where there was none.
func (f *Fastest) Second() time.Duration {
	return f.rising[min(1+f.count/strayShare, len(f.rising)-1)]
}
