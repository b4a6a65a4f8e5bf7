package about

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/show"
)

// readable is the longest line of running text on a terminal.
const readable = 100

// ExplainCommand builds `ackscope explain`: what a rule means.
func ExplainCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [RULE]",
		Short: "What a finding or a divergence means and what to do about it; without a rule, the list",
		Long: `explain says what a rule means, how ackscope recognises it, and what to do about it. Rules
are those of findings (ackscope findings) and of divergences (ackscope replay). If several rules
have the name, explain shows each.`,
		Example: "  ackscope explain false-ack\n  ackscope explain ack-never-arrived",
		Args:    app.Arguments(0, 1, "one RULE, or nothing"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return completeRules(a), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listRules(a)
			}
			return explainRule(a, args[0])
		},
	}
}

// completeRules lists the name of every rule once, with its summary.
func completeRules(a *app.App) (words []string) {
	seen := map[string]bool{}
	for _, r := range a.ExplainedRules() {
		if !seen[r.ID] {
			seen[r.ID] = true
			words = append(words, r.ID+"\t"+r.Summary)
		}
	}
	return words
}

// explainRule prints what every rule of a name means. The first line of a finding's rule
// says nothing of findings where no other rule has the name.
func explainRule(a *app.App, id string) error {
	var rules []app.ExplainedRule
	for _, r := range a.ExplainedRules() {
		if r.ID == id {
			rules = append(rules, r)
		}
	}
	if len(rules) == 0 {
		return a.UnknownRule(id, a.ExplainedNames())
	}
	if a.Flags.JSON {
		return ruleObjects(a, rules)
	}
	w := a.Writer()
	for i, r := range rules {
		if i > 0 {
			fmt.Fprintln(w)
		}
		what := r.Severity.String()
		if len(rules) > 1 || r.Divergence {
			what = strings.Join(append(strings.Fields(r.Protocol), r.Kind(), what), ", ")
		}
		fmt.Fprintf(w, "%s (%s): %s\n", r.ID, what, r.Summary)
		for part := range strings.SplitSeq(r.Explain, "\n\n") {
			fmt.Fprintf(w, "\n%s\n", show.Wrap(part, "", min(a.Width(), readable)))
		}
	}
	return nil
}

// listRules prints every rule with its summary.
func listRules(a *app.App) error {
	paint, err := a.Painter()
	if err != nil {
		return err
	}
	rules := a.ExplainedRules()
	if a.Flags.JSON {
		return ruleObjects(a, rules)
	}
	heads := []string{"rule", "kind", "protocol", "severity", "what it says"}
	c := &app.Columns{Paint: paint, Fit: a.Width(), Heads: heads, Right: make([]bool, len(heads))}
	return c.Render(a.Writer(), len(rules), func(i int) {
		c.Str(show.Bold, rules[i].ID)
		c.Str("", rules[i].Kind())
		c.Str("", rules[i].Protocol)
		c.Str(show.SeverityStyle(rules[i].Severity), rules[i].Severity.String())
		c.Str("", rules[i].Summary)
	})
}

// ruleObjects prints one object a rule.
func ruleObjects(a *app.App, rules []app.ExplainedRule) error {
	var o app.Object
	for _, r := range rules {
		o.Begin()
		o.Str("rule", r.ID)
		o.Str("severity", r.Severity.String())
		o.Str("summary", r.Summary)
		o.Str("explain", r.Explain)
		o.Str("kind", r.Kind())
		if r.Protocol != "" {
			o.Str("protocol", r.Protocol)
		}
		if err := o.End(a.Writer()); err != nil {
			return err
		}
	}
	return nil
}
