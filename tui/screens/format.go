package screens

import (
	"fmt"
	"math"
	"strings"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/tui/draw"
)

func severityLetter(s machine.Severity) byte { return "NWE"[s] }

func severityRole(s machine.Severity) draw.Role {
	return [...]draw.Role{draw.Note, draw.Warn, draw.Error}[s]
}

func sideRole(side machine.Side) draw.Role {
	if side == machine.A {
		return draw.SideA
	}
	return draw.SideB
}

// number formats a figure in at most five characters.
func number(v float64) string {
	switch {
	case v >= 1e9:
		return fmt.Sprintf("%.1fG", v/1e9)
	case v >= 1e6:
		return fmt.Sprintf("%.1fM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.0fk", v/1e3)
	case v >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// plainText returns lines without their styles.
func plainText(lines []string) string { return draw.StripStyles(strings.Join(lines, "\n")) }
