package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/internal/thresholds/constants"
)

// Least is the margin that a measured constant must have.
const Least = 1.5

// margin is what a measurement found of one constant.
type margin struct {
	Key, Value string // the value is the one that was measured
	// Down and Up are the largest factors by which the constant may be divided and multiplied,
	// of 1.5, 2, 3 and 5. They are 1 where not even 1.5 holds.
	Down, Up float64
	// Moved counts the scenes of which something else is told at some factor. It is
	// negative where nothing moves before a factor of 1000, and 0 where nothing that was
	// measured hangs on the constant.
	Moved int
	Why   string // what fails first
}

// least returns the margin in the worse direction.
func (m margin) least() float64 { return min(m.Down, m.Up) }

// figure formats it for the table.
func (m margin) figure() string {
	text := fmt.Sprintf("%g (÷ %g, × %g)", m.least(), m.Down, m.Up)
	if m.Moved < 0 {
		text += "; nothing moves before 1000"
	}
	return text
}

// readMargins reads the measurements that are committed.
func readMargins(path string) (map[string]margin, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	margins := map[string]margin{}
	s := bufio.NewScanner(f)
	for n := 1; s.Scan(); n++ {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		part := strings.Split(s.Text(), "\t")
		if len(part) != 6 {
			return nil, fmt.Errorf("%s:%d: expected 6 columns, found %d", path, n, len(part))
		}
		m := margin{Key: part[0], Value: part[1], Why: part[5]}
		var errs [3]error
		m.Down, errs[0] = strconv.ParseFloat(part[2], 64)
		m.Up, errs[1] = strconv.ParseFloat(part[3], 64)
		m.Moved, errs[2] = strconv.Atoi(part[4])
		for _, err := range errs {
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, n, err)
			}
		}
		margins[m.Key] = m
	}
	return margins, s.Err()
}

// writeMargins writes them, by key.
func writeMargins(path string, margins map[string]margin) error {
	var b strings.Builder
	b.WriteString("# Written by go run ./internal/thresholds -measure: constant, the value that was measured, how far\n" +
		"# it may be divided and multiplied, how many facts moved, and what fails first.\n")
	var keys []string
	for key := range margins {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		m := margins[key]
		fmt.Fprintf(&b, "%s\t%s\t%g\t%g\t%d\t%s\n", m.Key, m.Value, m.Down, m.Up, m.Moved, m.Why)
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// missing returns a sentence for each measured constant without a sufficient margin.
func missing(tree *constants.Tree, margins map[string]margin) (faults []string) {
	for _, c := range tree.Constants {
		if c.Kind != constants.Measured {
			continue
		}
		at := fmt.Sprintf("%s:%d: %s", c.File, c.Line, c.Name)
		switch m, ok := margins[c.Key()]; {
		case !ok:
			faults = append(faults, at+" has not been measured: make thresholds")
		case m.Value != c.Value:
			faults = append(faults, fmt.Sprintf("%s is %s, and %s was measured: make thresholds", at, c.Value, m.Value))
		case m.Moved == 0:
			faults = append(faults, at+" moves no fact at any factor: nothing was measured")
		case m.least() < Least:
			faults = append(faults, fmt.Sprintf("%s has a margin of %g, expected %g: %s", at, m.least(), Least, m.Why))
		}
	}
	return faults
}
