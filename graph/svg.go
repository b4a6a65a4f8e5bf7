package graph

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ackscope/ackscope/printable"
)

// Layout of a drawing, in its own units. A viewer scales it to any width. The
// margins leave room for the larger letters on narrow screens.
const (
	svgWidth  = 720
	svgLeft   = 78
	svgRight  = 18
	svgTop    = 62 // title and legend
	svgPlot   = 200
	svgBottom = 38 // the time axis
	svgHeight = svgTop + svgPlot + svgBottom
)

// Style is the style sheet of the drawings, for pages that contain them. The
// variables of Colours adapt the colours to the page's light or dark theme.
const Style = `.plot text{font:13px system-ui,-apple-system,"Segoe UI",sans-serif;fill:var(--dim)}
.plot .title{font-size:15px;font-weight:600;fill:var(--fg)}
.plot .legend{fill:var(--fg)}
.plot .grid{stroke:var(--grid);stroke-width:1;fill:none}
.plot .axis{stroke:var(--dim);stroke-width:1;fill:none}
.plot path.t{fill:none;stroke-width:1.6;stroke-linejoin:round}
.plot path.t.area{stroke:var(--fg);stroke-width:1}.plot path.t.band{stroke:none;fill:var(--c-raw);fill-opacity:.55}
.plot path.t.shade{stroke:none;fill:var(--grid);fill-opacity:.8}
.plot .area.again{stroke-dasharray:6 3}.plot .area.acks{stroke-dasharray:2 2}.plot .area.headers{stroke-dasharray:8 3 2 3}
.plot .acked{stroke-dasharray:7 3}.plot .loss{stroke-dasharray:4 2}
.plot .sent{stroke:var(--c-sent)}.plot .acked{stroke:var(--c-acked)}.plot .again{stroke:var(--c-again)}.plot .lost{stroke:var(--c-lost)}
.plot .raw{stroke:var(--c-raw)}.plot .smooth{stroke:var(--c-smooth);stroke-width:2}.plot .flight{stroke:var(--c-sent)}.plot .loss{stroke:var(--c-lost)}
.plot .area.goodput{fill:var(--c-acked)}.plot .area.again{fill:var(--c-again)}.plot .area.acks{fill:var(--c-sent)}.plot .area.headers{fill:var(--c-headers)}
.plot text.sign{font-size:12px;font-weight:700;stroke:none;text-anchor:middle}
.plot text.sign.again{fill:var(--c-again)}.plot text.sign.lost{fill:var(--c-lost)}
@media (max-width:520px){.plot text{font-size:22px}.plot .title{font-size:23px}.plot text.sign{font-size:18px}.plot .minor{display:none}}
`

// Colours returns the variables that Style reads, for a light or a dark page.
func Colours(dark bool) string {
	if dark {
		return "--bg:#0d1117;--fg:#e6edf3;--dim:#9198a1;--grid:#262c36;--c-sent:#58a6ff;--c-acked:#3fb950;--c-again:#f0883e;--c-lost:#ff7b72;--c-raw:#bc8cff;--c-smooth:#e6edf3;--c-headers:#6e7681;"
	}
	return "--bg:#ffffff;--fg:#1f2328;--dim:#59636e;--grid:#e3e7ec;--c-sent:#0969da;--c-acked:#1a7f37;--c-again:#bc4c00;--c-lost:#cf222e;--c-raw:#a475f9;--c-smooth:#3b2a63;--c-headers:#afb8c1;"
}

// SVG returns plots below each other as a self-contained picture. It follows
// the viewer's light or dark theme, and is readable down to the width of a
// phone.
func SVG(title, doc string, plots []*Plot) []byte {
	var b strings.Builder
	height := max(svgHeight*len(plots), 60)
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox="0 0 %d %d" role="img" aria-labelledby="plot-title plot-desc">`+"\n", svgWidth, height)
	fmt.Fprintf(&b, "<title id=\"plot-title\">%s</title>\n<desc id=\"plot-desc\">%s</desc>\n", escape(title), escape(doc))
	fmt.Fprintf(&b, "<style>\n.plot{%s}\n@media (prefers-color-scheme:dark){.plot{%s}}\n%s</style>\n", Colours(false),
		Colours(true), Style)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="var(--bg)"/>`+"\n", svgWidth, height)
	if len(plots) == 0 {
		fmt.Fprintf(&b, `<text x="%d" y="36">Nothing to draw.</text>`+"\n", svgLeft)
	}
	for i, p := range plots {
		fmt.Fprintf(&b, `<g transform="translate(0 %d)">`+"\n", i*svgHeight)
		p.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// Inline returns the plot as an element of a page that has Style and Colours.
// id makes its element names unique in the page.
func (p *Plot) Inline(id string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="plot" viewBox="0 0 %d %d" role="img" aria-labelledby="%s-t %s-d">`, svgWidth,
		svgHeight, id, id)
	fmt.Fprintf(&b, `<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, id, escape(p.Title), id,
		escape(p.Doc+" "+p.Summary()))
	p.draw(&b)
	b.WriteString("</svg>")
	return b.String()
}

