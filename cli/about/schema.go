package about

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/printable"
)

// SchemaNames returns the sorted names of the outputs that have a schema.
func SchemaNames() (names []string) {
	for _, s := range export.Schemas() {
		names = append(names, s.Name)
	}
	return names
}

// JSONRefused is the error of a command that prints no JSON. Every command that
// accepts --json has a schema.
func JSONRefused(c *cobra.Command) error {
	if slices.Contains(SchemaNames(), c.Name()) {
		return nil
	}
	return fmt.Errorf("--json: %s prints no objects (`ackscope schema` has what others print)", c.CommandPath())
}

// SchemaCommand builds `ackscope schema`, which prints the JSON Schema of what
// --json prints.
func SchemaCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [COMMAND]",
		Short: "JSON Schema of what commands print with --json",
		Long: `schema prints the JSON Schema (draft 2020-12) of the objects that a command prints with --json
and that export jsonl writes: of one, or of all, by their names. Every command that takes --json
has one; docs/tables.md says the same for people. The object status is that of package unit.`,
		Example: `  ackscope schema events
  ackscope schema merge | jq '.oneOf[].title'
  ackscope schema > ackscope.schema.json`,
		Args: app.Arguments(0, 1, "one COMMAND, or nothing"),
		ValidArgsFunction: func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			return app.CompleteWords(SchemaNames()...)(c, args, word)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			all := map[string]any{}
			for _, s := range export.Schemas() {
				all[s.Name] = s.JSONSchema()
			}
			var what any = all
			if len(args) == 1 {
				one, ok := all[args[0]]
				if !ok {
					return fmt.Errorf("schema %q: expected one of %s", args[0], strings.Join(SchemaNames(), ", "))
				}
				what = one
			}
			e := json.NewEncoder(printable.JSONWriter(a.Writer()))
			e.SetIndent("", "  ")
			e.SetEscapeHTML(false)
			return e.Encode(what)
		},
	}
}
