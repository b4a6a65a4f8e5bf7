package tui

import (
	"strings"
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/ackscope/ackscope/printable"
)

// canvas is a rectangle of the screen to draw in; what does not fit is cut.
type canvas struct {
	screen     tcell.Screen
	theme      *theme
	x, y, w, h int
}

// part gives a rectangle within the canvas.
func (c canvas) part(x, y, w, h int) canvas {
	x, y = min(max(x, 0), c.w), min(max(y, 0), c.h)
	return canvas{c.screen, c.theme, c.x + x, c.y + y, max(min(w, c.w-x), 0), max(min(h, c.h-y), 0)}
}

// fill paints a row in a role.
func (c canvas) fill(y int, r role) {
	if y < 0 || y >= c.h {
		return
	}
	for x := range c.w {
		c.screen.SetContent(c.x+x, c.y+y, ' ', nil, c.theme.styles[r])
	}
}

// runeWidth is how many columns a rune takes.
func runeWidth(r rune) int {
	if r < 0x300 || r >= 0x2010 && r < 0x2e80 {
		return 1 // Latin, and the punctuation, arrows and boxes that we draw
	}
	return tview.TaggedStringWidth(string(r))
}

// textWidth is how many columns a text takes.
func textWidth(s string) (n int) {
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// text writes s at (x, y) and gives the column after it. What is cut ends in …,
// what a terminal would obey is escaped.
func (c canvas) text(x, y int, r role, s string) int { return c.styled(x, y, c.theme.styles[r], s) }

func (c canvas) styled(x, y int, style tcell.Style, s string) int {
	s = printable.String(s)
	if y < 0 || y >= c.h {
		return x + textWidth(s)
	}
	for i, ch := range s {
		n := runeWidth(ch)
		if x+n > c.w || x+n == c.w && i+utf8.RuneLen(ch) < len(s) && textWidth(s[i:]) > n {
			if x < c.w && x >= 0 {
				c.screen.SetContent(c.x+x, c.y+y, '…', nil, style)
			}
			return c.w
		}
		if x >= 0 && n > 0 {
			c.screen.SetContent(c.x+x, c.y+y, ch, nil, style)
		}
		x += n
	}
	return x
}

// right writes s so that it ends at column end.
func (c canvas) right(end, y int, r role, s string) { c.text(end-textWidth(s), y, r, s) }

// sgrRoles are what the styles of package show mean here.
var sgrRoles = map[string]role{"1": roleBold, "2": roleDim, "31": roleError, "33": roleWarn, "36": roleSideA, "35": roleSideB, "0": roleText}

// sgr writes text that carries styles as SGR sequences. over, where it is not
// roleText, is used for all of it.
func (c canvas) sgr(x, y int, over role, s string) {
	r := roleText
	for s != "" {
		i := strings.IndexByte(s, 0x1b)
		chunk := s
		if i >= 0 {
			chunk = s[:i]
		}
		use := r
		if over != roleText {
			use = over
		}
		if chunk != "" {
			x = c.text(x, y, use, chunk)
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

// rule draws the line above a pane, with its title.
func (c canvas) rule(y int, title string, focused bool) {
	r := roleTitle
	if focused {
		r = roleFocus
	}
	for x := range c.w {
		c.text(x, y, roleDim, "─")
	}
	if title != "" {
		mark := " "
		if focused {
			mark = "▸"
		}
		c.part(0, y, c.w-1, 1).text(1, 0, r, mark+title+" ")
	}
}

// column draws a vertical line.
func (c canvas) column(x, y, h int) {
	for i := range h {
		c.text(x, y+i, roleDim, "│")
	}
}
