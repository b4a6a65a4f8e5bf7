package tui

import (
	"strings"

	"github.com/ackscope/ackscope/tui/draw"
)

// binding is one key, or a sequence of two, and what it does. Help, hints and
// what happens all come from this table.
type binding struct {
	keys  []string // any of them; "g g" is a sequence
	views []view   // where it means this; all of them if empty
	group string
	help  string
	hint  string // for the bottom line; empty for none
	do    func(m *Model, n int)
}

// in reports whether the binding holds in a view.
func (b *binding) in(v view) bool {
	for _, x := range b.views {
		if x == v {
			return true
		}
	}
	return len(b.views) == 0
}

// keyState is what has been typed of a command so far.
type keyState struct {
	count   int
	pending string // first key of a sequence
}

var (
	inPackets = []view{viewPackets, viewState, viewLadder, viewGraphs}
	inTables  = []view{viewFlows, viewMessages, viewFindings}
)

// bindingTable is the table. A function, since help, which a key shows, reads it.
func bindingTable() []binding {
	return []binding{
		{keys: []string{"j", "Down"}, group: "moving", help: "down; 10j ten rows", do: func(m *Model, n int) { m.move(max(n, 1)) }},
		{keys: []string{"k", "Up"}, group: "moving", help: "up", do: func(m *Model, n int) { m.move(-max(n, 1)) }},
		{keys: []string{"Ctrl-D"}, group: "moving", help: "half a page down", do: func(m *Model, n int) { m.page(max(n, 1), 2) }},
		{keys: []string{"Ctrl-U"}, group: "moving", help: "half a page up", do: func(m *Model, n int) { m.page(-max(n, 1), 2) }},
		{keys: []string{"Ctrl-F", "PgDn", "Space"}, group: "moving", help: "a page down", do: func(m *Model, n int) { m.page(max(n, 1), 1) }},
		{keys: []string{"Ctrl-B", "PgUp"}, group: "moving", help: "a page up", do: func(m *Model, n int) { m.page(-max(n, 1), 1) }},
		{keys: []string{"g g", "Home"}, group: "moving", help: "first row; 42gg frame 42", do: func(m *Model, n int) { m.first(n) }},
		{keys: []string{"G", "End"}, group: "moving", help: "last row; 42G frame 42", do: func(m *Model, n int) { m.lastRow(n) }},
		{keys: []string{"Tab", "l", "Right", "Ctrl-W w"}, views: []view{viewPackets}, group: "panes", help: "next pane", hint: "pane", do: func(m *Model, _ int) { m.nextPane(1) }},
		{keys: []string{"Backtab", "h", "Left"}, views: []view{viewPackets}, group: "panes", help: "pane before", do: func(m *Model, _ int) { m.nextPane(-1) }},
		{keys: []string{"z a"}, views: []view{viewPackets}, group: "panes", help: "fold or unfold the part of the tree at the cursor (Enter in the tree too)", do: func(m *Model, _ int) { m.fold() }},
		{keys: []string{"z M"}, views: []view{viewPackets}, group: "panes", help: "fold the whole tree", do: func(m *Model, _ int) { m.foldAll(true) }},
		{keys: []string{"z R"}, views: []view{viewPackets}, group: "panes", help: "unfold it", do: func(m *Model, _ int) { m.foldAll(false) }},
		{keys: []string{"\\"}, views: []view{viewPackets}, group: "panes", help: "this pane alone, or all again", do: func(m *Model, _ int) { m.config.Maximised = !m.config.Maximised }},
		{keys: []string{"+"}, views: []view{viewPackets}, group: "panes", help: "more room for the list", do: func(m *Model, n int) { m.config.resize(max(n, 1), 0) }},
		{keys: []string{"-"}, views: []view{viewPackets}, group: "panes", help: "less room for the list", do: func(m *Model, n int) { m.config.resize(-max(n, 1), 0) }},
		{keys: []string{">"}, views: []view{viewPackets}, group: "panes", help: "more room for the decode tree", do: func(m *Model, n int) { m.config.resize(0, 2*max(n, 1)) }},
		{keys: []string{"<"}, views: []view{viewPackets}, group: "panes", help: "less room for the decode tree", do: func(m *Model, n int) { m.config.resize(0, -2*max(n, 1)) }},
		{keys: []string{"="}, views: []view{viewPackets}, group: "panes", help: "panes as they were at first", do: func(m *Model, _ int) { m.config.resetPanes() }},

		{keys: []string{"Enter"}, group: "opening", help: "open the flow, the packet's state, the packet of a finding, message or divergence", hint: "open", do: func(m *Model, _ int) { m.enter() }},
		{keys: []string{"q", "Esc"}, group: "opening", help: "back; from the flows: quit", hint: "back", do: func(m *Model, _ int) { m.goBack() }},
		{keys: []string{"a"}, views: []view{viewFlows}, group: "opening", help: "packets of all flows", hint: "all packets", do: func(m *Model, _ int) { m.open(0) }},
		{keys: []string{"P"}, group: "opening", help: "packets", do: func(m *Model, _ int) { m.show(viewPackets) }},
		{keys: []string{"S"}, group: "opening", help: "state of both sides at the packet", hint: "state", do: func(m *Model, _ int) { m.show(viewState) }},
		{keys: []string{"L"}, group: "opening", help: "ladder", hint: "ladder", do: func(m *Model, _ int) { m.show(viewLadder) }},
		{keys: []string{"T"}, group: "opening", help: "graphs over time", hint: "graphs", do: func(m *Model, _ int) { m.show(viewGraphs) }},
		{keys: []string{"M"}, group: "opening", help: "messages of the flow", hint: "messages", do: func(m *Model, _ int) { m.show(viewMessages) }},
		{keys: []string{"F"}, group: "opening", help: "findings", hint: "findings", do: func(m *Model, _ int) { m.show(viewFindings) }},
		{keys: []string{"A"}, group: "opening", help: "autopsy: how the connection ended", do: func(m *Model, _ int) { m.show(viewAutopsy) }},
		{keys: []string{"R"}, group: "opening", help: "replay: each side against the reference; there: run it again", hint: "replay", do: func(m *Model, _ int) { m.openReplay() }},
		{keys: []string{"v"}, views: []view{viewReplay}, group: "opening", help: "every side against every behaviour, or against its own", hint: "matrix", do: func(m *Model, _ int) { m.toggleMatrix() }},

		{keys: []string{"]"}, views: inPackets, group: "scrubbing", help: "next packet of the flow", hint: "step", do: func(m *Model, n int) { m.step(max(n, 1)) }},
		{keys: []string{"["}, views: inPackets, group: "scrubbing", help: "packet of the flow before", do: func(m *Model, n int) { m.step(-max(n, 1)) }},
		{keys: []string{"}"}, views: inPackets, group: "scrubbing", help: "next packet that changes more than it was sent and received", hint: "change", do: func(m *Model, n int) { m.change(max(n, 1)) }},
		{keys: []string{"{"}, views: inPackets, group: "scrubbing", help: "packet before that does", do: func(m *Model, n int) { m.change(-max(n, 1)) }},
		{keys: []string{"d"}, views: inPackets, group: "scrubbing", help: "mark the packet and show what changed since; again to end", hint: "diff", do: func(m *Model, _ int) { m.toggleDiff() }},
		{keys: []string{"b"}, views: inPackets, group: "scrubbing", help: "break when: run forward until a filter holds, over the state too (flow.rtt_a > 80ms)", do: func(m *Model, _ int) { m.ask(promptBreak) }},
		{keys: []string{"B"}, views: inPackets, group: "scrubbing", help: "run back until a filter holds", do: func(m *Model, _ int) { m.ask(promptBreakBack) }},
		{keys: []string{"."}, views: inPackets, group: "scrubbing", help: "stay at the newest packet while more come, or no longer", do: func(m *Model, _ int) { m.toggleFollow() }},
		{keys: []string{"a"}, views: inPackets, group: "jumping", help: "to the packet that acked this one, or by which it was lost", do: func(m *Model, _ int) { m.jumpSettled() }},
		{keys: []string{"o"}, views: inPackets, group: "jumping", help: "to the packet that this one acked first", do: func(m *Model, _ int) { m.jumpAbout(eventAcked) }},
		{keys: []string{"r"}, views: inPackets, group: "jumping", help: "to the packet whose content this one sent again", do: func(m *Model, _ int) { m.jumpAbout(eventResent) }},
		{keys: []string{"x"}, views: []view{viewMessages, viewPackets, viewState}, group: "jumping", help: "to what blocks the message, or the first that this packet's arrival set free", do: func(m *Model, _ int) { m.jumpBlocks() }},
		{keys: []string{"Ctrl-O"}, group: "jumping", help: "back to where you were", do: func(m *Model, _ int) { m.jumpBack() }},
		{keys: []string{"m"}, group: "jumping", help: "mark: ma … mz", do: func(m *Model, _ int) { m.keys.pending = "m" }},
		{keys: []string{"'"}, group: "jumping", help: "to a mark: 'a … 'z; '' back", do: func(m *Model, _ int) { m.keys.pending = "'" }},

		{keys: []string{"f"}, group: "finding", help: "filter (Tab completes, Up and Down recall)", hint: "filter", do: func(m *Model, _ int) { m.ask(promptFilter) }},
		{keys: []string{"/"}, group: "finding", help: "search: text, 0xHEX for bytes, ~EXPR for a regular expression", hint: "search", do: func(m *Model, _ int) { m.ask(promptSearch) }},
		{keys: []string{"n"}, group: "finding", help: "next match", do: func(m *Model, _ int) { m.searchOn(1) }},
		{keys: []string{"N"}, group: "finding", help: "match before", do: func(m *Model, _ int) { m.searchOn(-1) }},
		{keys: []string{"s"}, views: inTables, group: "tables", help: "sort by the next column", hint: "sort", do: func(m *Model, _ int) { m.sortNext() }},
		{keys: []string{"Tab"}, views: []view{viewMessages}, group: "tables", help: "on a narrow screen: how long deliveries took, or the message's life", do: func(m *Model, _ int) { m.messages.spread = !m.messages.spread }},
		{keys: []string{"i"}, views: inTables, group: "tables", help: "turn the order around", do: func(m *Model, _ int) { m.sortTurn() }},
		{keys: []string{"t"}, views: inPackets, group: "tables", help: "time: since the start, since the packet before, of day", do: func(m *Model, _ int) { m.nextTime() }},
		{keys: []string{"Tab"}, views: []view{viewGraphs}, group: "tables", help: "both sides, A alone, B alone", hint: "side", do: func(m *Model, _ int) { m.graphs.only = (m.graphs.only + 1) % 3 }},
		{keys: []string{"Ctrl-E"}, group: "moving", help: "scroll the text at the side (why, life, state) down", do: func(m *Model, n int) { m.scrollText(max(n, 1)) }},
		{keys: []string{"Ctrl-Y"}, group: "moving", help: "scroll it up", do: func(m *Model, n int) { m.scrollText(-max(n, 1)) }},
		{keys: []string{"z"}, views: []view{viewGraphs, viewLadder}, group: "tables", help: "closer", hint: "zoom", do: func(m *Model, _ int) { m.zoom(1) }},
		{keys: []string{"Z Z"}, group: "program", help: "quit, once what :w writes is whole", do: func(m *Model, _ int) { m.leaveProgram() }},
		{keys: []string{"u"}, views: []view{viewGraphs, viewLadder}, group: "tables", help: "farther away", do: func(m *Model, _ int) { m.zoom(-1) }},
		{keys: []string{"c"}, group: "program", help: "copy the row, the field or the state (OSC 52)", do: func(m *Model, _ int) { m.copySelection() }},
		{keys: []string{":"}, group: "program", help: "command line; :help lists the commands", hint: "command", do: func(m *Model, _ int) { m.ask(promptCommand) }},
		{keys: []string{"?", "F1"}, group: "program", help: "this help", hint: "help", do: func(m *Model, _ int) { m.help, m.text.List = true, draw.List{} }},
		{keys: []string{"Ctrl-C"}, group: "program", help: "stop what runs; else quit", do: func(m *Model, _ int) { m.interrupt() }},
		{keys: []string{"Ctrl-Z"}, group: "program", help: "back to the shell; fg goes on", do: func(m *Model, _ int) { m.suspend = true }},
		{keys: []string{"Ctrl-L"}, group: "program", help: "draw the screen anew", do: func(m *Model, _ int) { m.redraw = true }},
	}
}

