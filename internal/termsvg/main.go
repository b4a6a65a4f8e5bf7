// Command termsvg draws the output of a program on a terminal as an SVG, for
// documents. It reads text with colour sequences.
//
//	ackscope findings --color always FILE | go run ./internal/termsvg >picture.svg
//
// A line that begins with "$ " is a command line. Command termsvg understands
// what ackscope prints, and what its screens consist of (`tmux capture-pane -e
// -p`). That is bold, faint, underlined and reversed text, and colours of 16,
// 256 and true colour. It drops other sequences. With -light the page is light.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"html"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"
)

func main() {
	light := flag.Bool("light", false, "a light page")
	flag.Parse()
	p := &darkPage
	if *light {
		p = &lightPage
	}
	if err := p.draw(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "termsvg:", err)
		os.Exit(2)
	}
}

const (
	cellWidth  = 8.43 // width of a character in a 14 px monospace font
	lineHeight = 18
	margin     = 16
	baseline   = 13
)

// page is the look of a terminal.
type page struct {
	background, foreground string
	// palette is black, red, green, yellow, blue, magenta, cyan, white, and their bright forms.
	palette [16]string
}

var darkPage = page{"#14181f", "#d4d8df", [16]string{
	"#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d4d8df",
	"#7f8796", "#ff7b86", "#b5e890", "#ffd68a", "#82c4ff", "#dd9bf0", "#7fd9e6", "#ffffff",
}}

var lightPage = page{"#fbfbf8", "#1f2328", [16]string{
	"#24292f", "#a40e26", "#116329", "#7d4e00", "#0550ae", "#6639ba", "#0b6a73", "#6e7781",
	"#57606a", "#cf222e", "#1a7f37", "#9a6700", "#0969da", "#8250df", "#1b7c83", "#8c959f",
}}

// style is the effect of the sequences so far. A colour is an index of the
// palette (0 to 15), RGB plus rgb, or -1 for none.
type style struct {
	fg, bg                         int
	bold, faint, underline, invert bool
}

const rgb = 1 << 24

var plain = style{fg: -1, bg: -1}

// color formats a colour for SVG. It returns none for -1.
func (p *page) color(c int, none string) string {
	switch {
	case c < 0:
		return none
	case c >= rgb:
		return fmt.Sprintf("#%06x", c-rgb)
	}
	return p.palette[c]
}

// indexed returns the colour of a number below 256. There are 16 of the
// palette, a cube of six by six by six, and 24 greys.
func indexed(n int) int {
	level := func(i int) int {
		if i == 0 {
			return 0
		}
		return 55 + 40*i
	}
	switch {
	case n < 0 || n > 255:
		return -1
	case n < 16:
		return n
	case n < 232:
		n -= 16
		return rgb + level(n/36)<<16 + level(n/6%6)<<8 + level(n%6)
	}
	return rgb + (8+10*(n-232))*0x010101
}

// run is text of one style on one line.
type run struct {
	style
	column int
	text   string
}

func (p *page) draw(r io.Reader, w io.Writer) error {
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
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d">`+"\n", width,
		height, width, height)
	fmt.Fprintf(out, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", p.background)
	fmt.Fprintf(out,
		`<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14" fill="%s">`+"\n", p.foreground)
	for i, runs := range lines {
		top := margin + i*lineHeight
		for _, r := range runs {
			r.write(p, out, top)
		}
	}
	fmt.Fprintln(out, "</g>\n</svg>")
	return out.Flush()
}

// write draws a run. Its length is fixed, so that columns stay aligned in any
// font.
func (r run) write(p *page, w io.Writer, top int) {
	x, length := margin+float64(r.column)*cellWidth, float64(len([]rune(r.text)))*cellWidth
	fg, bg := p.color(r.fg, p.foreground), p.color(r.bg, "")
	if r.invert {
		fg, bg = p.color(r.bg, p.background), fg
	}
	if bg != "" {
		fmt.Fprintf(w, `<rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s"/>`+"\n", x, top, length, lineHeight, bg)
	}
	text := dots(w, fg, r.text, x, top)
	for at, piece := range pieces(text) {
		r.words(w, piece, x+float64(at)*cellWidth, top, fg)
	}
}

