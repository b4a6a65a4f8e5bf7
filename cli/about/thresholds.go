package about

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/schema/yamlfile"
)

// ThresholdsCommand builds `ackscope thresholds`, which prints the limits of steady trouble
// as a file to start from.
func ThresholdsCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "thresholds",
		Short: "The limits from which steady loss, delay and the like are findings, as a file ready to copy",
		Long: `thresholds prints the limits from which steady trouble is a finding, as documented YAML. Copy it,
change the limits that differ for your game, and hand the file to any command with --thresholds.
--set changes single limits. Where both are given, they count here too, and --set wins.`,
		Example: `  ackscope thresholds > limits.yaml
  ackscope findings --thresholds limits.yaml match.pcapng
  ackscope findings --set loss=1%,rtt=80ms match.pcapng
  ackscope findings --set bandwidth=off match.pcapng`,
		Args: app.NoArguments,
		RunE: func(*cobra.Command, []string) error { return printThresholds(a) },
	}
}

func printThresholds(a *app.App) error {
	t := analyze.DefaultThresholds()
	if a.Thresholds != nil {
		t = *a.Thresholds
	}
	if !a.Flags.JSON {
		_, err := a.Writer().Write(ThresholdsYAML(&t))
		return err
	}
	for i := range analyze.ThresholdList {
		x := &analyze.ThresholdList[i]
		var o app.Object
		o.Begin()
		o.Str("threshold", x.Name)
		o.Str("value", t.Text(x))
		o.Str("rule", x.Rule)
		o.Str("doc", x.Doc)
		if err := o.End(a.Writer()); err != nil {
			return err
		}
	}
	return nil
}

// ThresholdsYAML formats limits as a file for --thresholds. A comment above each explains it.
func ThresholdsYAML(t *analyze.Thresholds) []byte {
	var b bytes.Buffer
	comment(&b, "", "From these limits on, steady trouble is a finding. off switches a limit off. "+
		"docs/limits-of-findings.md says where the usual limits come from.")
	for i := range analyze.ThresholdList {
		x := &analyze.ThresholdList[i]
		comment(&b, "", fmt.Sprintf("%s Finding: %s.", x.Doc, x.Rule))
		fmt.Fprintf(&b, "%s: %s\n", x.Name, t.Text(x))
	}
	return b.Bytes()
}

// LoadThresholds reads the file of --thresholds and the limits of --set.
func LoadThresholds(a *app.App) error {
	if a.Flags.Thresholds == "" && len(a.Flags.Set) == 0 {
		return nil
	}
	t := analyze.DefaultThresholds()
	if path := a.Flags.Thresholds; path != "" {
		src, err := yamlfile.ReadFile(path)
		if err == nil {
			err = yamlfile.Settings(src, path, t.Set)
		}
		if err != nil {
			return fmt.Errorf("--thresholds: %w", err)
		}
	}
	for _, text := range a.Flags.Set {
		name, value, ok := strings.Cut(text, "=")
		err := errors.New("expected NAME=VALUE, for example loss=3%")
		if ok {
			err = t.Set(name, value)
		}
		if err != nil {
			return fmt.Errorf("--set %s: %w", printable.String(text), err)
		}
	}
	a.Thresholds = &t
	return nil
}

// CompleteSet completes the name of a limit, and then its usual value.
func CompleteSet(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	before := word[:strings.LastIndexByte(word, ',')+1]
	given := strings.Split(before, ",")
	usual := analyze.DefaultThresholds()
	var out []string
	for i := range analyze.ThresholdList {
		x := &analyze.ThresholdList[i]
		if slices.ContainsFunc(given, func(s string) bool { return strings.HasPrefix(s, x.Name+"=") }) {
			continue
		}
		out = append(out, fmt.Sprintf("%s%s=%s\t%s", before, x.Name, usual.Text(x), x.Doc))
	}
	return withPrefix(out, word), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
