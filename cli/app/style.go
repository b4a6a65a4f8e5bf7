package app

import (
	"fmt"
	"os"

	"golang.org/x/term"

	"github.com/ackscope/ackscope/show"
)

// Colored reports whether standard output gets colours.
func (a *App) Colored() (bool, error) {
	switch a.Flags.Color {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		return IsTerminal(a.Out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", nil
	}
	return false, fmt.Errorf("--color %q: expected auto, always or never", a.Flags.Color)
}

// Width returns the columns of the terminal. It returns 0 if standard output is
// not a terminal.
func (a *App) Width() int {
	if f, ok := a.Out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			return w
		}
	}
	return 0
}

// Painter returns the painter of text that the flags select.
func (a *App) Painter() (show.Painter, error) {
	colored, err := a.Colored()
	return show.Painter(colored), err
}
