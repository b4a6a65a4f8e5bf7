package main

import (
	"fmt"
	"os"

	"github.com/dustin/go-humanize"
	"golang.org/x/term"
)

// style is a way to write that terminals know; meaning never hangs on it alone.
type style string

const (
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	yellow style = "33"
	cyan   style = "36"
	purple style = "35"
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

// painter writes in colours, or without.
type painter bool

func (p painter) begin(to []byte, s style) []byte {
	if !p || s == "" {
		return to
	}
	to = append(to, "\x1b["...)
	to = append(to, s...)
	return append(to, 'm')
}

func (p painter) end(to []byte, s style) []byte {
	if !p || s == "" {
		return to
	}
	return append(to, "\x1b[0m"...)
}

func (p painter) text(to []byte, s style, text string) []byte {
	return p.end(append(p.begin(to, s), text...), s)
}

func (p painter) string(s style, text string) string { return string(p.text(nil, s, text)) }

// width gives the columns of the terminal that standard output is; 0 where it is none.
func (a *app) width() int {
	if f, ok := a.out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			return w
		}
	}
	return 0
}

// grouped writes a count with separators between thousands.
func grouped[T int | uint64](n T) string { return humanize.Comma(int64(n)) }

// plural gives the count with its noun: "1 packet", "2 packets".
func plural[T int | uint64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(n) + " " + noun + "s"
}
