package tui

import (
	"slices"
	"unicode/utf8"

	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
	"github.com/ackscope/ackscope/tui/screens"
)

// Key handles a key by its name: a character, or Enter, Esc, Up, Ctrl-F, …
func (m *Model) Key(k string) {
	m.Note, m.copied, m.o.Begin = "", "", Begin{}
	m.Store.Turn()
	if m.palette.open {
		m.paletteKey(k)
		return
	}
	if m.prompt.kind != promptNone {
		m.promptKey(k)
		return
	}
	if m.help {
		m.helpKey(k)
		return
	}
	if p := m.keys.pending; p != "" {
		m.keys.pending = ""
		if p == "m" || p == "'" {
			m.markKey(p, k)
			return
		}
		if b := m.find(p + " " + k); b != nil {
			m.run(b)
			return
		}
		m.keys.count = 0
		return
	}
	if len(k) == 1 && (k[0] >= '1' && k[0] <= '9' || k == "0" && m.keys.count > 0) {
		m.keys.count = min(m.keys.count*10+int(k[0]-'0'), 1<<40)
		return
	}
	if b := m.find(k); b != nil {
		m.run(b)
		return
	}
	if m.begins(k) {
		m.keys.pending = k
		return
	}
	m.keys.count = 0
	m.Say("%s means nothing here: ? lists the keys", k)
}

func (m *Model) run(b *binding) {
	n := m.keys.count
	m.keys.count = 0
	b.do(m, n)
}

// find returns the binding of a key or sequence in this view. A binding for the
// view itself precedes one for all views.
func (m *Model) find(k string) *binding {
	var general *binding
	table := bindingTable()
	for i := range table {
		b := &table[i]
		if !slices.Contains(b.keys, k) || !b.in(m.View) {
			continue
		}
		if len(b.views) > 0 {
			return b
		}
		if general == nil {
			general = b
		}
	}
	return general
}

// begins reports whether a key begins a sequence.
func (m *Model) begins(k string) bool {
	for _, b := range bindingTable() {
		for _, s := range b.keys {
			if len(s) > len(k)+1 && s[:len(k)] == k && s[len(k)] == ' ' && b.in(m.View) {
				return true
			}
		}
	}
	return false
}

func (m *Model) helpKey(k string) {
	l, n := &m.Text.List, len(m.Text.Lines)
	if k == "Esc" && m.sought != "" {
		m.sought = ""
		return
	}
	switch k {
	case "/":
		m.ask(promptHelp)
	case "q", "Esc", "?", "F1", "Enter":
		m.help = false
		m.Text = draw.Pager{}
	case "j", "Down":
		l.Scroll(1, n)
	case "k", "Up":
		l.Scroll(-1, n)
	case "Space", "PgDn", "Ctrl-F", "Ctrl-D":
		l.Scroll(l.Height-1, n)
	case "PgUp", "Ctrl-B", "Ctrl-U":
		l.Scroll(1-l.Height, n)
	case "g", "Home":
		l.Scroll(-n, n)
	case "G", "End":
		l.Scroll(n, n)
	case "Ctrl-C":
		m.leaveProgram()
	}
}

func (m *Model) markKey(kind, k string) {
	r, _ := utf8.DecodeRuneInString(k)
	switch {
	case kind == "'" && k == "'":
		m.JumpBack()
	case utf8.RuneCountInString(k) != 1 || r < 'A' || r > 'z':
		m.Fail("a mark is a letter")
	case kind == "m":
		m.Marks[r] = m.Here()
		m.Say("marked %c: frame %s", r, m.SelectedFrame())
	default:
		l, ok := m.Marks[r]
		if !ok {
			m.Fail("no mark %c", r)
			return
		}
		m.Leave()
		m.GoTo(l)
	}
}

// move moves the cursor of the screen.
func (m *Model) move(by int) { m.screen().Move(m.Browser, by) }

// page moves by pages, or by parts of a page.
func (m *Model) page(by, part int) {
	m.move(by * max(screens.Page(m.Browser, m.screen())/part, 1))
}

func (m *Model) first(frame int) {
	if frame > 0 {
		m.Jump(frame - 1)
		return
	}
	m.ends(-1)
}

func (m *Model) lastRow(frame int) {
	if frame > 0 {
		m.Jump(frame - 1)
		return
	}
	m.ends(1)
}

// ends goes to the first or the last row.
func (m *Model) ends(way int) { screens.End(m.Browser, m.screen(), way) }

// openHelp shows the keys.
func (m *Model) openHelp() { m.help, m.sought, m.Text.List = true, "", draw.List{} }

// zoom magnifies the graphs or the ladder around the selected packet.
func (m *Model) zoom(by int) {
	if m.View == browser.Graphs {
		m.screens.Graphs.Zoom(by)
	} else {
		m.screens.Ladder.Zoom(by)
	}
}

// jumpBlocks goes from a message to the message that holds it back. From a
// packet it goes to the message that the packet released.
func (m *Model) jumpBlocks() {
	if m.View == browser.Messages {
		m.screens.Messages.JumpBlocking(m.Browser)
	} else {
		m.JumpFreed()
	}
}

// goBack closes the view. From the first one it leaves the program.
func (m *Model) goBack() {
	m.until.end()
	m.EndJob()
	switch {
	case m.View == browser.Flows && m.o.Overview:
		m.Show(browser.Overview)
	case m.View == browser.Overview && !m.o.Overview:
		m.Show(browser.Flows)
	case m.View == browser.Flows, m.View == browser.Overview:
		m.leaveProgram()
	case m.View == browser.Packets && m.screens.Packets.Back():
	default:
		m.Back()
	}
}

// interrupt stops background work. If there is none it leaves the program.
func (m *Model) interrupt() {
	switch {
	case m.EndJob():
	case m.until.running():
		m.until.end()
	case m.View == browser.Replay && m.screens.Replay.Stop():
	default:
		m.leaveProgram()
		return
	}
	m.Say("stopped")
}

// sorter returns the table whose order the keys change.
func (m *Model) sorter() screens.Sorter {
	if s, ok := m.screen().(screens.Sorter); ok {
		return s
	}
	return m.screens.Findings
}
