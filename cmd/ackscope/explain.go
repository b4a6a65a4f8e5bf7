package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// rules gives every rule that findings can have.
func (a *app) rules() []*machine.Rule {
	all := append([]*machine.Rule(nil), analyze.Rules...)
	for _, p := range a.registry.Protocols() {
		all = append(all, p.Rules...)
	}
	return all
}

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
				for _, r := range a.rules() {
					fmt.Fprintf(w, "%-28s %-5s  %s\n", r.ID, r.Severity, r.Summary)
				}
				return nil
			}
			for _, r := range a.rules() {
				if r.ID == args[0] {
					fmt.Fprintf(w, "%s (%s): %s\n\n%s\n", r.ID, r.Severity, r.Summary, r.Explain)
					return nil
				}
			}
			return fmt.Errorf("no rule %q: `ackscope explain` lists them", args[0])
		},
	}
}
