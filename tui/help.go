package tui

import (
	"strings"

	"github.com/ackscope/ackscope/tui/draw"
)

func (m *Model) drawHelp(c draw.Canvas) {
	c.Rule(0, "help", true)
	m.Text.Lines = nil
	for _, line := range helpLines() {
		m.Text.Lines = append(m.Text.Lines, draw.WrapLine(line, c.W-2)...)
	}
	m.Text.Draw(c.Part(1, 1, c.W-1, c.H-1))
}

// helpLines formats the table of keys.
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
		"  Tab  Backtab           complete the name at the cursor, the next one, the one before",
		"  Up  Down               lines typed before; Ctrl-P and Ctrl-N too",
		"  Ctrl-A  Ctrl-E         to the beginning, to the end; Home and End too",
		"  Ctrl-W  Ctrl-U  Ctrl-K delete the word, all before the cursor, all behind it",
		"  Esc  Enter             leave it; take it",
		"", "\x1b[1mmouse\x1b[0m  a click selects, two open, one on the head of a column of the flows sorts; the wheel "+
			"scrolls what is under it; with Shift most terminals select text")
	lines = append(lines, "", "\x1b[1mglyphs\x1b[0m",
		"  .  empty   s sent   a acked   r received   ? unknown   x lost   ~ claimed, never seen   p some fragments",
		"  ✓  acked, with the frame that says so   ✗ lost: it can no longer be acked   E W N  a finding: error, "+
			"warning, note")
	return lines
}

// where names the views in which a key has its meaning.
func where(b *binding) string {
	if len(b.views) == 0 {
		return ""
	}
	names := make([]string, len(b.views))
	for i, v := range b.views {
		names[i] = v.String()
	}
	return "  (" + strings.Join(names, ", ") + ")"
}
