package tui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/screens"
)

// command runs a line of the command line.
func (m *Model) command(text string) {
	name, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	if frame, err := parseFrame(name); err == nil && rest == "" {
		m.jumpFrame(frame)
		return
	}
	switch name {
	case "":
	case "q", "quit", "qa":
		m.leaveProgram()
	case "q!":
		m.quit, m.next = true, m.o.File
	case "n", "next":
		m.goFile(m.o.File + 1)
	case "N", "previous":
		m.goFile(m.o.File - 1)
	case "file":
		m.goFileNamed(rest)
	case "wq", "x":
		if m.saveShown(rest); m.saving != nil && !m.Bad {
			m.leaveProgram()
		}
	case "help":
		m.openHelp()
	case "filter", "break":
		if rest == "" && name == "filter" {
			m.filterBy(nil)
			return
		}
		f, err := m.o.Table.Compile(rest)
		switch {
		case err != nil:
			m.Fail("%v", err)
		case name == "filter":
			m.filterBy(f)
		default:
			m.runUntil(f, 1)
		}
	case "flow":
		n, err := strconv.Atoi(rest)
		if err != nil || n != 0 && m.Store.Flow(n) == nil {
			m.Fail("flow %q: expected the number of one of %s; 0 for all packets", rest,
				show.Plural(len(m.Store.Flows()), "flow"))
			return
		}
		m.Open(n)
	case "goto":
		frame, err := parseFrame(rest)
		if err != nil {
			m.Fail("%v", err)
			return
		}
		m.jumpFrame(frame)
	case "w", "save":
		m.saveShown(rest)
	case "columns":
		m.SetColumns(strings.Fields(strings.ReplaceAll(rest, ",", " ")))
	case "sort":
		m.sortByName(rest)
	case "theme":
		if !slices.Contains(draw.Themes, rest) {
			m.Fail("theme %q: expected %s", rest, strings.Join(draw.Themes, ", "))
			return
		}
		m.Layout.Theme = rest
	case "time":
		i := slices.Index(browser.TimeWords, rest)
		if i < 0 {
			m.Fail("time %q: expected %s", rest, strings.Join(browser.TimeWords, ", "))
			return
		}
		m.Layout.Time = i
	case "marks":
		m.listMarks()
	case "set":
		switch rest {
		case "follow":
			m.Follow = true
		case "nofollow":
			m.Follow = false
		default:
			m.Fail("set %q: expected follow or nofollow", rest)
		}
	case "replay":
		m.screens.Replay.With(m.Browser, rest)
	case "layout":
		m.keepLayout(rest)
	default:
		m.Fail("no command :%s (? lists them)", name)
	}
}

// jumpFrame selects a frame by its number.
func (m *Model) jumpFrame(frame machine.Ref) {
	if _, ok := m.Store.Find(frame); !ok {
		m.Fail("no frame %s: the capture has %s", m.Store.Frame(frame), show.Plural(m.Store.Len(), "frame"))
		return
	}
	m.JumpRef(frame)
}

// parseFrame parses FRAME or FILE:FRAME.
func parseFrame(s string) (machine.Ref, error) {
	file, frame, ok := strings.Cut(s, ":")
	if !ok {
		file, frame = "1", s
	}
	f, err := strconv.ParseUint(file, 10, 20)
	n, err2 := strconv.ParseUint(frame, 10, 39)
	if err != nil || err2 != nil || f == 0 || n == 0 {
		return 0, fmt.Errorf("frame %q: expected a number from 1, or FILE:FRAME", s)
	}
	return machine.MakeRef(int(f-1), n), nil
}

func (m *Model) listMarks() {
	if len(m.Marks) == 0 {
		m.Say("no marks: ma sets one")
		return
	}
	var letters []rune
	for r := range m.Marks {
		letters = append(letters, r)
	}
	slices.Sort(letters)
	var parts []string
	for _, r := range letters {
		where := m.Marks[r].View.String()
		if n := m.Marks[r].Entry; n >= 0 && n < m.Store.Len() {
			where += " frame " + m.Store.FrameAt(n)
		}
		parts = append(parts, string(r)+" "+where)
	}
	m.Say("%s", strings.Join(parts, "   "))
}

func (m *Model) sortByName(name string) {
	var names []string
	var found bool
	if m.View == browser.Messages {
		names, found = screens.MessageColumns, m.screens.Messages.SortBy(m.Browser, name)
	} else {
		names, found = screens.FlowColumns(), m.screens.Flows.SortBy(m.Browser, name)
	}
	if !found {
		m.Fail("no column %q: there are %s", name, strings.Join(names, ", "))
	}
}

func (m *Model) keepLayout(word string) {
	switch word {
	case "save":
		if err := saveLayout(m.Layout, m.o.Config); err != nil {
			m.Fail("%v", err)
			return
		}
		m.Say("kept in %s", m.o.Config)
	case "reset":
		*m.Layout = browser.Layout{}
		m.screens.Flows.ResetOrder()
	default:
		m.Fail("layout %q: expected save or reset", word)
	}
}
