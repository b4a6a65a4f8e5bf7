package tui

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
	s.Work(func() {
		s.Parts(func() bool {
			s.Turn()
			j.over = j.over || j.from != m.here() || step()
			s.Poke()
			return !j.over
		})
	})
}
