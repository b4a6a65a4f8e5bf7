package graph

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ackscope/ackscope/scale"
)

// Text draws plots with braille dots, for a terminal of width columns (at least
// 40). paint colours a text by the class of its trace. If it is nil, the text
// has no colours.
func Text(plots []*Plot, width, height int, paint func(class, text string) string) string {
	if paint == nil {
		paint = func(_, text string) string { return text }
	}
	var b strings.Builder
	for i, p := range plots {
		if i > 0 {
			b.WriteByte('\n')
		}
		p.text(&b, max(width, 40), max(height, 4), paint)
	}
	return b.String()
}

// TextColumns returns how many columns a plot has in a terminal of the given
// width.
func TextColumns(width int) int { return 2 * (max(width, 40) - textLabel) }

// textLabel is the width of the labels of values.
const textLabel = 9

// dots is a drawing with two by four dots per cell.
type dots struct {
	w, h    int // in cells
	cells   []rune
	classes []string
	signs   []string // shown instead of the dots
	texture rune     // the dots of a cell that a filled trace sets
}

// textures are patterns of dots in a cell. They tell filled traces apart without colours.
var textures = [...]rune{0xff, 0x5a, 0x36, 0x44}

// texture returns the index of the pattern of a trace. Each area has its own. A band has every other
// dot, so that a line on it can be seen.
func (p *Plot) texture(trace int) (n int) {
	switch p.Traces[trace].Shape {
	case Band:
		return 1
	case Area:
		for i := range trace {
			if p.Traces[i].Shape == Area {
				n++
			}
		}
	default:
	}
	return n % len(textures)
}

// fill sets the dots of the texture in a vertical bar, and both ends. Both rows must be inside the
// drawing.
func (d *dots) fill(x, from, to int, class string) {
	from, to = min(from, to), max(from, to)
	for y := from; y <= to; y++ {
		if d.texture&dotBits[y%4][x%2] != 0 || y == from {
			d.dot(x, y, class)
		}
	}
}

// shaded fills what is empty in the columns of a trace.
func (p *Plot) shaded(d *dots, t *Trace) {
	half := p.Column.Seconds() / 2
	for _, x := range t.Points {
		from := p.column(x.At-half, d)
		for c := from / 2; c <= max(p.column(x.At+half, d)-1, from)/2; c++ {
			for row := range d.h {
				if i := row*d.w + c; d.cells[i] == 0 && d.signs[i] == "" {
					d.signs[i], d.classes[i] = "░", t.Class
				}
			}
		}
	}
}

// column returns the column of dots of a time.
func (p *Plot) column(at float64, d *dots) int {
	return min(max(scale.Int(scale.Float(at/p.Span*float64(2*d.w))), 0), 2*d.w-1)
}

var dotBits = [4][2]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

func (d *dots) cell(x, y int) int {
	return min(max(y, 0), 4*d.h-1)/4*d.w + min(max(x, 0), 2*d.w-1)/2
}

func (d *dots) dot(x, y int, class string) {
	x, y = min(max(x, 0), 2*d.w-1), min(max(y, 0), 4*d.h-1)
	i := d.cell(x, y)
	d.cells[i] |= dotBits[y%4][x%2]
	d.classes[i] = class
}

// inside returns the row of dots in the drawing that is nearest to row.
func (d *dots) inside(row int) int { return min(max(row, 0), 4*d.h-1) }

// bar draws a vertical bar. Both rows must be inside the drawing.
func (d *dots) bar(x, from, to int, class string) {
	for y := min(from, to); y <= max(from, to); y++ {
		d.dot(x, y, class)
	}
}

