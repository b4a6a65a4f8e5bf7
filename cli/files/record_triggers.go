//go:build !js

package files

import (
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/figures"
	"github.com/ackscope/ackscope/machine"
)

// userSignal is the word of --on for the signal that asks for a recording.
const userSignal = "SIGUSR1"

// triggers say which troubles are recorded.
type triggers struct {
	rules      map[string]bool
	least      machine.Severity
	signal     bool
	conditions []*watched
	collector  figures.Collector
	checked    machine.Instant // when the conditions were evaluated last
}

// watched is a condition of --on, and where it held when it was last evaluated.
type watched struct {
	*figures.Condition
	holds map[*analyze.Flow]*[2]bool
}

func parseTriggers(a *app.App, words []string) (*triggers, error) {
	t := &triggers{rules: map[string]bool{}, least: 255}
	names := a.RuleNames()
	for _, word := range words {
		switch s, ok := app.ParseSeverity(word); {
		case ok:
			t.least = min(t.least, s)
		case word == "info":
			t.least = machine.Note
		case word == userSignal:
			if !userSignals {
				return nil, fmt.Errorf("--on %s: this system has no such signal", userSignal)
			}
			t.signal = true
		case strings.ContainsAny(word, "<>=!"):
			c, err := figures.Parse(word, false)
			if err != nil {
				return nil, fmt.Errorf("--on: %w", err)
			}
			t.conditions = append(t.conditions, &watched{c, map[*analyze.Flow]*[2]bool{}})
		default:
			known := false
			for _, r := range a.Rules() {
				known = known || r.ID == word
			}
			if !known {
				return nil, fmt.Errorf("--on: %w; or note, warn, error, %s, or a condition as 'loss > 5%%'",
					a.UnknownRule(word, names), userSignal)
			}
			t.rules[word] = true
		}
	}
	return t, nil
}

// finding reports whether a finding is recorded.
func (t *triggers) finding(x *analyze.Finding) bool {
	return x.Rule.Severity >= t.least || t.rules[x.Rule.ID]
}

// sink returns a sink that the conditions need, or nil.
func (t *triggers) sink() analyze.Sink {
	for _, c := range t.conditions {
		if c.NeedsMessages() {
			return t.collector.Take
		}
	}
	return nil
}

// forget drops what is kept of a flow that has ended.
func (t *triggers) forget(f *analyze.Flow) {
	t.collector.Forget(f)
	for _, c := range t.conditions {
		delete(c.holds, f)
	}
}

// check evaluates the conditions over the flows that had packets since the last check. It calls met where a
// condition holds that did not hold before.
func (t *triggers) check(s *analyze.Session, now machine.Instant,
	met func(c *watched, f *analyze.Flow, side machine.Side, told *figures.Result),
) {
	since := t.checked
	t.checked = now
	if len(t.conditions) == 0 {
		return
	}
	for _, f := range s.Flows() {
		if f.Last < since || f.Protocol == nil {
			continue
		}
		for _, side := range []machine.Side{machine.A, machine.B} {
			set, ok := t.collector.Of(f, side)
			if !ok {
				continue
			}
			for _, c := range t.conditions {
				told := c.Evaluate(&set)
				held := c.holds[f]
				if held == nil {
					if told.Truth != figures.True {
						continue
					}
					held = new([2]bool)
					c.holds[f] = held
				}
				if told.Truth == figures.True && !held[side] {
					met(c, f, side, &told)
				}
				held[side] = told.Truth == figures.True
			}
		}
	}
}
