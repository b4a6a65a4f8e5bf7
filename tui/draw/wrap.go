package draw

import (
	"strings"
	"unicode/utf8"
)

// WrapLine breaks a line at blanks into parts of at most width columns. The
// line may contain styles. Two blanks separate columns of a line: a
// continuation is indented to its last column.
func WrapLine(line string, width int) (out []string) {
	if TextWidth(StripStyles(line)) <= width || width < 20 {
		return []string{line}
	}
	plain := StripStyles(line)
	indent := len(plain) - len(strings.TrimLeft(plain, " "))
	if i := strings.LastIndex(plain[:min(len(plain), width/2)], "  "); i > indent {
		indent = TextWidth(plain[:i]) + 2
	}
	indent = min(indent, width/2)
	style, columns, blank := "", 0, -1 // blank: where the part may end; -1 for nowhere
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
		if columns += RuneWidth(r); columns > width && blank > start {
			out = append(out, hang+line[start:blank])
			start = blank + 1
			hang = strings.Repeat(" ", indent) + style
			columns = indent + TextWidth(StripStyles(line[start:i+n]))
			blank = -1
		}
		i += n
	}
	return append(out, hang+line[start:])
}

// StripStyles removes SGR sequences.
func StripStyles(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, 0x1b)
		if i < 0 {
			return b.String() + s
		}
		b.WriteString(s[:i])
		j := strings.IndexByte(s[i:], 'm')
		if j < 0 {
			return b.String()
		}
		s = s[i+j+1:]
	}
}

// PadRight pads a text with blanks to n columns.
func PadRight(s string, n int) string {
	if w := TextWidth(s); w < n {
		return s + strings.Repeat(" ", n-w)
	}
	return s
}

// Cut shortens a text to n columns, the last of which is then "…".
func Cut(s string, n int) string {
	if TextWidth(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
