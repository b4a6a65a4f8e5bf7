package reader

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/figures"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Gate checks the condition of --fail-if over every side of every flow that has a known
// protocol. A nil gate checks nothing.
type Gate struct {
	app       *app.App
	condition *figures.Condition
	from      *Recording
	collector figures.Collector
	held      []string // for the first sides: why the condition held
	count     int      // sides for which it held
	open      string   // the first side for which it could not be told
	untold    int      // such sides
	checked   int
}

// FailIfFlag registers --fail-if.
func FailIfFlag(c *cobra.Command, text *string, changes bool) {
	example := "`EXPR` holds for a side of a flow, as 'loss > 5%' (docs/compare.md)"
	if changes {
		example = "`EXPR` holds for AFTER, or for a change, as 'arrival.p95 > +20ms' (docs/compare.md)"
	}
	c.Flags().StringVar(text, "fail-if", "", "exit 1 when "+example)
	_ = c.RegisterFlagCompletionFunc("fail-if", func(_ *cobra.Command, _ []string, word string) ([]string,
		cobra.ShellCompDirective,
	) {
		last, list := strings.LastIndexAny(word, " (!&|")+1, []string(nil)
		for _, f := range figures.All(changes) {
			if strings.HasPrefix(f.String(), word[last:]) {
				list = append(list, word[:last]+f.String()+"\t"+f.Spec().Doc)
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

// ParseFailIf parses the value of --fail-if. The condition is nil for an empty text.
func ParseFailIf(text string, changes bool) (*figures.Condition, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no condition
	}
	c, err := figures.Parse(text, changes)
	if err != nil {
		return nil, fmt.Errorf("--fail-if: %w", err)
	}
	return c, nil
}

// NewGate returns the gate of --fail-if, or nil for an empty text.
func NewGate(a *app.App, text string) (*Gate, error) {
	c, err := ParseFailIf(text, false)
	if c == nil {
		return nil, err
	}
	return &Gate{app: a, condition: c}, nil
}

// Sink begins a recording. It returns a sink that also passes records to next, which may be
// nil. The result is nil if the condition needs no records.
func (g *Gate) Sink(from *Recording, next analyze.Sink) analyze.Sink {
	if g == nil {
		return next
	}
	g.from, g.collector = from, figures.Collector{}
	if !g.condition.NeedsMessages() {
		return next
	}
	return func(r *analyze.Record) {
		g.collector.Take(r)
		if next != nil {
			next(r)
		}
	}
}

// Session checks the flows of a session that has ended. Flows that a limit removed have been
// checked by Flow.
func (g *Gate) Session(s *analyze.Session) {
	if g == nil || s == nil {
		return
	}
	for _, f := range s.Flows() {
		g.Flow(f)
	}
}

// mostHeld is how many sides the message of a gate names.
const mostHeld = 3

// Flow checks both sides of a flow that has ended.
func (g *Gate) Flow(f *analyze.Flow) {
	if g == nil {
		return
	}
	for _, side := range []machine.Side{machine.A, machine.B} {
		set, ok := g.collector.Of(f, side)
		if !ok {
			break
		}
		g.checked++
		j := g.condition.Evaluate(&set)
		if j.Truth == figures.False {
			continue
		}
		of := fmt.Sprintf(" %s of flow %d", figures.Way(side), f.ID)
		if g.from.Among() {
			of += " of " + g.from.Name()
		}
		if j.Truth == figures.True {
			if g.count++; g.count <= mostHeld {
				g.held = append(g.held, j.Say(of))
			}
		} else if g.untold++; g.untold == 1 {
			g.open = j.Say(of)
		}
	}
	g.collector.Forget(f)
}

// End returns the error of a gate that holds, or err. It says where the condition could not
// be told.
func (g *Gate) End(err error) error {
	if g == nil {
		return err
	}
	if g.count > 0 {
		text := strings.Join(g.held, "; ")
		if more := g.count - len(g.held); more > 0 {
			text += fmt.Sprintf("; and %s more", show.Plural(more, "side"))
		}
		held := &app.GateError{Text: fmt.Sprintf("%s: --fail-if '%s'", text, g.condition)}
		var other *app.GateError
		if err == nil || errors.As(err, &other) {
			return errors.Join(err, held)
		}
		g.app.Trouble(held) // a failure is graver
		return err
	}
	if err != nil {
		return err
	}
	switch {
	case g.checked == 0:
		g.app.Say("", fmt.Errorf("--fail-if '%s' cannot be told: no flow has a protocol that ackscope knows", g.condition))
	case g.untold > 0:
		g.app.Say("", fmt.Errorf("--fail-if '%s' cannot be told for %d of %s: %s", g.condition, g.untold,
			show.Plural(g.checked, "side"), g.open))
	}
	return err
}
