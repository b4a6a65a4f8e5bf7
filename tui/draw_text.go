package tui

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

func (m *Model) drawHelp(c canvas) {
	c.rule(0, "help", true)
	m.text.lines = nil
	for _, line := range helpLines() {
		m.text.lines = append(m.text.lines, wrapLine(line, c.w-2)...)
	}
	m.drawText(c.part(1, 1, c.w-1, c.h-1))
}

// wrapLine breaks a line that may carry styles at blanks, so that each part takes at
// most so many columns. What goes on stands below the last column of the line, as
// wide blanks part it.
func wrapLine(line string, width int) (out []string) {
	if textWidth(stripStyles(line)) <= width || width < 20 {
		return []string{line}
	}
	plain := stripStyles(line)
	indent := len(plain) - len(strings.TrimLeft(plain, " "))
	if i := strings.LastIndex(plain[:min(len(plain), width/2)], "  "); i > indent {
		indent = textWidth(plain[:i]) + 2
	}
	indent = min(indent, width/2)
	style, columns, blank := "", 0, -1 // blank: where the part may end
	start, hang := 0, ""
	for i := 0; i < len(line); {
		if line[i] == 0x1b {
			end := i + strings.IndexByte(line[i:], 'm') + 1
			if end <= i {
				break
			}
			style = line[i:end]
			i = end
			continue
		}
		r, n := utf8.DecodeRuneInString(line[i:])
		if r == ' ' && columns > indent {
			blank = i
		}
		if columns += runeWidth(r); columns > width && blank > start {
			out = append(out, hang+line[start:blank])
			start = blank + 1
			hang = strings.Repeat(" ", indent) + style
			columns = indent + textWidth(stripStyles(line[start:i+n]))
			blank = -1
		}
		i += n
	}
	return append(out, hang+line[start:])
}

// drawText draws the lines of the pager.
func (m *Model) drawText(c canvas) {
	l := &m.text.list
	l.height = max(c.h, 1)
	l.top = min(max(l.top, 0), max(len(m.text.lines)-l.height, 0))
	for y := range c.h {
		if i := l.top + y; i < len(m.text.lines) {
			c.sgr(0, y, roleText, m.text.lines[i])
		}
	}
	if more := len(m.text.lines) - l.top - c.h; more > 0 && c.h > 1 {
		c.right(c.w-1, c.h-1, roleDim, fmt.Sprintf(" %d more ▾", more))
	}
}
