package tui

// What a key or a drawing does on the UI's thread is bounded by the screen and by
// a share of steps, whatever the length of the capture. What takes longer goes on
// in the background, a share at a time:
//
//	10000000]   steps along a flow of a million packets: the first share at once,
//	            the others beside the drawing; any key that moves on ends it
//
// A step is a look at an entry of the index, some nanoseconds; what costs more
// counts as more steps.
const (
	shareSteps = 1 << 20 // at 10 ns a step 10 ms: a fifth of what a user notices
	readSteps  = 256     // a frame is read from the file and decoded: some µs
	matchSteps = 32      // a filter is asked about what is in memory, or a row is worded
	// sortAtOnce is how many rows are sorted at once: some 13 comparisons each.
	sortAtOnce = 8192
	// flowsAtOnce is how many flows are gone through at once: their figures cost
	// about as much as a match each.
	flowsAtOnce = 4096
)

// turn begins what a key, a click or a drawing may spend.
func (s *Store) turn() { s.spent = 0 }

// spend counts steps; false once the share is spent. The step that spends the last
// of it is still done.
func (s *Store) spend(steps int) bool {
	s.spent += steps
	return s.spent <= s.share
}

// job is a search along the capture that goes on in the background.
type job struct {
	from location // a user who has moved on does not wait for it
	over bool
}

// running reports whether it has not ended.
func (j *job) running() bool { return j != nil && !j.over }

// end stops it.
func (j *job) end() {
	if j != nil {
		j.over = true
	}
}

// goOn runs step, which reports whether it is through with its work, until then:
// at once where a share is enough, else in the background.
func (m *Model) goOn(what string, step func() bool) {
	m.job.end()
	if step() {
		return
	}
	j := &job{from: m.here()}
	m.job = j
	m.say("%s …  (Ctrl-C stops it)", what)
	s := m.store
	s.work(func() {
		for over := false; !over; {
			select {
			case <-s.stop:
				return
			default:
			}
			s.Lock()
			s.turn()
			if j.over || j.from != m.here() {
				j.over = true
			} else {
				j.over = step()
			}
			over = j.over
			s.poke()
			s.Unlock()
		}
	})
}

// reach says how a look for another entry ended.
type reach uint8

const (
	reachFound reach = iota
	reachEnd         // there is none
	reachLater       // the share was spent: it goes on from there
)
