package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/graph"
)

// chart is one drawing of the plot: lines of measured points.
type chart struct {
	title, x, y string
	powers      bool // x runs by powers of ten
	lines       []line
}

type line struct {
	name   string
	points [][2]float64
}

func (c *chart) add(name string, x, y float64) {
	for i := range c.lines {
		if l := &c.lines[i]; l.name == name {
			if last := len(l.points) - 1; l.points[last][0] == x {
				l.points[last][1] = y // the benchmark ran again
			} else {
				l.points = append(l.points, [2]float64{x, y})
			}
			return
		}
	}
	c.lines = append(c.lines, line{name, [][2]float64{{x, y}}})
}

// Layout of a chart. Two of them are side by side.
const (
	chartWidth, chartHeight               = 360, 250
	chartLeft, chartRight                 = 52, 14
	chartTop, chartBottom                 = 52, 44
	chartWide, chartHigh                  = chartWidth - chartLeft - chartRight, chartHeight - chartTop - chartBottom
	chartSteps, chartSide, chartPointSize = 4, 2, 3
)

var lineColours = []string{"var(--c-sent)", "var(--c-again)", "var(--dim)"}

// drawing returns the charts as a picture that follows the viewer's light or dark theme.
func drawing(charts []*chart) []byte {
	var b strings.Builder
	rows := (len(charts) + chartSide - 1) / chartSide
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" aria-labelledby="t d" `)
	fmt.Fprintf(&b, `viewBox="0 0 %d %d">`+"\n", chartSide*chartWidth, rows*chartHeight)
	b.WriteString(`<title id="t">How the cost grows</title><desc id="d">Processor time a packet against packets, flows and loss, ` +
		"and wall time against threads. Each chart begins at zero.</desc>\n")
	fmt.Fprintf(&b, "<style>\n.plot{%s}\n@media (prefers-color-scheme:dark){.plot{%s}}\n%s</style>\n",
		graph.Colours(false), graph.Colours(true), `.plot text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:var(--dim)}`+
			".plot .title{font-size:14px;font-weight:600;fill:var(--fg)}.plot .grid{stroke:var(--grid);fill:none}\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="var(--bg)"/>`+"\n", chartSide*chartWidth, rows*chartHeight)
	for i, c := range charts {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", i%chartSide*chartWidth, i/chartSide*chartHeight)
		c.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// draw writes the elements of the chart, with its upper left corner at the origin.
func (c *chart) draw(b *strings.Builder) {
	place := func(x float64) float64 { return x }
	if c.powers {
		place = math.Log10
	}
	low, high, top := math.Inf(1), math.Inf(-1), 0.0
	for _, l := range c.lines {
		for _, p := range l.points {
			low, high, top = min(low, place(p[0])), max(high, place(p[0])), max(top, p[1])
		}
	}
	step := round(top / chartSteps)
	atX := func(x float64) float64 { return chartLeft + (place(x)-low)/max(high-low, 1e-9)*chartWide }
	atY := func(y float64) float64 { return chartTop + chartHigh - y/(chartSteps*step)*chartHigh }

	fmt.Fprintf(b, `<text class="title" x="10" y="20">%s</text><text x="10" y="40">%s</text>`+"\n", c.title, c.y)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", chartLeft+chartWide/2, chartHeight-8, c.x)
	for i := range chartSteps + 1 {
		y := float64(i) * step
		fmt.Fprintf(b, `<path class="grid" d="M%d %.1fh%d"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			chartLeft, atY(y), chartWide, chartLeft-6, atY(y)+4, strconv.FormatFloat(y, 'g', 4, 64))
	}
	for i, l := range c.lines {
		colour := lineColours[i%len(lineColours)]
		var path strings.Builder
		for k, p := range l.points {
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(k, 1)], atX(p[0]), atY(p[1]))
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="%d" fill="%s"/>`, atX(p[0]), atY(p[1]), chartPointSize, colour)
			if i == 0 {
				fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, atX(p[0]), chartTop+chartHigh+16, short(p[0]))
			}
		}
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`, path.String(), colour)
		fmt.Fprintf(b, `<text x="%d" y="40" text-anchor="end" style="fill:%s">%s</text>`+"\n", chartWidth-chartRight-80*i, colour, l.name)
	}
}

// round returns the next larger number of the form 1, 2, 2.5 or 5 times a power of ten.
func round(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*power >= v {
			return m * power
		}
	}
	return 10 * power
}

// short writes 10000 as 10k, and 1000000 as 1M.
func short(n float64) string {
	switch {
	case n >= million:
		return fmt.Sprintf("%gM", n/million)
	case n >= 1000:
		return fmt.Sprintf("%gk", n/1000)
	}
	return fmt.Sprint(n)
}