func (p *Plot) text(b *strings.Builder, width, height int, paint func(class, text string) string) {
	fmt.Fprintf(b, "%s\n", p.heading())
	if p.Empty() {
		b.WriteString("  nothing was seen\n")
		return
	}
	for i := range p.Traces {
		t := &p.Traces[i]
		sign := t.Sign
		if sign == "" {
			sign = map[Shape]string{Bars: "⠇", Steps: "⠤", Levels: "⠤", Line: "⠒", Shade: "░"}[t.Shape]
		}
		if t.Shape == Area || t.Shape == Band {
			sign = string(0x2800 + 0xff&textures[p.texture(i)])
		}
		b.WriteString("  " + paint(t.Class, sign+" "+t.Name))
	}
	b.WriteByte('\n')
	d := &dots{w: width - textLabel, h: height}
	d.cells, d.classes, d.signs = make([]rune, d.w*d.h), make([]string, d.w*d.h), make([]string, d.w*d.h)
	for i := range p.Traces {
		d.texture = textures[p.texture(i)]
		p.dots(d, &p.Traces[i])
	}
	for i := range p.Traces {
		if p.Traces[i].Shape == Shade {
			p.shaded(d, &p.Traces[i])
		}
	}
	labels := map[int]string{}
	for _, v := range append([]float64{p.High}, p.ticks(max(height/3, 2))...) { // the ends come first
		row := p.row(v, d) / 4
		if _, taken := labels[row]; !taken {
			labels[row] = p.value(v)
		}
	}
	for row := range d.h {
		fmt.Fprintf(b, "%*s ", textLabel-2, labels[row])
		b.WriteString(map[bool]string{true: "┤", false: "│"}[labels[row] != ""])
		p.cells(b, d, row, paint)
		b.WriteByte('\n')
	}
	p.foot(b, d)
}

// cells writes a row. Adjacent cells of one class are coloured together.
func (p *Plot) cells(b *strings.Builder, d *dots, row int, paint func(class, text string) string) {
	end := d.w
	for end > 0 && d.cells[row*d.w+end-1] == 0 && d.signs[row*d.w+end-1] == "" {
		end--
	}
	for x := 0; x < end; {
		class, from := d.classes[row*d.w+x], x
		var run strings.Builder
		for ; x < end && d.classes[row*d.w+x] == class; x++ {
			switch i := row*d.w + x; {
			case d.signs[i] != "":
				run.WriteString(d.signs[i])
			case d.cells[i] != 0:
				run.WriteRune(0x2800 + d.cells[i])
			default:
				run.WriteByte(' ')
			}
		}
		if class == "" || x == from {
			b.WriteString(run.String())
		} else {
			b.WriteString(paint(class, run.String()))
		}
	}
}

// foot writes the time axis.
func (p *Plot) foot(b *strings.Builder, d *dots) {
	line, labels := []rune(strings.Repeat("─", d.w)), []rune(strings.Repeat(" ", d.w+textLabel))
	free := 0
	for _, v := range Ticks(0, p.Span, max(d.w/12, 2)) {
		x := min(scale.Int(scale.Float(v/p.Span*float64(d.w))), d.w-1)
		text := Number(v) + " s"
		n := utf8.RuneCountInString(text)
		at := min(max(x+textLabel-n/2, free), len(labels)-n)
		if at < free {
			continue
		}
		line[x] = '┬'
		copy(labels[at:], []rune(text))
		free = at + n + 1
	}
	fmt.Fprintf(b, "%*s └%s\n%s\n", textLabel-2, "", string(line), strings.TrimRight(string(labels), " "))
}

// row returns the dot row of a value, counted from the top.
func (p *Plot) row(v float64, d *dots) int {
	return scale.Int(scale.Float((p.High-v)/(p.High-p.Low)*float64(4*d.h-1) + 0.5))
}

func (p *Plot) dots(d *dots, t *Trace) {
	last, lastRow := -1, 0
	for _, x := range t.Points {
		column := p.column(x.At, d)
		low, high := d.inside(p.row(x.Low, d)), d.inside(p.row(x.High, d))
		switch t.Shape {
		case Marks:
			i := d.cell(column, high)
			d.signs[i], d.classes[i] = t.Sign, t.Class
			continue
		case Steps, Levels:
			for c := last + 1; last >= 0 && c < column; c++ {
				d.dot(c, lastRow, t.Class)
			}
		case Line:
			low, high = (low+high)/2, (low+high)/2
			for c := last + 1; last >= 0 && c < column; c++ {
				d.dot(c, lastRow+(high-lastRow)*(c-last)/(column-last), t.Class)
			}
			if last >= 0 && column-last <= 1 {
				d.bar(column, lastRow, high, t.Class)
			}
		case Area:
			if x.High <= x.Low {
				continue
			}
			for c := max(last+1, column-2*d.w/len(t.Points)); c < column; c++ {
				d.fill(c, low, high, t.Class)
			}
			d.fill(column, low, high, t.Class)
			last = column
			continue
		case Band:
			d.fill(column, low, high, t.Class)
			continue
		case Shade:
			return
		case Bars:
		}
		d.bar(column, low, high, t.Class)
		last, lastRow = column, high
		if t.Shape == Levels {
			lastRow = d.inside(p.row(x.Last, d))
		}
	}
}
