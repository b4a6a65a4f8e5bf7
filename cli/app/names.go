package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/dissect/stack"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/filter/fields"
	"github.com/ackscope/ackscope/machine"
	"github.com/spf13/cobra"
)

// CompleteWords completes a flag from a fixed list of words.
func CompleteWords(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// ParseSeverity parses note, warn or error.
func ParseSeverity(word string) (machine.Severity, bool) {
	for _, s := range []machine.Severity{machine.Note, machine.Warn, machine.Error} {
		if s.String() == word {
			return s, true
		}
	}
	return 0, false
}

// UnknownName returns an error that suggests the names that begin with name, or
// else the nearest one. Without such a name it lists all names.
func UnknownName(flag, name string, names []string) error {
	var longer []string
	for _, n := range names {
		if strings.HasPrefix(n, name) {
			longer = append(longer, n)
		}
	}
	if len(longer) > 0 && name != "" {
		return fmt.Errorf("%s %q: did you mean %s?", flag, name, strings.Join(longer, " or "))
	}
	if near := filter.Nearest(name, names); near != "" {
		return fmt.Errorf("%s %q: did you mean %s? Expected one of %s", flag, name, near, strings.Join(names, ", "))
	}
	return fmt.Errorf("%s %q: expected one of %s", flag, name, strings.Join(names, ", "))
}

// CompleteField completes the name of a column.
func (a *App) CompleteField(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return completeField(a.Table().Columns(), toComplete), cobra.ShellCompDirectiveNoFileComp
}

func completeField(fields []*filter.Field, toComplete string) (out []string) {
	for _, f := range fields {
		if strings.HasPrefix(f.Name, toComplete) {
			out = append(out, f.Name+"\t"+f.Doc)
		}
	}
	return out
}

// CompleteFilter completes the last word of a filter.
func (a *App) CompleteFilter(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	last := strings.LastIndexAny(toComplete, " (!&|") + 1
	names := completeField(a.Table().Fields(), toComplete[last:])
	for i := range names {
		names[i] = toComplete[:last] + names[i]
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// Rules returns every rule of findings.
func (a *App) Rules() []*machine.Rule {
	all := append([]*machine.Rule(nil), analyze.Rules...)
	for _, p := range a.Registry.Protocols() {
		all = append(all, p.Rules...)
	}
	return all
}

// ExplainedRule is a rule with what it is the rule of.
type ExplainedRule struct {
	*machine.Rule
	Protocol   string // that has it; empty for a finding of any protocol
	Divergence bool   // replay finds it; else it is the rule of a finding
}

// Kind returns the word for what the rule is the rule of.
func (r ExplainedRule) Kind() string {
	if r.Divergence {
		return "divergence"
	}
	return "finding"
}

// ExplainedRules returns every rule that findings and divergences can have, the
// findings first. A finding and a divergence can share an ID, and so can protocols.
func (a *App) ExplainedRules() (all []ExplainedRule) {
	for _, r := range analyze.Rules {
		all = append(all, ExplainedRule{Rule: r})
	}
	for _, p := range a.Registry.Protocols() {
		for _, r := range p.Rules {
			all = append(all, ExplainedRule{Rule: r, Protocol: p.Name})
		}
	}
	for _, p := range a.Registry.Protocols() {
		for _, r := range p.DivergenceRules {
			all = append(all, ExplainedRule{Rule: r, Protocol: p.Name, Divergence: true})
		}
	}
	return all
}

// RuleNames returns the IDs of the rules of findings.
func (a *App) RuleNames() (ids []string) {
	for _, r := range a.Rules() {
		ids = append(ids, r.ID)
	}
	return ids
}

// ExplainedNames returns the IDs of the rules of findings and divergences, each once.
func (a *App) ExplainedNames() (ids []string) {
	for _, r := range a.ExplainedRules() {
		if !slices.Contains(ids, r.ID) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// UnknownRule returns an error that suggests the nearest of the known rules.
func (a *App) UnknownRule(id string, known []string) error {
	if near := filter.Nearest(id, known); near != "" {
		return fmt.Errorf("no rule %q; did you mean %s?", id, near)
	}
	return fmt.Errorf("no rule %q: `ackscope explain` lists them", id)
}

// Table returns the fields that filters and columns can name.
func (a *App) Table() *filter.Table {
	if a.FieldTable == nil {
		o := fields.Options{Registry: a.Registry, Rules: analyze.Rules, Columns: layerFields()}
		for _, p := range a.Registry.Protocols() {
			for i := range p.Profiles {
				o.Specs = append(o.Specs, p.Profiles[i].Fields...)
			}
		}
		a.FieldTable = fields.NewTable(o)
	}
	return a.FieldTable
}

// layerFields returns the fields that only layers have: columns name them, and
// filters do not.
func layerFields() (list []*filter.Field) {
	for _, n := range stack.Names() {
		f := &filter.Field{
			Name: n.Name, Kind: filter.Uint, Doc: n.Header + ": " + n.Label + ".", Hex: n.Kind == stack.Hex,
			Bits: n.Bits, Scope: filter.OfPacket,
		}
		switch n.Kind {
		case stack.Flag:
			f.Kind = filter.Bool
		case stack.Bytes:
			f.Kind = filter.Bytes
		case stack.Text:
			f.Kind = filter.Text
		case stack.Address:
			if f.Kind = filter.Address; n.Bits == 48 {
				f.Kind = filter.Bytes
			}
		default:
		}
		list = append(list, f)
	}
	return list
}

// CapturesOrCommand checks the arguments of the program itself: they name captures. The first
// can be a misspelt command, if it is no file and does not look like one.
func CapturesOrCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 || args[0] == "-" {
		return nil
	}
	word := args[0]
	if _, err := os.Stat(word); err == nil || strings.ContainsAny(word, `*?[`) {
		return nil
	}
	if strings.ContainsRune(word, filepath.Separator) || strings.Contains(word, ".pcap") || filepath.Ext(word) == ".cap" {
		return fmt.Errorf("there is no file %q: expected a capture, or a command (`ackscope help` lists them)", word)
	}
	return UnknownCommand(c, args)
}

// UnknownCommand returns an error that suggests the nearest command. If the
// word is a file, it says that a command is missing. Without arguments it
// returns nil.
func UnknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	word := args[0]
	if _, err := os.Stat(word); err == nil {
		return fmt.Errorf("%q is a file: expected a command before it, as in `ackscope flows %s`", word, word)
	}
	err := fmt.Errorf("unknown command %q (`ackscope help` lists them)", word)
	if near := c.SuggestionsFor(word); len(near) > 0 {
		err = fmt.Errorf("unknown command %q; did you mean %s?", word, strings.Join(near, " or "))
	}
	return err
}
