package cli

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/term"
)

// screen is a stretch of lines at the bottom of a terminal that is drawn anew in
// its place. A nil one is none.
type screen struct {
	app  *app
	rows int // that are drawn
}

// newScreen gives a screen where standard output is a terminal that lines are for.
func (a *app) newScreen() *screen {
	if a.flags.json || !isTerminal(a.out) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &screen{app: a}
}

// size gives the columns and lines of the terminal.
func (s *screen) size() (width, height int) {
	if f, ok := s.app.out.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			return w, h
		}
	}
	return 80, 24
}

// clear wipes what is drawn; the cursor stands where it began.
func (s *screen) clear() {
	if s == nil || s.rows == 0 {
		return
	}
	_, _ = s.app.writer().Write(s.up(nil)) // a failure comes back with the flush
	s.rows = 0
}

func (s *screen) up(b []byte) []byte {
	if s.rows > 0 {
		b = append(strconv.AppendInt(append(b, "\x1b["...), int64(s.rows), 10), 'A')
	}
	return append(b, "\r\x1b[J"...)
}

// draw puts text in place of what was drawn: as many of its lines as the terminal
// has room for, each of which fits its width.
func (s *screen) draw(text []byte) {
	_, height := s.size()
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
	_, _ = s.app.writer().Write(out) // a failure comes back with the flush
}
