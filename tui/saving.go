package tui

import (
	"fmt"

	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/store"
)

// saving is packets on their way into a capture file of some name.
type saving struct {
	path string
	*store.Saving
}

// saveShown begins to write the packets shown to a capture file.
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

// leaveProgram ends the program; while packets are being saved once they are, so
// that the file is whole. Who asks again leaves at once.
func (m *Model) leaveProgram() { m.leaveFor(m.o.File) }

// leaveFor does so to go to another capture; to none where it is this one.
func (m *Model) leaveFor(file int) {
	m.next = file
	if x := m.saving; x != nil && !x.Done && !m.leaving {
		m.leaving = true
		m.Say("%s is being written: leaving when it is whole; again to leave now", x.path)
		return
	}
	m.quit = true
}

// settleSaving tells how saving has ended.
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

// progress says in a few words how far saving is; empty for nothing to save.
func (x *saving) progress() string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf("saving %d%%  ", 100*x.Written/max(x.Total, 1))
}