// commands are what the command line takes, for help and completion.
var commands = []struct{ name, args, help string }{
	{"q", "", "quit, once what :w writes is whole (also :quit); :q! at once; :wq FILE saves first"},
	{"n", "", "the next capture, where several were given (also :next)"},
	{"N", "", "the capture before (also :previous)"},
	{"file", "NAME", "another of the captures, by its name or its position"},
	{"filter", "EXPR", "show what matches; nothing shows all"},
	{"flow", "N", "open flow N; 0 for all packets"},
	{"goto", "FRAME", "go to a frame (also just :FRAME); FILE:FRAME of several captures"},
	{"w", "FILE", "save the packets shown as pcapng (also :save)"},
	{"columns", "NAME…", "columns of the packet list: number time flow dir from to protocol length info fate, or any field; none for the usual"},
	{"sort", "COLUMN", "sort the flows or messages by a column"},
	{"theme", "NAME", "dark, light or mono"},
	{"time", "WORD", "relative, delta or absolute"},
	{"marks", "", "list the marks"},
	{"break", "EXPR", "run forward until a filter holds"},
	{"set", "WORD", "follow or nofollow: stay at the newest packet"},
	{"replay", "BEHAVIOUR", "hold all sides against a behaviour; none: what their packets suggest"},
	{"layout", "save|reset", "keep panes, columns, theme and order for next time"},
	{"help", "", "all keys and commands"},
}

