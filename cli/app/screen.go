package app

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/term"
)

// Screen is a block of lines at the bottom of a terminal that is redrawn in
// place. The methods of a nil Screen do nothing.
type Screen struct {
	app  *App
	rows int // lines drawn
}

// NewScreen returns a screen if standard output is a terminal and shows text.
// Otherwise it returns nil.
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

// Clear wipes the lines and moves the cursor to the first.
func (s *Screen) Clear() {
	if s == nil || s.rows == 0 {
		return
	}
	_, _ = s.app.Writer().Write(s.up(nil)) // the next Flush returns the error
	s.rows = 0
}

func (s *Screen) up(b []byte) []byte {
	if s.rows > 0 {
		b = append(strconv.AppendInt(append(b, "\x1b["...), int64(s.rows), 10), 'A')
	}
	return append(b, "\r\x1b[J"...)
}

// Draw replaces the lines on screen by those of text. It draws as many lines as
// the terminal has room for. The caller has fitted each line to the width.
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
	_, _ = s.app.Writer().Write(out) // the next Flush returns the error
}
