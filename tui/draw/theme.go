package draw

import (
	"fmt"
	"os"
	"strings"

	"github.com/gdamore/tcell/v2"
)

// Role is the meaning of a piece of text. A theme gives it a style. Colour
// alone carries no meaning: a letter or glyph always shows the same.
type Role uint8

// The roles. A side has the same colour on every screen.
const (
	Text Role = iota // main text
	Dim              // secondary text
	Bold
	Title    // title of a pane
	Focus    // title of the pane that has the keys
	Bar      // top and bottom lines
	Selected // the row at the cursor
	Error    // a finding that is an error; a failure; a lost packet
	Warn     // a finding that is a warning; a packet sent again
	Note     // a finding that is a note; the last notice
	Good     // valid, acked, conforming
	SideA
	SideB
	Key     // a key in a hint
	Lit     // bytes of the selected field
	Settled // the fate of an acked packet
	Mark    // the user's marks, and the command being typed
	roles
)

// look is the style of a role: RGB for terminals of 256 and more colours, names
// for those of 16.
type look struct {
	fg, bg     int32 // RGB; plain for the terminal's own
	fg16, bg16 tcell.Color
	attributes tcell.AttrMask
}

const (
	plain  = int32(-1)
	plain6 = tcell.ColorDefault
)

var dark = [roles]look{
	Text:     {plain, plain, plain6, plain6, 0},
	Dim:      {0x8a94a6, plain, tcell.ColorGray, plain6, 0},
	Bold:     {plain, plain, plain6, plain6, tcell.AttrBold},
	Title:    {0x9fb3c8, plain, tcell.ColorSilver, plain6, 0},
	Focus:    {0x7fd1ff, plain, tcell.ColorAqua, plain6, tcell.AttrBold},
	Bar:      {0xe6edf5, 0x27384d, tcell.ColorWhite, tcell.ColorNavy, 0},
	Selected: {0xffffff, 0x2f5d8a, tcell.ColorBlack, tcell.ColorTeal, tcell.AttrBold},
	Error:    {0xff7b72, plain, tcell.ColorRed, plain6, tcell.AttrBold},
	Warn:     {0xf2c14e, plain, tcell.ColorYellow, plain6, 0},
	Note:     {0x7fb7e6, plain, tcell.ColorTeal, plain6, 0},
	Good:     {0x7ee2a8, plain, tcell.ColorLime, plain6, 0},
	SideA:    {0x67c7e2, plain, tcell.ColorTeal, plain6, 0},
	SideB:    {0xd19af0, plain, tcell.ColorFuchsia, plain6, 0},
	Key:      {0xffd58a, plain, tcell.ColorYellow, plain6, tcell.AttrBold},
	Lit:      {0x10151c, 0xf2c14e, tcell.ColorBlack, tcell.ColorYellow, tcell.AttrBold},
	Settled:  {0x7ee2a8, plain, tcell.ColorGreen, plain6, 0},
	Mark:     {0xff9de2, plain, tcell.ColorFuchsia, plain6, tcell.AttrBold},
}

var light = [roles]look{
	Text:     {plain, plain, plain6, plain6, 0},
	Dim:      {0x5d6673, plain, tcell.ColorGray, plain6, 0},
	Bold:     {plain, plain, plain6, plain6, tcell.AttrBold},
	Title:    {0x3a4a5e, plain, tcell.ColorNavy, plain6, 0},
	Focus:    {0x0550ae, plain, tcell.ColorBlue, plain6, tcell.AttrBold},
	Bar:      {0x14212f, 0xd5e2f0, tcell.ColorBlack, tcell.ColorSilver, 0},
	Selected: {0x0b1a2a, 0xa9cdf2, tcell.ColorWhite, tcell.ColorNavy, tcell.AttrBold},
	Error:    {0xb3261e, plain, tcell.ColorMaroon, plain6, tcell.AttrBold},
	Warn:     {0x8a5a00, plain, tcell.ColorOlive, plain6, 0},
	Note:     {0x0b5fa5, plain, tcell.ColorNavy, plain6, 0},
	Good:     {0x14703d, plain, tcell.ColorGreen, plain6, 0},
	SideA:    {0x00677f, plain, tcell.ColorTeal, plain6, 0},
	SideB:    {0x7b2fa0, plain, tcell.ColorPurple, plain6, 0},
	Key:      {0x7a4b00, plain, tcell.ColorOlive, plain6, tcell.AttrBold},
	Lit:      {0x201500, 0xffd166, tcell.ColorBlack, tcell.ColorYellow, tcell.AttrBold},
	Settled:  {0x14703d, plain, tcell.ColorGreen, plain6, 0},
	Mark:     {0xa3168a, plain, tcell.ColorPurple, plain6, tcell.AttrBold},
}

// mono is the theme for NO_COLOR and for terminals without colours.
var mono = map[Role]tcell.AttrMask{
	Bold: tcell.AttrBold, Focus: tcell.AttrBold | tcell.AttrUnderline, Bar: tcell.AttrReverse,
	Selected: tcell.AttrReverse | tcell.AttrBold,
	Error:    tcell.AttrBold, Key: tcell.AttrBold, Lit: tcell.AttrReverse, Mark: tcell.AttrBold, Dim: tcell.AttrDim,
	Title: tcell.AttrBold,
}

// Theme holds the style of every role on one terminal.
type Theme struct {
	Name   string
	styles [roles]tcell.Style
}

// Themes lists the names that :theme accepts.
var Themes = []string{"dark", "light", "mono"}

// NewTheme returns the named theme for a terminal of so many colours. It
// returns an error for an unknown name.
func NewTheme(name string, colors int) (*Theme, error) {
	t := &Theme{Name: name}
	if os.Getenv("NO_COLOR") != "" || colors < 8 {
		name = "mono"
	}
	switch name {
	case "mono":
		for r := range t.styles {
			t.styles[r] = tcell.StyleDefault.Attributes(mono[Role(r)])
		}
		return t, nil
	case "dark", "light":
	default:
		return nil, fmt.Errorf("theme %q: expected %s", name, strings.Join(Themes, ", "))
	}
	table := &dark
	if name == "light" {
		table = &light
	}
	for r, l := range table {
		s := tcell.StyleDefault.Attributes(l.attributes)
		if colors >= 256 {
			if l.fg != plain {
				s = s.Foreground(tcell.NewHexColor(l.fg))
			}
			if l.bg != plain {
				s = s.Background(tcell.NewHexColor(l.bg))
			}
		} else {
			s = s.Foreground(l.fg16).Background(l.bg16)
		}
		t.styles[r] = s
	}
	return t, nil
}

// TerminalTheme returns "light" or "dark". It reads COLORFGBG, which some
// terminals set.
func TerminalTheme() string {
	v := os.Getenv("COLORFGBG")
	switch v[strings.LastIndexByte(v, ';')+1:] {
	case "7", "15":
		return "light"
	}
	return "dark"
}
