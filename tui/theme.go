package tui

import (
	"fmt"
	"os"
	"strings"

	"github.com/gdamore/tcell/v2"
)

// role is what a piece of text means; a theme says what it looks like. No
// meaning hangs on colour alone: a letter or a glyph always says the same.
type role uint8

const (
	roleText role = iota
	roleDim
	roleBold
	roleTitle    // of a pane
	roleFocus    // of the pane that has the keys
	roleBar      // top and bottom lines
	roleSelected // the row at the cursor
	roleError
	roleWarn
	roleNote
	roleGood
	roleSideA
	roleSideB
	roleKey // a key in a hint
	roleLit // bytes of the selected field
	roleSettled
	roleSent
	roleMark
	roleCount
)

// look is a role's colours: for terminals of 256 and more as RGB, for those of
// sixteen by name.
type look struct {
	fg, bg     int32 // RGB; -1 for the terminal's own
	fg16, bg16 tcell.Color
	attributes tcell.AttrMask
}

const (
	plain  = int32(-1)
	plain6 = tcell.ColorDefault
)

var dark = [roleCount]look{
	roleText:     {plain, plain, plain6, plain6, 0},
	roleDim:      {0x8a94a6, plain, tcell.ColorGray, plain6, 0},
	roleBold:     {plain, plain, plain6, plain6, tcell.AttrBold},
	roleTitle:    {0x9fb3c8, plain, tcell.ColorSilver, plain6, 0},
	roleFocus:    {0x7fd1ff, plain, tcell.ColorAqua, plain6, tcell.AttrBold},
	roleBar:      {0xe6edf5, 0x27384d, tcell.ColorWhite, tcell.ColorNavy, 0},
	roleSelected: {0xffffff, 0x2f5d8a, tcell.ColorBlack, tcell.ColorTeal, tcell.AttrBold},
	roleError:    {0xff7b72, plain, tcell.ColorRed, plain6, tcell.AttrBold},
	roleWarn:     {0xf2c14e, plain, tcell.ColorYellow, plain6, 0},
	roleNote:     {0x7fb7e6, plain, tcell.ColorTeal, plain6, 0},
	roleGood:     {0x7ee2a8, plain, tcell.ColorLime, plain6, 0},
	roleSideA:    {0x67c7e2, plain, tcell.ColorTeal, plain6, 0},
	roleSideB:    {0xd19af0, plain, tcell.ColorFuchsia, plain6, 0},
	roleKey:      {0xffd58a, plain, tcell.ColorYellow, plain6, tcell.AttrBold},
	roleLit:      {0x10151c, 0xf2c14e, tcell.ColorBlack, tcell.ColorYellow, tcell.AttrBold},
	roleSettled:  {0x7ee2a8, plain, tcell.ColorGreen, plain6, 0},
	roleSent:     {0xcfd8e3, plain, plain6, plain6, 0},
	roleMark:     {0xff9de2, plain, tcell.ColorFuchsia, plain6, tcell.AttrBold},
}

var light = [roleCount]look{
	roleText:     {plain, plain, plain6, plain6, 0},
	roleDim:      {0x5d6673, plain, tcell.ColorGray, plain6, 0},
	roleBold:     {plain, plain, plain6, plain6, tcell.AttrBold},
	roleTitle:    {0x3a4a5e, plain, tcell.ColorNavy, plain6, 0},
	roleFocus:    {0x0550ae, plain, tcell.ColorBlue, plain6, tcell.AttrBold},
	roleBar:      {0x14212f, 0xd5e2f0, tcell.ColorBlack, tcell.ColorSilver, 0},
	roleSelected: {0x0b1a2a, 0xa9cdf2, tcell.ColorWhite, tcell.ColorNavy, tcell.AttrBold},
	roleError:    {0xb3261e, plain, tcell.ColorMaroon, plain6, tcell.AttrBold},
	roleWarn:     {0x8a5a00, plain, tcell.ColorOlive, plain6, 0},
	roleNote:     {0x0b5fa5, plain, tcell.ColorNavy, plain6, 0},
	roleGood:     {0x14703d, plain, tcell.ColorGreen, plain6, 0},
	roleSideA:    {0x00677f, plain, tcell.ColorTeal, plain6, 0},
	roleSideB:    {0x7b2fa0, plain, tcell.ColorPurple, plain6, 0},
	roleKey:      {0x7a4b00, plain, tcell.ColorOlive, plain6, tcell.AttrBold},
	roleLit:      {0x201500, 0xffd166, tcell.ColorBlack, tcell.ColorYellow, tcell.AttrBold},
	roleSettled:  {0x14703d, plain, tcell.ColorGreen, plain6, 0},
	roleSent:     {0x36404c, plain, plain6, plain6, 0},
	roleMark:     {0xa3168a, plain, tcell.ColorPurple, plain6, tcell.AttrBold},
}

// mono is for NO_COLOR and terminals without colours.
var mono = map[role]tcell.AttrMask{
	roleBold: tcell.AttrBold, roleFocus: tcell.AttrBold | tcell.AttrUnderline, roleBar: tcell.AttrReverse, roleSelected: tcell.AttrReverse | tcell.AttrBold,
	roleError: tcell.AttrBold, roleKey: tcell.AttrBold, roleLit: tcell.AttrReverse, roleMark: tcell.AttrBold, roleDim: tcell.AttrDim, roleTitle: tcell.AttrBold,
}

// theme is the styles of all roles on one terminal.
type theme struct {
	name   string
	styles [roleCount]tcell.Style
}

// themes lists the names that :theme takes.
var themes = []string{"dark", "light", "mono"}

// newTheme makes a theme for a terminal of so many colours.
func newTheme(name string, colors int) (*theme, error) {
	t := &theme{name: name}
	if os.Getenv("NO_COLOR") != "" || colors < 8 {
		name = "mono"
	}
	switch name {
	case "mono":
		for r := range t.styles {
			t.styles[r] = tcell.StyleDefault.Attributes(mono[role(r)])
		}
		return t, nil
	case "dark", "light":
	default:
		return nil, fmt.Errorf("theme %q: expected %s", name, strings.Join(themes, ", "))
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

// themeOfTerminal guesses by COLORFGBG, which some terminals set, whether the
// background is light.
func themeOfTerminal() string {
	v := os.Getenv("COLORFGBG")
	switch v[strings.LastIndexByte(v, ';')+1:] {
	case "7", "15":
		return "light"
	}
	return "dark"
}
