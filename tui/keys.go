package tui

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/tui/browser"
)

// binding is a key, or a sequence of two keys, and its action. Help, hints and
// actions all come from this table.
type binding struct {
	keys  []string       // alternatives; "g g" is a sequence
	views []browser.View // where the binding applies; empty for all
	group string
	help  string
	hint  string // for the bottom line; empty for none
	do    func(m *Model, n int)
}

// in reports whether the binding applies in a view.
func (b *binding) in(v browser.View) bool {
	for _, x := range b.views {
		if x == v {
			return true
		}
	}
	return len(b.views) == 0
}

// keyState is the part of a command typed so far.
type keyState struct {
	count   int
	pending string // first key of a sequence
}

var (
	inPackets = []browser.View{browser.Packets, browser.State, browser.Ladder, browser.Graphs}
	inTables  = []browser.View{browser.Flows, browser.Messages, browser.Findings}
)

// bindingTable returns the table. It is a function because the action of the
// help key reads the table.
func bindingTable() []binding {
	return []binding{
		{
			keys: []string{"j", "Down"}, group: "moving", help: "down; 10j ten rows",
			do: func(m *Model, n int) { m.move(max(n, 1)) },
		},
		{keys: []string{"k", "Up"}, group: "moving", help: "up", do: func(m *Model, n int) { m.move(-max(n, 1)) }},
		{
			keys: []string{"Ctrl-D"}, group: "moving", help: "half a page down",
			do: func(m *Model, n int) { m.page(max(n, 1), 2) },
		},
		{
			keys: []string{"Ctrl-U"}, group: "moving", help: "half a page up",
			do: func(m *Model, n int) { m.page(-max(n, 1), 2) },
		},
		{
			keys: []string{"Ctrl-F", "PgDn", "Space"}, group: "moving", help: "a page down",
			do: func(m *Model, n int) { m.page(max(n, 1), 1) },
		},
		{
			keys: []string{"Ctrl-B", "PgUp"}, group: "moving", help: "a page up",
			do: func(m *Model, n int) { m.page(-max(n, 1), 1) },
		},
		{
			keys: []string{"g g", "Home"}, group: "moving", help: "first row; 42gg frame 42",
			do: func(m *Model, n int) { m.first(n) },
		},
		{
			keys: []string{"G", "End"}, group: "moving", help: "last row; 42G frame 42",
			do: func(m *Model, n int) { m.lastRow(n) },
		},
		{
			keys: []string{"Tab", "l", "Right", "Ctrl-W w"}, views: []browser.View{browser.Packets}, group: "panes",
			help: "next pane", hint: "pane", do: func(m *Model, _ int) { m.screens.Packets.NextPane(m.Browser, 1) },
		},
		{
			keys: []string{"Backtab", "h", "Left"}, views: []browser.View{browser.Packets}, group: "panes", help: "pane before",
			do: func(m *Model, _ int) { m.screens.Packets.NextPane(m.Browser, -1) },
		},
		{
			keys: []string{"z a"}, views: []browser.View{browser.Packets}, group: "panes",
			help: "fold or unfold the part of the tree at the cursor (Enter in the tree too)",
			do:   func(m *Model, _ int) { m.screens.Packets.Fold() },
		},
		{
			keys: []string{"z M"}, views: []browser.View{browser.Packets}, group: "panes", help: "fold the whole tree",
			do: func(m *Model, _ int) { m.screens.Packets.FoldAll(true) },
		},
		{
			keys: []string{"z R"}, views: []browser.View{browser.Packets}, group: "panes", help: "unfold it",
			do: func(m *Model, _ int) { m.screens.Packets.FoldAll(false) },
		},
		{
			keys: []string{"\\"}, views: []browser.View{browser.Packets}, group: "panes", help: "this pane alone, or all again",
			do: func(m *Model, _ int) { m.Layout.Maximised = !m.Layout.Maximised },
		},
		{
			keys: []string{"+"}, views: []browser.View{browser.Packets}, group: "panes", help: "more room for the list",
			do: func(m *Model, n int) { m.Layout.Resize(max(n, 1), 0) },
		},
		{
			keys: []string{"-"}, views: []browser.View{browser.Packets}, group: "panes", help: "less room for the list",
			do: func(m *Model, n int) { m.Layout.Resize(-max(n, 1), 0) },
		},
		{
			keys: []string{">"}, views: []browser.View{browser.Packets}, group: "panes", help: "more room for the decode tree",
			do: func(m *Model, n int) { m.Layout.Resize(0, 2*max(n, 1)) },
		},
		{
			keys: []string{"<"}, views: []browser.View{browser.Packets}, group: "panes", help: "less room for the decode tree",
			do: func(m *Model, n int) { m.Layout.Resize(0, -2*max(n, 1)) },
		},
		{
			keys: []string{"="}, views: []browser.View{browser.Packets}, group: "panes", help: "panes as they were at first",
			do: func(m *Model, _ int) { m.Layout.ResetPanes() },
		},

		{
			keys: []string{"Enter"}, group: "opening",
			help: "open the flow, the packet's state, the packet of a finding, message or divergence", hint: "open",
			do: func(m *Model, _ int) { m.screen().Enter(m.Browser) },
		},
		{
			keys: []string{"q", "Esc"}, group: "opening", help: "back; from the first view: quit", hint: "back",
			do: func(m *Model, _ int) { m.goBack() },
		},
		{
			keys: []string{"a"}, views: []browser.View{browser.Flows, browser.Overview}, group: "opening",
			help: "packets of all flows",
			hint: "all packets", do: func(m *Model, _ int) { m.Open(0) },
		},
		{
			keys: []string{"Tab"}, views: []browser.View{browser.Overview}, group: "opening", help: "the list of flows",
			hint: "flows", do: func(m *Model, _ int) { m.Show(browser.Flows) },
		},
		{
			keys: []string{"O", "Tab"}, views: []browser.View{browser.Flows}, group: "opening", help: "overview of the capture",
			hint: "overview", do: func(m *Model, _ int) { m.Show(browser.Overview) },
		},
		{keys: []string{"P"}, group: "opening", help: "packets", do: func(m *Model, _ int) { m.Show(browser.Packets) }},
		{
			keys: []string{"S"}, group: "opening", help: "state of both sides at the packet", hint: "state",
			do: func(m *Model, _ int) { m.Show(browser.State) },
		},
		{
			keys: []string{"L"}, group: "opening", help: "ladder", hint: "ladder",
			do: func(m *Model, _ int) { m.Show(browser.Ladder) },
		},
		{
			keys: []string{"T"}, group: "opening", help: "graphs over time", hint: "graphs",
			do: func(m *Model, _ int) { m.Show(browser.Graphs) },
		},
		{
			keys: []string{"M"}, group: "opening", help: "messages of the flow", hint: "messages",
			do: func(m *Model, _ int) { m.Show(browser.Messages) },
		},
		{
			keys: []string{"F"}, group: "opening", help: "findings", hint: "findings",
			do: func(m *Model, _ int) { m.Show(browser.Findings) },
		},
		{
			keys: []string{"A"}, group: "opening", help: "autopsy: how the connection ended",
			do: func(m *Model, _ int) { m.Show(browser.Autopsy) },
		},
		{
			keys: []string{"R"}, group: "opening", help: "replay: each side against the reference; there: run it again",
			hint: "replay", do: func(m *Model, _ int) { m.screens.Replay.Open(m.Browser) },
		},
		{
			keys: []string{"v"}, views: []browser.View{browser.Replay}, group: "opening",
			help: "every side against every behaviour, or against its own", hint: "matrix",
			do: func(m *Model, _ int) { m.screens.Replay.ToggleMatrix(m.Browser) },
		},

		{
			keys: []string{"]"}, views: inPackets, group: "scrubbing", help: "next packet of the flow", hint: "step",
			do: func(m *Model, n int) { m.Step(max(n, 1)) },
		},
		{
			keys: []string{"["}, views: inPackets, group: "scrubbing", help: "packet of the flow before",
			do: func(m *Model, n int) { m.Step(-max(n, 1)) },
		},
		{
			keys: []string{"}"}, views: inPackets, group: "scrubbing",
			help: "next packet that changes more than it was sent and received", hint: "change",
			do: func(m *Model, n int) { m.Change(max(n, 1)) },
		},
		{
			keys: []string{"{"}, views: inPackets, group: "scrubbing", help: "packet before that does",
			do: func(m *Model, n int) { m.Change(-max(n, 1)) },
		},
		{
			keys: []string{"d"}, views: inPackets, group: "scrubbing",
			help: "mark the packet and show what changed since; again to end", hint: "diff",
			do: func(m *Model, _ int) { m.screens.State.ToggleDiff(m.Browser) },
		},
		{
			keys: []string{"b"}, views: inPackets, group: "scrubbing",
			help: "break when: run forward until a filter holds, over the state too (flow.rtt_a > 80ms)",
			do:   func(m *Model, _ int) { m.ask(promptBreak) },
		},
		{
			keys: []string{"B"}, views: inPackets, group: "scrubbing", help: "run back until a filter holds",
			do: func(m *Model, _ int) { m.ask(promptBreakBack) },
		},
		{
			keys: []string{"."}, views: inPackets, group: "scrubbing",
			help: "stay at the newest packet while more come, or no longer", do: func(m *Model, _ int) { m.ToggleFollow() },
		},
		{
			keys: []string{"a"}, views: inPackets, group: "jumping",
			help: "to the packet that acked this one, or by which it was lost", do: func(m *Model, _ int) { m.JumpSettled() },
		},
		{
			keys: []string{"o"}, views: inPackets, group: "jumping", help: "to the packet that this one acked first",
			do: func(m *Model, _ int) { m.JumpAbout(machine.EventAcked) },
		},
		{
			keys: []string{"r"}, views: inPackets, group: "jumping", help: "to the packet whose content this one sent again",
			do: func(m *Model, _ int) { m.JumpAbout(machine.EventResent) },
		},
		{
			keys: []string{"x"}, views: []browser.View{browser.Messages, browser.Packets, browser.State}, group: "jumping",
			help: "to what blocks the message, or the first that this packet's arrival set free",
			do:   func(m *Model, _ int) { m.jumpBlocks() },
		},
		{
			keys: []string{"e"}, views: []browser.View{browser.Messages}, group: "jumping", hint: "each packet",
			help: "each packet of the message: those that carried it, acked it, proved its arrival",
			do:   func(m *Model, _ int) { m.screens.Messages.FollowMessage(m.Browser) },
		},
		{
			keys: []string{"e"}, views: inPackets, group: "jumping",
			help: "to the message that this packet carries; from the packets of one message back to all",
			do:   func(m *Model, _ int) { m.screens.Messages.FollowPacket(m.Browser) },
		},
		{
			keys: []string{"Ctrl-O"}, group: "jumping", help: "back to where you were",
			do: func(m *Model, _ int) { m.JumpBack() },
		},
		{keys: []string{"m"}, group: "jumping", help: "mark: ma … mz", do: func(m *Model, _ int) { m.keys.pending = "m" }},
		{
			keys: []string{"'"}, group: "jumping", help: "to a mark: 'a … 'z; '' back",
			do: func(m *Model, _ int) { m.keys.pending = "'" },
		},

		{
			keys: []string{"f"}, group: "finding", help: "filter (Tab completes, Up and Down recall)", hint: "filter",
			do: func(m *Model, _ int) { m.ask(promptFilter) },
		},
		{
			keys: []string{"/"}, group: "finding", help: "search: text, 0xHEX for bytes, ~EXPR for a regular expression",
			hint: "search", do: func(m *Model, _ int) { m.ask(promptSearch) },
		},
		{
			keys: []string{"n"}, group: "finding", help: "next match",
			do: func(m *Model, _ int) { m.search.Next(m.Browser, m.screen(), 1) },
		},
		{
			keys: []string{"N"}, group: "finding", help: "match before",
			do: func(m *Model, _ int) { m.search.Next(m.Browser, m.screen(), -1) },
		},
		{
			keys: []string{"s"}, views: inTables, group: "tables", help: "sort by the next column", hint: "sort",
			do: func(m *Model, _ int) { m.sorter().SortNext(m.Browser) },
		},
		{
			keys: []string{"Tab"}, views: []browser.View{browser.Messages}, group: "tables",
			help: "on a narrow screen: how long deliveries took, or the message's life",
			do:   func(m *Model, _ int) { m.screens.Messages.NextFoot() },
		},
		{
			keys: []string{"i"}, views: inTables, group: "tables", help: "turn the order around",
			do: func(m *Model, _ int) { m.sorter().SortTurn(m.Browser) },
		},
		{
			keys: []string{"t"}, views: inPackets, group: "tables",
			help: "time: since the start, since the packet before, of day", do: func(m *Model, _ int) { m.NextTime() },
		},
		{
			keys: []string{"Tab"}, views: []browser.View{browser.Graphs}, group: "tables", help: "both sides, A alone, B alone",
			hint: "side", do: func(m *Model, _ int) { m.screens.Graphs.NextSide() },
		},
		{
			keys: []string{"Ctrl-E"}, group: "moving", help: "scroll the text at the side (why, life, state) down",
			do: func(m *Model, n int) { m.Text.Scroll(max(n, 1)) },
		},
		{
			keys: []string{"Ctrl-Y"}, group: "moving", help: "scroll it up",
			do: func(m *Model, n int) { m.Text.Scroll(-max(n, 1)) },
		},
		{
			keys: []string{"z"}, views: []browser.View{browser.Graphs, browser.Ladder}, group: "tables", help: "closer",
			hint: "zoom", do: func(m *Model, _ int) { m.zoom(1) },
		},
		{
			keys: []string{"Z Z"}, group: "program", help: "quit, once what :w writes is whole",
			do: func(m *Model, _ int) { m.leaveProgram() },
		},
		{
			keys: []string{"u"}, views: []browser.View{browser.Graphs, browser.Ladder}, group: "tables", help: "farther away",
			do: func(m *Model, _ int) { m.zoom(-1) },
		},
		{
			keys: []string{"Ctrl-P"}, group: "program", hint: "palette",
			help: "palette: a command, flow, finding or field by some of its letters",
			do:   func(m *Model, _ int) { m.openPalette() },
		},
		{
			keys: []string{"y y", "c"}, group: "copying to the clipboard (OSC 52)", help: "the row, the field or the state",
			hint: "text", do: func(m *Model, _ int) { m.copySelection(copyText) },
		},
		{
			keys: []string{"y h"}, group: "copying to the clipboard (OSC 52)", hint: "hex",
			help: "the field's bytes in hexadecimal, else the payload's",
			do:   func(m *Model, _ int) { m.copySelection(copyHex) },
		},
		{
			keys: []string{"y j"}, group: "copying to the clipboard (OSC 52)", hint: "JSON",
			help: "it as JSON, as --json prints it", do: func(m *Model, _ int) { m.copySelection(copyJSON) },
		},
		{
			keys: []string{"y f"}, group: "copying to the clipboard (OSC 52)", hint: "filter", help: "a filter that it passes",
			do: func(m *Model, _ int) { m.copySelection(copyFilter) },
		},
		{
			keys: []string{"y c"}, group: "copying to the clipboard (OSC 52)", hint: "command",
			help: "the ackscope command that shows it", do: func(m *Model, _ int) { m.copySelection(copyCommand) },
		},
		{
			keys: []string{":"}, group: "program", help: "command line; :help lists the commands", hint: "command",
			do: func(m *Model, _ int) { m.ask(promptCommand) },
		},
		{
			keys: []string{"?", "F1"}, group: "program", help: "this help", hint: "help",
			do: func(m *Model, _ int) { m.openHelp() },
		},
		{
			keys: []string{"Ctrl-C"}, group: "program", help: "stop what runs; else quit",
			do: func(m *Model, _ int) { m.interrupt() },
		},
		{
			keys: []string{"Ctrl-Z"}, group: "program", help: "back to the shell; fg goes on",
			do: func(m *Model, _ int) { m.suspend = true },
		},
		{
			keys: []string{"Ctrl-L"}, group: "program", help: "draw the screen anew",
			do: func(m *Model, _ int) { m.redraw = true },
		},
	}
}

// commands are the commands of the command line, for help and completion.
var commands = []struct{ name, args, help string }{
	{"q", "", "quit, once what :w writes is whole (also :quit); :q! at once; :wq FILE saves first"},
	{"n", "", "the next capture, where several were given (also :next)"},
	{"N", "", "the capture before (also :previous)"},
	{"file", "NAME", "another of the captures, by its name or its position"},
	{"filter", "EXPR", "show what matches; nothing shows all"},
	{"flow", "N", "open flow N; 0 for all packets"},
	{"goto", "FRAME", "go to a frame (also just :FRAME); FILE:FRAME of several captures"},
	{"w", "FILE", "save the packets shown as pcapng (also :save)"},
	{"columns", "NAME…", "columns of the packet list: number time flow dir from to protocol length info fate, or any " +
		"field; none for the usual"},
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