// Summary describes the plot in words, for readers who cannot see it.
func (p *Plot) Summary() string {
	if p.Empty() {
		return "Nothing was seen."
	}
	var parts []string
	for i := range p.Traces {
		t := &p.Traces[i]
		n, low, high := uint64(0), math.Inf(1), math.Inf(-1)
		for _, x := range t.Points {
			n += uint64(x.N)
			low, high = min(low, x.Low), max(high, x.High)
			if t.Shape == Area {
				high = max(high, x.High-x.Low)
			}
		}
		switch t.Shape {
		case Marks:
			parts = append(parts, fmt.Sprintf("%s: %d", t.Name, n))
		case Shade:
			share := 100 * t.width(p) / p.Span
			parts = append(parts, fmt.Sprintf("%s: %s%% of the time", t.Name, Number(share)))
		case Area:
			peak := 0.0
			for _, x := range t.Points {
				peak = max(peak, x.High-x.Low)
			}
			parts = append(parts, fmt.Sprintf("%s: up to %s %s", t.Name, p.value(peak), p.Unit))
		case Bars, Steps, Levels, Line, Band:
			unit := p.Unit
			if unit == "%" {
				unit = ""
			}
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s: %s to %s %s", t.Name, p.value(low), p.value(high), unit)))
		}
	}
	return strings.Join(parts, "; ") + "."
}

func (p *Plot) x(at float64) float64 {
	return svgLeft + at/p.Span*(svgWidth-svgLeft-svgRight)
}

func (p *Plot) y(v float64) float64 {
	return svgTop + svgPlot - (v-p.Low)/(p.High-p.Low)*svgPlot
}

// draw writes the elements of the plot, with its upper left corner at the
// origin.
func (p *Plot) draw(b *strings.Builder) {
	fmt.Fprintf(b, `<text class="title" x="10" y="24">%s</text>`, escape(p.heading()))
	if p.Empty() {
		fmt.Fprintf(b, `<text x="%d" y="%d">Nothing was seen.</text>`, svgLeft, svgTop+svgPlot/2)
		return
	}
	p.legend(b)
	p.axes(b)
	for i := range p.Traces {
		p.trace(b, &p.Traces[i])
	}
	b.WriteByte('\n')
}

func (p *Plot) heading() string {
	if p.Unit == "" || p.Unit == "%" {
		return p.Title
	}
	return p.Title + ", " + p.Unit
}

func (p *Plot) legend(b *strings.Builder) {
	x := 10
	for i := range p.Traces {
		t := &p.Traces[i]
		switch t.Shape {
		case Marks:
			fmt.Fprintf(b, `<text class="sign %s" x="%d" y="50">%s</text>`, t.Class, x+8, escape(t.Sign))
		case Area, Band, Shade:
			fmt.Fprintf(b, `<path class="t %s %s" d="M%d 39h16v12h-16z"/>`, shapeClass[t.Shape], t.Class, x)
		case Bars:
			fmt.Fprintf(b, `<path class="t %s" d="M%d 51v-9m5 6v-9m5 6v-9"/>`, t.Class, x+3)
		case Steps, Levels:
			fmt.Fprintf(b, `<path class="t %s" d="M%d 49h6v-4h6v-4h4"/>`, t.Class, x)
		case Line:
			fmt.Fprintf(b, `<path class="t %s" d="M%d 47h16"/>`, t.Class, x)
		}
		fmt.Fprintf(b, `<text class="legend" x="%d" y="50">%s</text>`, x+22, escape(t.Name))
		x += 22 + 12*utf8.RuneCountInString(t.Name) + 24
	}
}