// pieces yields the parts of a text between two or more spaces, each with its column. A browser
// draws several spaces as one, and would stretch the rest to the length of the whole.
func pieces(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		cells := []rune(text)
		for at := 0; at < len(cells); {
			if cells[at] == ' ' {
				at++
				continue
			}
			end := at + 1
			for end < len(cells) && (cells[end] != ' ' || end+1 < len(cells) && cells[end+1] != ' ') {
				end++
			}
			if !yield(at, string(cells[at:end])) {
				return
			}
			at = end
		}
	}
}

// words writes a text without two spaces in a row.
func (r run) words(w io.Writer, text string, x float64, top int, fg string) {
	length := float64(len([]rune(text))) * cellWidth
	fmt.Fprintf(w, `<text x="%.2f" y="%d" textLength="%.2f" fill="%s"`, x, top+baseline, length, fg)
	for _, a := range []struct {
		on   bool
		attr string
	}{{r.bold, ` font-weight="bold"`}, {r.faint, ` opacity="0.6"`}, {r.underline, ` text-decoration="underline"`}} {
		if a.on {
			fmt.Fprint(w, a.attr)
		}
	}
	fmt.Fprintf(w, ">%s</text>\n", html.EscapeString(text))
}

// dots draws Braille characters as dots, since few fonts have them in this
// width. It returns the text without them.
func dots(w io.Writer, fill, text string, x float64, top int) string {
	const from, to = 0x2800, 0x28ff
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= from && r <= to }) {
		return text
	}
	var rest, path strings.Builder
	column := 0
	for _, r := range text {
		if r < from || r > to {
			rest.WriteRune(r)
			column++
			continue
		}
		for bit := range 8 {
			if (r-from)>>bit&1 == 0 {
				continue
			}
			across, down := bit/3, bit%3
			if bit >= 6 {
				across, down = bit-6, 3
			}
			fmt.Fprintf(&path, "M%.1f %.1fh2.6v2.6h-2.6z", x+cellWidth*(float64(column)+float64(across)/2)+0.8,
				float64(top)+lineHeight/4.0*float64(down)+0.9)
		}
		rest.WriteByte(' ')
		column++
	}
	fmt.Fprintf(w, `<path d="%s" fill="%s"/>`+"\n", path.String(), fill)
	return rest.String()
}

// split cuts a line into runs, beginning in style s. It returns the style at
// the end and the width in cells.
func split(line string, s style) (runs []run, end style, width int) {
	var text strings.Builder
	start := 0
	flush := func() {
		if n := len(runs); text.Len() > 0 && n > 0 && runs[n-1].style == s {
			runs[n-1].text += text.String() // the sequences between them changed nothing
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

// apply applies the parameters of one colour sequence.
func (s style) apply(parameters string) style {
	list := strings.FieldsFunc(parameters, func(r rune) bool { return r == ':' })
	list = strings.Split(strings.Join(list, ";"), ";")
	for i := 0; i < len(list); i++ {
		n, err := strconv.Atoi(list[i])
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
		case n == 38 || n == 48:
			c, used := extended(list[i+1:])
			if i += used; n == 38 {
				s.fg = c
			} else {
				s.bg = c
			}
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

// extended parses a colour of 256 (5;n) or a true colour (2;r;g;b). It returns
// the number of parameters used.
func extended(list []string) (color, used int) {
	var n [4]int
	for i := range min(len(list), len(n)) {
		n[i], _ = strconv.Atoi(list[i])
	}
	switch {
	case len(list) >= 2 && n[0] == 5:
		return indexed(n[1]), 2
	case len(list) >= 4 && n[0] == 2:
		return rgb + n[1]&255<<16 + n[2]&255<<8 + n[3]&255, 4
	}
	return -1, len(list)
}
