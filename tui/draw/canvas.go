package draw

import (
	"strings"
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/ackscope/ackscope/printable"
)

// Canvas is a rectangle of the screen. It clips what does not fit.
type Canvas struct {
	screen     tcell.Screen
	theme      *Theme
	x, y, W, H int // its origin on the screen and its size, in cells
}

// NewCanvas returns a canvas of the whole screen.
func NewCanvas(screen tcell.Screen, t *Theme) Canvas {
	w, h := screen.Size()
	return Canvas{screen, t, 0, 0, w, h}
}

// ShowCursor shows the terminal's cursor at a position of the canvas.
func (c Canvas) ShowCursor(x, y int) { c.screen.ShowCursor(c.x+x, c.y+y) }

// HideCursor hides the terminal's cursor.
func (c Canvas) HideCursor() { c.screen.HideCursor() }

// Part returns a rectangle of the canvas.
func (c Canvas) Part(x, y, w, h int) Canvas {
	x, y = min(max(x, 0), c.W), min(max(y, 0), c.H)
	return Canvas{c.screen, c.theme, c.x + x, c.y + y, max(min(w, c.W-x), 0), max(min(h, c.H-y), 0)}
}

// Fill paints a row in the style of a role.
func (c Canvas) Fill(y int, r Role) {
	if y < 0 || y >= c.H {
		return
	}
	for x := range c.W {
		c.screen.SetContent(c.x+x, c.y+y, ' ', nil, c.theme.styles[r])
	}
}

// RuneWidth returns how many columns a rune occupies.
func RuneWidth(r rune) int {
	if r < 0x300 || r >= 0x2010 && r < 0x2e80 {
		return 1 // Latin, and the punctuation, arrows and boxes that the screens use
	}
	return tview.TaggedStringWidth(string(r))
}

// TextWidth returns how many columns a text occupies.
func TextWidth(s string) (n int) {
	for _, r := range s {
		n += RuneWidth(r)
	}
	return n
}

// Text writes s at (x, y) and returns the column after it. Clipped text ends in
// "…". Control characters are escaped.
func (c Canvas) Text(x, y int, r Role, s string) int { return c.styled(x, y, c.theme.styles[r], s) }

func (c Canvas) styled(x, y int, style tcell.Style, s string) int {
	s = printable.String(s)
	if y < 0 || y >= c.H {
		return x + TextWidth(s)
	}
	for i, ch := range s {
		n := RuneWidth(ch)
		if x+n > c.W || x+n == c.W && i+utf8.RuneLen(ch) < len(s) && TextWidth(s[i:]) > n {
			if x < c.W && x >= 0 {
				c.screen.SetContent(c.x+x, c.y+y, '…', nil, style)
			}
			return c.W
		}
		if x >= 0 && n > 0 {
			c.screen.SetContent(c.x+x, c.y+y, ch, nil, style)
		}
		x += n
	}
	return x
}

// Right writes s so that it ends at column end.
func (c Canvas) Right(end, y int, r Role, s string) { c.Text(end-TextWidth(s), y, r, s) }

// sgrRoles maps the SGR codes of package show to roles.
var sgrRoles = map[string]Role{"1": Bold, "2": Dim, "31": Error, "33": Warn, "36": SideA, "35": SideB, "0": Text}

// SGR writes text that contains SGR sequences. A role over other than Text
// replaces them all.
func (c Canvas) SGR(x, y int, over Role, s string) {
	r := Text
	for s != "" {
		i := strings.IndexByte(s, 0x1b)
		chunk := s
		if i >= 0 {
			chunk = s[:i]
		}
		use := r
		if over != Text {
			use = over
		}
		if chunk != "" {
			x = c.Text(x, y, use, chunk)
		}
		if i < 0 {
			break
		}
		j := strings.IndexByte(s[i:], 'm')
		if j < 0 {
			break
		}
		r = sgrRoles[strings.TrimPrefix(s[i:i+j], "\x1b[")]
		s = s[i+j+1:]
	}
}

// Rule draws the line above a pane, and its title.
func (c Canvas) Rule(y int, title string, focused bool) {
	r := Title
	if focused {
		r = Focus
	}
	for x := range c.W {
		c.Text(x, y, Dim, "─")
	}
	if title != "" {
		mark := " "
		if focused {
			mark = "▸"
		}
		c.Part(0, y, c.W-1, 1).Text(1, 0, r, mark+title+" ")
	}
}

// Column draws a vertical line.
func (c Canvas) Column(x, y, h int) {
	for i := range h {
		c.Text(x, y+i, Dim, "│")
	}
}