// helpLines words the table.
func helpLines() (lines []string) {
	lines = append(lines, "\x1b[1mackscope tui\x1b[0m  a number before a key repeats it", "")
	group := ""
	bindings := bindingTable()
	for i := range bindings {
		b := &bindings[i]
		if b.group != group && !strings.Contains(strings.Join(lines, "\n"), "\x1b[1m"+b.group+"\x1b[0m") {
			lines = append(lines, "\x1b[1m"+b.group+"\x1b[0m")
			for j := range bindings {
				if o := &bindings[j]; o.group == b.group {
					lines = append(lines, "  "+draw.PadRight(strings.Join(o.keys, "  "), 22)+" "+o.help+where(o))
				}
			}
			lines = append(lines, "")
		}
		group = b.group
	}
	lines = append(lines, "\x1b[1mcommands\x1b[0m")
	for _, c := range commands {
		lines = append(lines, "  "+draw.PadRight(":"+c.name+" "+c.args, 22)+" "+c.help)
	}
	lines = append(lines, "", "\x1b[1min a line that is edited\x1b[0m",
		"  Tab  Backtab           complete the name at the cursor, the next one, the one before", "  Up  Down               lines typed before; Ctrl-P and Ctrl-N too",
		"  Ctrl-A  Ctrl-E         to the beginning, to the end; Home and End too", "  Ctrl-W  Ctrl-U  Ctrl-K delete the word, all before the cursor, all behind it", "  Esc  Enter             leave it; take it",
		"", "\x1b[1mmouse\x1b[0m  a click selects, two open, one on the head of a column of the flows sorts; the wheel scrolls what is under it; with Shift most terminals select text")
	lines = append(lines, "", "\x1b[1mglyphs\x1b[0m", "  .  empty   s sent   a acked   r received   ? unknown   x lost   ~ claimed, never seen   p some fragments",
		"  ✓  acked, with the frame that says so   ✗ lost: it can no longer be acked   E W N  a finding: error, warning, note")
	return lines
}

// where says in which views a key means what it says.
func where(b *binding) string {
	if len(b.views) == 0 {
		return ""
	}
	names := make([]string, len(b.views))
	for i, v := range b.views {
		names[i] = viewNames[v]
	}
	return "  (" + strings.Join(names, ", ") + ")"
}
