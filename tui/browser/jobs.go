package browser

// job is a search along the capture that goes on in the background.
type job struct {
	from Place // a user who has moved on does not wait for it
	over bool
}

// EndJob stops the search that goes on; false where there is none.
func (br *Browser) EndJob() bool {
	if br.job == nil || br.job.over {
		return false
	}
	br.job.over = true
	return true
}

// RunJob runs step, which reports whether it is through with its work, until then:
// at once where a share is enough, else in the background.
func (br *Browser) RunJob(what string, step func() bool) {
	br.EndJob()
	if step() {
		return
	}
	j := &job{from: br.Here()}
	br.job = j
	br.Say("%s …  (Ctrl-C stops it)", what)
	s := br.Store
	s.Work(func() {
		s.Parts(func() bool {
			s.Turn()
			j.over = j.over || j.from != br.Here() || step()
			s.Poke()
			return !j.over
		})
	})
}
