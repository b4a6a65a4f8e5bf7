package tui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
	"github.com/ackscope/ackscope/tui/draw"
)

// command carries out a line of the command line.
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
		if m.saveShown(rest); m.saving != nil && !m.bad {
			m.leaveProgram()
		}
	case "help":
		m.help, m.text.List = true, draw.List{}
	case "filter", "break":
		if rest == "" && name == "filter" {
			m.setFilter(nil)
			return
		}
		f, err := m.o.Table.Compile(rest)
		switch {
		case err != nil:
			m.fail("%v", err)
		case name == "filter":
			m.setFilter(f)
		default:
			m.breakWhen(f, 1)
		}
	case "flow":
		n, err := strconv.Atoi(rest)
		if err != nil || n != 0 && m.store.Flow(n) == nil {
			m.fail("flow %q: expected the number of one of %s; 0 for all packets", rest, show.Plural(len(m.store.Flows()), "flow"))
			return
		}
		m.open(n)
	case "goto":
		frame, err := parseFrame(rest)
		if err != nil {
			m.fail("%v", err)
			return
		}
		m.jumpFrame(frame)
	case "w", "save":
		m.saveShown(rest)
	case "columns":
		m.setColumns(strings.Fields(strings.ReplaceAll(rest, ",", " ")))
	case "sort":
		m.sortByName(rest)
	case "theme":
		if !slices.Contains(draw.Themes, rest) {
			m.fail("theme %q: expected %s", rest, strings.Join(draw.Themes, ", "))
			return
		}
		m.config.Theme = rest
	case "time":
		i := slices.Index(timeWords, rest)
		if i < 0 {
			m.fail("time %q: expected %s", rest, strings.Join(timeWords, ", "))
			return
		}
		m.config.Time = i
	case "marks":
		m.listMarks()
	case "set":
		switch rest {
		case "follow":
			m.packet.follow = true
		case "nofollow":
			m.packet.follow = false
		default:
			m.fail("set %q: expected follow or nofollow", rest)
		}
	case "replay":
		m.replayWith(rest)
	case "layout":
		m.layout(rest)
	default:
		m.fail("no command :%s (? lists them)", name)
	}
}

// jumpFrame goes to a frame that was asked for.
func (m *Model) jumpFrame(frame machine.Ref) {
	if _, ok := m.store.Find(frame); !ok {
		m.fail("no frame %s: the capture has %s", m.store.Frame(frame), show.Plural(m.store.Len(), "frame"))
		return
	}
	m.jumpRef(frame)
}

// parseFrame reads FRAME or FILE:FRAME.
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
	if len(m.marks) == 0 {
		m.say("no marks: ma sets one")
		return
	}
	var letters []rune
	for r := range m.marks {
		letters = append(letters, r)
	}
	slices.Sort(letters)
	var parts []string
	for _, r := range letters {
		where := viewNames[m.marks[r].view]
		if n := m.marks[r].entry; n >= 0 && n < m.store.Len() {
			where += " frame " + m.store.FrameAt(n)
		}
		parts = append(parts, string(r)+" "+where)
	}
	m.say("%s", strings.Join(parts, "   "))
}

func (m *Model) sortByName(name string) {
	switch m.view {
	case viewMessages:
		if i := slices.Index(messageColumns, name); i >= 0 {
			m.messages.sort = i - 1
			m.messages.sortNext(m)
			return
		}
		m.fail("no column %q: there are %s", name, strings.Join(messageColumns, ", "))
	default:
		if !m.flows.sortBy(m, name) {
			var names []string
			for i := range flowColumns {
				names = append(names, flowColumns[i].name)
			}
			m.fail("no column %q: there are %s", name, strings.Join(names, ", "))
		}
	}
}

// setColumns chooses the columns of the packet list.
func (m *Model) setColumns(names []string) {
	for _, name := range names {
		if slices.Contains(packetColumns, name) {
			continue
		}
		if _, ok := m.o.Table.Lookup(name); !ok {
			text := fmt.Sprintf("no column or field %q", name)
			if near := m.o.Table.Suggest(name); near != "" {
				text += "; did you mean " + near + "?"
			}
			m.fail("%s", text)
			return
		}
	}
	m.config.Columns = names
}

func (m *Model) layout(word string) {
	switch word {
	case "save":
		if err := m.config.save(m.o.Config); err != nil {
			m.fail("%v", err)
			return
		}
		m.say("kept in %s", m.o.Config)
	case "reset":
		m.config = defaultConfig()
		m.flows.sort, m.flows.reverse = 0, false
	default:
		m.fail("layout %q: expected save or reset", word)
	}
}

// copySelection puts what is at the cursor on the clipboard.
func (m *Model) copySelection() {
	text := ""
	switch m.view {
	case viewFlows:
		if f := m.flows.selected(m); f != nil {
			for i := range flowColumns {
				if s := strings.TrimSpace(flowColumns[i].text(m, f)); s != "" && flowColumns[i].name != "traffic" {
					text += s + "\t"
				}
			}
		}
	case viewState, viewAutopsy:
		text = draw.StripStyles(strings.Join(m.text.Lines, "\n"))
	case viewMessages:
		if x := m.messages.selected(); x != nil {
			text = draw.StripStyles(strings.Join(lifeText(m.store, x), "\n"))
		}
	case viewReplay:
		if r := m.replay.selected(); r != nil {
			text = draw.StripStyles(strings.Join(r.explain(m.store, 0), "\n"))
		}
	case viewFindings:
		if r := m.findings.selected(); r != nil {
			text = draw.StripStyles(strings.Join(r.explain(0), "\n"))
		}
	default:
		switch {
		case m.packet.pane == paneTree && m.detail.cursor < len(m.detail.tree.Lines):
			text = strings.TrimSpace(draw.StripStyles(m.detail.lineText(m.detail.cursor)))
		case m.packet.pane == paneHex:
			data, _, bit, bits := m.detail.lit()
			if bits > 0 {
				data = data[min(bit/8, len(data)):min((bit+bits+7)/8, len(data))]
			}
			text = fmt.Sprintf("%x", data)
		default:
			text = m.rowText(m.packet.selected)
		}
	}
	if text = strings.TrimSpace(text); text == "" {
		m.fail("nothing to copy")
		return
	}
	m.copied = text
	line, _, more := strings.Cut(text, "\n")
	if more {
		line += " …"
	}
	m.say("copied: %s", line)
}
