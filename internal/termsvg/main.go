// Command termsvg draws what a program printed to a terminal as an SVG, for
// documents: it reads text with colour sequences and writes the picture.
//
//	ackscope findings --color always FILE | go run ./internal/termsvg >picture.svg
//
// A line that begins with "$ " is a command line. It knows what ackscope prints: bold, faint, underlined, reversed, and the
// sixteen colours. Other sequences are dropped.
package main

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"os"
	"strconv"
	"strings"
)

func main() {
	if err := draw(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "termsvg:", err)
		os.Exit(2)
	}
}

const (
	cellWidth  = 8.43 // of a 14 px monospace font
	lineHeight = 18
	margin     = 16
	baseline   = 13
	background = "#14181f"
	foreground = "#d4d8df"
)

// palette is black, red, green, yellow, blue, magenta, cyan, white, and their bright forms.
var palette = [16]string{
	"#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d4d8df",
	"#7f8796", "#ff7b86", "#b5e890", "#ffd68a", "#82c4ff", "#dd9bf0", "#7fd9e6", "#ffffff",
}

// style is what the sequences so far ask for; colours are indices, -1 for none.
type style struct {
	fg, bg                         int
	bold, faint, underline, invert bool
}

var plain = style{fg: -1, bg: -1}

// run is text of one style on one line.
type run struct {
	style
	column int
	text   string
}

func draw(r io.Reader, w io.Writer) error {
	var lines [][]run
	s, widest := plain, 0
	for scan := bufio.NewScanner(r); ; {
		if !scan.Scan() {
			if err := scan.Err(); err != nil {
				return err
			}
			break
		}
		var runs []run
		var width int
		if command, ok := strings.CutPrefix(scan.Text(), "$ "); ok {
			runs = []run{{style{fg: 2, bg: -1, bold: true}, 0, "$"}, {style{fg: -1, bg: -1, bold: true}, 2, command}}
			width = 2 + len([]rune(command))
		} else {
			runs, s, width = split(scan.Text(), s)
		}
		lines = append(lines, runs)
		widest = max(widest, width)
	}

	out := bufio.NewWriter(w)
	width, height := float64(widest)*cellWidth+2*margin, len(lines)*lineHeight+2*margin
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d">`+"\n", width, height, width, height)
	fmt.Fprintf(out, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", background)
	fmt.Fprintf(out, `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14" fill="%s" xml:space="preserve">`+"\n", foreground)
	for i, runs := range lines {
		top := margin + i*lineHeight
		for _, r := range runs {
			r.write(out, top)
		}
	}
	fmt.Fprintln(out, "</g>\n</svg>")
	return out.Flush()
}

// write draws a run; its length is fixed, so that columns stay aligned whatever
// font the reader has.
func (r run) write(w io.Writer, top int) {
	x, length := margin+float64(r.column)*cellWidth, float64(len([]rune(r.text)))*cellWidth
	fg, bg := foreground, ""
	if r.fg >= 0 {
		fg = palette[r.fg]
	}
	if r.bg >= 0 {
		bg = palette[r.bg]
	}
	if r.invert {
		fg, bg = background, fg
	}
	if bg != "" {
		fmt.Fprintf(w, `<rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s"/>`+"\n", x, top, length, lineHeight, bg)
	}
	if strings.TrimSpace(r.text) == "" {
		return
	}
	fmt.Fprintf(w, `<text x="%.2f" y="%d" textLength="%.2f" fill="%s"`, x, top+baseline, length, fg)
	for _, a := range []struct {
		on   bool
		attr string
	}{{r.bold, ` font-weight="bold"`}, {r.faint, ` opacity="0.6"`}, {r.underline, ` text-decoration="underline"`}} {
		if a.on {
			fmt.Fprint(w, a.attr)
		}
	}
	fmt.Fprintf(w, ">%s</text>\n", html.EscapeString(r.text))
}

// split cuts a line into runs, beginning in style s; it gives the style at its
// end and the width in cells.
func split(line string, s style) (runs []run, end style, width int) {
	var text strings.Builder
	start := 0
	flush := func() {
		if n := len(runs); text.Len() > 0 && n > 0 && runs[n-1].style == s {
			runs[n-1].text += text.String() // the sequences between changed nothing
		} else if text.Len() > 0 {
			runs = append(runs, run{s, start, text.String()})
		}
		text.Reset()
		start = width
	}
	for rest := line; rest != ""; {
		if after, ok := strings.CutPrefix(rest, "\x1b["); ok {
			final := strings.IndexFunc(after, func(r rune) bool { return r >= 0x40 && r <= 0x7e })
			if final < 0 {
				break
			}
			flush()
			if after[final] == 'm' {
				s = s.apply(after[:final])
			}
			rest = after[final+1:]
			continue
		}
		var r rune
		for _, r = range rest {
			break
		}
		rest = rest[len(string(r)):]
		if r >= ' ' {
			text.WriteRune(r)
			width++
		}
	}
	flush()
	return runs, s, width
}

// apply reads the parameters of one colour sequence.
func (s style) apply(parameters string) style {
	for p := range strings.SplitSeq(parameters, ";") {
		n, err := strconv.Atoi(p)
		if err != nil {
			n = 0 // an empty parameter is a reset
		}
		switch {
		case n == 0:
			s = plain
		case n == 1:
			s.bold = true
		case n == 2:
			s.faint = true
		case n == 4:
			s.underline = true
		case n == 7:
			s.invert = true
		case n == 22:
			s.bold, s.faint = false, false
		case n == 24:
			s.underline = false
		case n == 27:
			s.invert = false
		case n >= 30 && n <= 37:
			s.fg = n - 30
		case n == 39:
			s.fg = -1
		case n >= 40 && n <= 47:
			s.bg = n - 40
		case n == 49:
			s.bg = -1
		case n >= 90 && n <= 97:
			s.fg = n - 90 + 8
		case n >= 100 && n <= 107:
			s.bg = n - 100 + 8
		}
	}
	return s
}
