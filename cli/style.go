package cli

import (
	"fmt"
	"os"

	"golang.org/x/term"

	"github.com/ackscope/ackscope/show"
)

// The styles and the painter that all printing shares.
type (
	style   = show.Style
	painter = show.Painter
)

const (
	bold   = show.Bold
	dim    = show.Dim
	red    = show.Red
	green  = show.Green
	yellow = show.Yellow
	cyan   = show.Cyan
	purple = show.Purple
)

// colored decides whether standard output gets colours.
func (a *app) colored() (bool, error) {
	switch a.flags.color {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		return isTerminal(a.out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", nil
	}
	return false, fmt.Errorf("--color %q: expected auto, always or never", a.flags.color)
}

// width gives the columns of the terminal that standard output is; 0 where it is none.
func (a *app) width() int {
	if f, ok := a.out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			return w
		}
	}
	return 0
}
