package tui

import (
	"fmt"

	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/store"
)

// saving is the job that saves packets, and its file's name.
type saving struct {
	path string
	*store.Saving
}

// saveShown starts to save the packets on screen to a capture file.
func (m *Model) saveShown(path string) {
	switch {
	case path == "":
		m.Fail("w: expected a file name")
		return
	case m.o.Save == nil:
		m.Fail("saving is not possible here")
		return
	case m.FilterJob != nil && !m.FilterJob.Done() && !m.Store.Growing():
		m.Fail("the filter is still at work: try again when it is through")
		return
	case m.saving != nil && !m.saving.Done:
		m.Fail("%s is still being written", m.saving.path)
		return
	}
	out, err := m.o.Save(path, m.Store.Input())
	if err != nil {
		m.Fail("%v", err)
		return
	}
	m.saving = &saving{path, m.Store.Save(out, m.FilterJob)}
}

// leaveProgram quits. If a file is being saved, it quits when the file is
// complete; a second call quits at once.
func (m *Model) leaveProgram() { m.leaveFor(m.o.File) }

// leaveFor quits in the same way, to open another capture. The current file
// means none.
func (m *Model) leaveFor(file int) {
	m.next = file
	if x := m.saving; x != nil && !x.Done && !m.leaving {
		m.leaving = true
		m.Say("%s is being written: leaving when it is whole; again to leave now", x.path)
		return
	}
	m.quit = true
}

// settleSaving reports the end of saving.
func (m *Model) settleSaving() {
	x := m.saving
	if x == nil || !x.Done {
		return
	}
	m.saving = nil
	if x.Err != nil {
		m.leaving = false
		m.Fail("%s: %v", x.path, x.Err)
		return
	}
	m.quit = m.quit || m.leaving
	m.Say("%s written to %s", show.Plural(x.Total, "packet"), x.path)
}

// progress describes the state of saving in a few words. It returns "" if
// nothing is saved.
func (x *saving) progress() string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf("saving %d%%  ", 100*x.Written/max(x.Total, 1))
}
