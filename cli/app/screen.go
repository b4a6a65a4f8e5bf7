package app

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/term"
)

// Screen is a stretch of lines at the bottom of a terminal that is drawn anew in
// its place. A nil one is none.
type Screen struct {
	app  *App
	rows int // that are drawn
}

// NewScreen returns a screen where standard output is a terminal that lines are for.
func (a *App) NewScreen() *Screen {
	if a.Flags.JSON || !IsTerminal(a.Out) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &Screen{app: a}
}

// Size returns the columns and lines of the terminal.
func (s *Screen) Size() (width, height int) {
	if f, ok := s.app.Out.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			return w, h
		}
	}
	return 80, 24
}

// Clear wipes what is drawn; the cursor stands where it began.
func (s *Screen) Clear() {
	if s == nil || s.rows == 0 {
		return
	}
	_, _ = s.app.Writer().Write(s.up(nil)) // a failure comes back with the flush
	s.rows = 0
}

func (s *Screen) up(b []byte) []byte {
	if s.rows > 0 {
		b = append(strconv.AppendInt(append(b, "\x1b["...), int64(s.rows), 10), 'A')
	}
	return append(b, "\r\x1b[J"...)
}

// Draw puts text in place of what was drawn: as many of its lines as the terminal
// has room for, each of which fits its width.
func (s *Screen) Draw(text []byte) {
	_, height := s.Size()
	lines := bytes.SplitAfter(text, []byte("\n"))
	if n := len(lines); n > 0 && len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	if room := max(1, height-1); len(lines) > room {
		lines = lines[:room]
	}
	out := s.up(nil)
	for _, l := range lines {
		out = append(out, l...)
	}
	s.rows = len(lines)
	_, _ = s.app.Writer().Write(out) // a failure comes back with the flush
}