func (p *Plot) axes(b *strings.Builder) {
	for i, v := range p.ticks(axisTicks + 2) {
		y := p.y(v)
		minor := ""
		if i%2 == 1 {
			minor = ` class="minor"`
		}
		fmt.Fprintf(b, `<path class="grid" d="M%d %sH%d"/><text%s x="%d" y="%s" text-anchor="end">%s</text>`, svgLeft,
			coordinate(y), svgWidth-svgRight, minor, svgLeft-8, coordinate(y+4.5), p.value(v))
	}
	for i, v := range Ticks(0, p.Span, 7) {
		minor := ""
		if i%2 == 1 {
			minor = ` class="minor"`
		}
		fmt.Fprintf(b, `<path class="axis" d="M%s %dv5"/><text%s x="%s" y="%d" text-anchor="middle">%s s</text>`,
			coordinate(p.x(v)), svgTop+svgPlot, minor, coordinate(p.x(v)), svgTop+svgPlot+24, Number(v))
	}
	fmt.Fprintf(b, `<path class="axis" d="M%d %dH%d"/>`, svgLeft, svgTop+svgPlot, svgWidth-svgRight)
}

func (p *Plot) trace(b *strings.Builder, t *Trace) {
	if t.Shape == Marks {
		for _, x := range t.Points {
			fmt.Fprintf(b, `<text class="sign %s" x="%s" y="%s">%s</text>`, t.Class, coordinate(p.x(x.At)),
				coordinate(p.y(x.High)+4), escape(t.Sign))
		}
		return
	}
	var d strings.Builder
	switch t.Shape {
	case Bars:
		for _, x := range t.Points {
			y0, y1 := p.y(x.Low), p.y(x.High)
			if y0-y1 < 3 {
				y0, y1 = (y0+y1)/2+1.5, (y0+y1)/2-1.5
			}
			d.WriteString("M" + coordinate(p.x(x.At)) + " " + coordinate(y0) + "V" + coordinate(y1))
		}
	case Steps:
		for i, x := range t.Points {
			if i == 0 {
				d.WriteString("M" + coordinate(p.x(x.At)) + " " + coordinate(p.y(x.High)))
				continue
			}
			d.WriteString("H" + coordinate(p.x(x.At)))
			if x.High != t.Points[i-1].High {
				d.WriteString("V" + coordinate(p.y(x.High)))
			}
		}
	case Levels:
		for i, x := range t.Points {
			d.WriteString("MH"[min(i, 1):min(i, 1)+1] + coordinate(p.x(x.At)))
			if i == 0 {
				d.WriteString(" " + coordinate(p.y(x.Low)))
			}
			for _, v := range []float64{x.Low, x.High, x.Last} {
				d.WriteString("V" + coordinate(p.y(v)))
			}
		}
	case Line:
		for i, x := range t.Points {
			d.WriteString("ML"[min(i, 1):min(i, 1)+1] + coordinate(p.x(x.At)) + " " + coordinate(p.y((x.Low+x.High)/2)))
		}
	case Area:
		for i, x := range t.Points {
			d.WriteString("ML"[min(i, 1):min(i, 1)+1] + coordinate(p.x(x.At)) + " " + coordinate(p.y(x.High)))
		}
		for i := len(t.Points) - 1; i >= 0; i-- {
			d.WriteString("L" + coordinate(p.x(t.Points[i].At)) + " " + coordinate(p.y(t.Points[i].Low)))
		}
		d.WriteByte('Z')
	case Band, Shade:
		half := p.Column.Seconds() / 2
		for _, x := range t.Points {
			low, high := p.y(x.Low), p.y(x.High)
			if t.Shape == Band && low-high < 1.6 {
				low, high = (low+high)/2+0.8, (low+high)/2-0.8
			}
			fmt.Fprintf(&d, "M%s %sH%sV%sH%sZ", coordinate(p.x(max(x.At-half, 0))), coordinate(low),
				coordinate(p.x(min(x.At+half, p.Span))), coordinate(high), coordinate(p.x(max(x.At-half, 0))))
		}
	case Marks:
	}
	fmt.Fprintf(b, `<path class="%s" d="%s"/>`, strings.Join(strings.Fields("t "+shapeClass[t.Shape]+" "+t.Class), " "),
		d.String())
}

// shapeClass are the classes of shapes that are filled.
var shapeClass = map[Shape]string{Area: "area", Band: "band", Shade: "shade"}

// width returns how many seconds the columns of a trace cover.
func (t *Trace) width(p *Plot) float64 { return min(float64(len(t.Points))*p.Column.Seconds(), p.Span) }

// coordinate formats a coordinate with one decimal.
func coordinate(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

// escape makes a text safe in an SVG: without markup, and without characters
// that XML forbids or that mislead a reader.
func escape(text string) string { return html.EscapeString(printable.String(text)) }
