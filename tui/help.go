package tui

import (
	"slices"
	"strings"

	"github.com/ackscope/ackscope/tui/browser"
	"github.com/ackscope/ackscope/tui/draw"
)

// helpPart is a part of the help: a title, and a line for each key or command.
type helpPart struct {
	title string
	lines []string
}

func (m *Model) drawHelp(c draw.Canvas) {
	title := "help"
	if m.sought != "" {
		title += " about " + m.sought + " (Esc: all of it)"
	}
	c.Rule(0, title, true)
	m.Text.Lines = nil
	for _, line := range helpLines(m.View, m.sought) {
		m.Text.Lines = append(m.Text.Lines, draw.WrapLine(line, c.W-2)...)
	}
	if len(m.Text.Lines) == 0 {
		m.Text.Lines = []string{"no line has " + m.sought}
	}
	m.Text.Draw(c.Part(1, 1, c.W-1, c.H-1))
}

// helpLines formats the keys and the commands, those of a view first. If a text is sought, only the
// lines that contain it remain, and the parts whose titles do.
func helpLines(v browser.View, sought string) (lines []string) {
	for _, part := range helpParts(v) {
		kept := part.lines
		has := func(text string) bool { return strings.Contains(lower(text), lower(sought)) }
		if !has(part.title) {
			kept = slices.DeleteFunc(kept, func(line string) bool { return !has(line) })
		}
		if len(kept) > 0 {
			lines = append(append(append(lines, "\x1b[1m"+part.title+"\x1b[0m"), kept...), "")
		}
	}
	return lines
}

func helpParts(v browser.View) []helpPart {
	here := helpPart{title: "only in this view: " + v.String()}
	var groups []helpPart
	bindings := bindingTable()
	for i := range bindings {
		b := &bindings[i]
		line := "  " + draw.PadRight(strings.Join(b.keys, "  "), 22) + " " + b.help
		if len(b.views) > 0 && b.in(v) {
			here.lines = append(here.lines, line)
			continue
		}
		at := slices.IndexFunc(groups, func(g helpPart) bool { return g.title == b.group })
		if at < 0 {
			at, groups = len(groups), append(groups, helpPart{title: b.group})
		}
		groups[at].lines = append(groups[at].lines, line+where(b))
	}
	out := append([]helpPart{here}, groups...)
	out[1].lines = append(out[1].lines, "  "+draw.PadRight("a number", 22)+" before a key repeats it")
	list := helpPart{title: "commands"}
	for _, c := range commands {
		list.lines = append(list.lines, "  "+draw.PadRight(":"+c.name+" "+c.args, 22)+" "+c.help)
	}
	return append(
		out, list,
		helpPart{"in a line that is edited", []string{
			"  Tab  Backtab           complete the name at the cursor, the next one, the one before",
			"  Up  Down               lines typed before; Ctrl-P and Ctrl-N too",
			"  Ctrl-A  Ctrl-E         to the beginning, to the end; Home and End too",
			"  Ctrl-W  Ctrl-U  Ctrl-K delete the word, all before the cursor, all behind it",
			"  Esc  Enter             leave it; take it",
		}},
		helpPart{"mouse", []string{
			"  a click selects, two open, one on the head of a column of the flows sorts; the wheel scrolls what is " +
				"under it; with Shift most terminals select text",
		}},
		helpPart{"glyphs", []string{
			"  .  empty   s sent   a acked   r received   ? unknown   x lost   ~ claimed, never seen   p some fragments",
			"  ✓  acked, with the frame that says so   ✗ lost: it can no longer be acked   E W N  a finding: error, " +
				"warning, note",
		}},
	)
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
