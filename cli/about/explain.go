package about

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// readable is the longest line of running text on a terminal.
const readable = 100

// ExplainCommand builds `ackscope explain`: what a rule means.
func ExplainCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "explain [RULE]",
		Short:   "What a finding means and what to do about it; without a rule, the list",
		Example: "  ackscope explain false-ack",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var ids []string
			for _, r := range a.Rules() {
				ids = append(ids, r.ID+"\t"+r.Summary)
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			w := a.Writer()
			if len(args) == 0 {
				return listRules(a)
			}
			for _, r := range a.Rules() {
				if r.ID == args[0] && a.Flags.JSON {
					var o app.Object
					return ruleObject(a, &o, r)
				}
				if r.ID == args[0] {
					fmt.Fprintf(w, "%s (%s): %s\n", r.ID, r.Severity, r.Summary)
					for part := range strings.SplitSeq(r.Explain, "\n\n") {
						fmt.Fprintf(w, "\n%s\n", show.Wrap(part, "", min(a.Width(), readable)))
					}
					return nil
				}
			}
			return a.UnknownRule(args[0])
		},
	}
}

// listRules prints every rule with its summary.
func listRules(a *app.App) error {
	paint, err := a.Painter()
	if err != nil {
		return err
	}
	rules := a.Rules()
	w := a.Writer()
	if a.Flags.JSON {
		var o app.Object
		for _, r := range rules {
			if err := ruleObject(a, &o, r); err != nil {
				return err
			}
		}
		return nil
	}
	c := &app.Columns{Paint: paint, Fit: a.Width(), Heads: []string{"rule", "severity", "what it says"},
		Right: []bool{false, false, false}}
	return c.Render(w, len(rules), func(i int) {
		c.Str(show.Bold, rules[i].ID)
		c.Str(show.SeverityStyle(rules[i].Severity), rules[i].Severity.String())
		c.Str("", rules[i].Summary)
	})
}

func ruleObject(a *app.App, o *app.Object, r *machine.Rule) error {
	o.Begin()
	o.Str("rule", r.ID)
	o.Str("severity", r.Severity.String())
	o.Str("summary", r.Summary)
	o.Str("explain", r.Explain)
	return o.End(a.Writer())
}
