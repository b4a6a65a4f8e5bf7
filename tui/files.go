package tui

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/show"
)

// goFile leaves for another capture, like :next in vim.
func (m *Model) goFile(n int) {
	switch {
	case len(m.o.Files) < 2:
		m.Fail("there is one capture only")
	case n < 0:
		m.Fail("this is the first of %s", show.Plural(len(m.o.Files), "capture"))
	case n >= len(m.o.Files):
		m.Fail("this is the last of %s", show.Plural(len(m.o.Files), "capture"))
	case n == m.o.File:
		m.Say("%s", m.fileTitle())
	default:
		m.leaveFor(n)
	}
}

// goFileNamed leaves for a capture, which text names by its position from 1,
// its path or its base name.
func (m *Model) goFileNamed(text string) {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		m.goFile(n - 1)
		return
	}
	found := -1
	for i, name := range m.o.Files {
		if name == text || filepath.Base(name) == text {
			if found >= 0 {
				m.Fail("file %q: several captures have that name: expected a position from 1", text)
				return
			}
			found = i
		}
	}
	if found < 0 {
		m.Fail("file %q: expected a position from 1 to %d, or the name of a capture", text, max(1, len(m.o.Files)))
		return
	}
	m.goFile(found)
}

// fileTitle says which of several captures is open. It returns "" if there is
// only one.
func (m *Model) fileTitle() string {
	if len(m.o.Files) < 2 {
		return ""
	}
	var b strings.Builder
	b.WriteString("file " + strconv.Itoa(m.o.File+1) + " of " + strconv.Itoa(len(m.o.Files)) + ": ")
	b.Write(show.AppendClean(nil, m.o.Files[m.o.File]))
	return b.String()
}
