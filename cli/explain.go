package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// rules gives every rule that findings can have.
func (a *app) rules() []*machine.Rule {
	all := append([]*machine.Rule(nil), analyze.Rules...)
	for _, p := range a.registry.Protocols() {
		all = append(all, p.Rules...)
	}
	return all
}

// readable is the longest line of running text on a terminal.
const readable = 100

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "explain [RULE]",
		Short:   "What a finding means and what to do about it; without a rule, the list",
		Example: "  ackscope explain false-ack",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var ids []string
			for _, r := range a.rules() {
				ids = append(ids, r.ID+"\t"+r.Summary)
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			w := a.writer()
			if len(args) == 0 {
				return a.listRules()
			}
			for _, r := range a.rules() {
				if r.ID == args[0] && a.flags.json {
					var o object
					return a.ruleObject(&o, r)
				}
				if r.ID == args[0] {
					fmt.Fprintf(w, "%s (%s): %s\n", r.ID, r.Severity, r.Summary)
					for part := range strings.SplitSeq(r.Explain, "\n\n") {
						fmt.Fprintf(w, "\n%s\n", show.Wrap(part, "", min(a.width(), readable)))
					}
					return nil
				}
			}
			return a.unknownRule(args[0])
		},
	}
}

// listRules prints every rule with its summary.
func (a *app) listRules() error {
	paint, err := a.painter()
	if err != nil {
		return err
	}
	rules := a.rules()
	w := a.writer()
	if a.flags.json {
		var o object
		for _, r := range rules {
			if err := a.ruleObject(&o, r); err != nil {
				return err
			}
		}
		return nil
	}
	c := &columns{paint: paint, fit: a.width(), heads: []string{"rule", "severity", "what it says"}, right: []bool{false, false, false}}
	return c.render(w, len(rules), func(i int) {
		c.str(bold, rules[i].ID)
		c.str(show.SeverityStyle(rules[i].Severity), rules[i].Severity.String())
		c.str("", rules[i].Summary)
	})
}

// ruleNames lists the rules of findings.
func (a *app) ruleNames() (ids []string) {
	for _, r := range a.rules() {
		ids = append(ids, r.ID)
	}
	return ids
}

// unknownRule says which rule was likely meant.
func (a *app) unknownRule(id string) error {
	if near := filter.Nearest(id, a.ruleNames()); near != "" {
		return fmt.Errorf("no rule %q; did you mean %s?", id, near)
	}
	return fmt.Errorf("no rule %q: `ackscope explain` lists them", id)
}

func (a *app) ruleObject(o *object, r *machine.Rule) error {
	o.begin()
	o.str("rule", r.ID)
	o.str("severity", r.Severity.String())
	o.str("summary", r.Summary)
	o.str("explain", r.Explain)
	return o.end(a.writer())
}
