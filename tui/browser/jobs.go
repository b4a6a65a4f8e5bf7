package browser

// job is a search along the capture that runs in the background.
type job struct {
	from Place // the job ends when the user has moved on
	over bool
}

// EndJob stops the running job. It returns false when there is none.
func (br *Browser) EndJob() bool {
	if br.job == nil || br.job.over {
		return false
	}
	br.job.over = true
	return true
}

// RunJob calls step until it returns true. The first call is made at once; the
// others run in the background.
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
			s.Redraw()
			return !j.over
		})
	})
}
