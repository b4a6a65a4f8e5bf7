package replay

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/machine"
)

// BaselineSuffix is what a baseline's name adds to its capture's.
const BaselineSuffix = ".replay"

const baselineHead = "# ackscope replay baseline, one line for each flow and side; written by `ackscope replay --update`"

// Baseline is what an earlier run found of a capture: text that people read and
// version control compares.
type Baseline struct {
	lines []string
}

// BaselineOf gives the baseline of a run. Only expected behaviours enter it.
func BaselineOf(f *File) *Baseline {
	b := &Baseline{}
	for i := range f.Results {
		if r := &f.Results[i]; r.Expected {
			b.lines = append(b.lines, r.line())
		}
	}
	return b
}

// line is a result in a baseline: words with a blank between, the last ones as
// name=value.
func (r *Result) line() string {
	var w bytes.Buffer
	fmt.Fprintf(&w, "flow %d %s %s %s %s packets=%d", r.Flow.ID, r.Side, r.Addr(), r.Behaviour, r.Verdict(), r.Compared)
	if r.Undecided > 0 {
		fmt.Fprintf(&w, " undecided=%d", r.Undecided)
	}
	if d := r.Divergence; d != nil {
		fmt.Fprintf(&w, " frame=%d rule=%s field=%s expected=%s got=%s", d.Ref.Frame(), d.Rule, d.Field, strconv.Quote(d.Expected), strconv.Quote(d.Got))
	}
	return w.String()
}

// ReadBaseline reads one.
func ReadBaseline(from io.Reader) (*Baseline, error) {
	b := &Baseline{}
	s := bufio.NewScanner(from)
	for n := 1; s.Scan(); n++ {
		line := s.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if words := strings.Fields(line); len(words) < 6 || words[0] != "flow" {
			return nil, fmt.Errorf("line %d: expected `flow N a|b ADDRESS BEHAVIOUR VERDICT ...`, found %q", n, line)
		}
		b.lines = append(b.lines, line)
	}
	return b, s.Err()
}

// WriteTo writes the baseline.
func (b *Baseline) WriteTo(to io.Writer) (int64, error) {
	var w bytes.Buffer
	fmt.Fprintln(&w, baselineHead)
	for _, l := range b.lines {
		fmt.Fprintln(&w, l)
	}
	n, err := to.Write(w.Bytes())
	return int64(n), err
}

// Behaviour gives the behaviour that the baseline has for a side; empty for none.
func (b *Baseline) Behaviour(flow int, side machine.Side) string {
	for _, l := range b.lines {
		if w := strings.Fields(l); w[1] == strconv.Itoa(flow) && w[2] == side.String() {
			return w[4]
		}
	}
	return ""
}

// Drift gives what has changed since, as lines of a diff: "-" was, "+" is.
func (b *Baseline) Drift(now *Baseline) (diff []string) {
	for _, l := range b.lines {
		if !slices.Contains(now.lines, l) {
			diff = append(diff, "- "+l)
		}
	}
	for _, l := range now.lines {
		if !slices.Contains(b.lines, l) {
			diff = append(diff, "+ "+l)
		}
	}
	return diff
}
