package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/ackscope/ackscope/export"
)

// listings are the objects of commands that list what ackscope knows.
var listings = []*export.Schema{
	{Name: "fields", Doc: "What filters and columns can name.", Columns: []export.Column{
		{Name: "name", Type: export.Text, Doc: "The field."},
		{Name: "type", Type: export.Text, Doc: "What its values are."},
		{Name: "unit", Type: export.Text, Absent: export.Null, Doc: "Their unit."},
		{Name: "doc", Type: export.Text, Doc: "What it is, in a sentence."},
		{Name: "protocol", Type: export.Text, Absent: export.Omitted, Doc: "The protocol that it is decoded of."},
		{Name: "values", Type: export.Texts, Absent: export.Omitted, Doc: "The closed list of its values."},
	}},
	{Name: "explain", Doc: "Every rule that findings can report.", Columns: []export.Column{
		{Name: "rule", Type: export.Text, Doc: "Its name."},
		{Name: "severity", Type: export.Text, Words: []string{"note", "warn", "error"}, Doc: "How grave it is."},
		{Name: "summary", Type: export.Text, Doc: "What it says, in a line."},
		{Name: "explain", Type: export.Text, Doc: "What it means, how it is told, what to do about it."},
	}},
	{Name: "protocols", Doc: "Every profile of every protocol.", Columns: []export.Column{
		{Name: "protocol", Type: export.Text, Doc: "The protocol."},
		{Name: "title", Type: export.Text, Doc: "Its name for people."},
		{Name: "profile", Type: export.Text, Doc: "The profile."},
		{Name: "doc", Type: export.Text, Doc: "What it reads, in a sentence."},
	}},
}

// schemas are those of all objects that are declared.
func schemas() []*export.Schema { return append(export.Tables(), listings...) }

func schemaNames() (names []string) {
	for _, s := range schemas() {
		names = append(names, s.Name)
	}
	return names
}

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [COMMAND]",
		Short: "JSON Schema of what commands print with --json",
		Long: `schema prints the JSON Schema (draft 2020-12) of the objects that a command prints with --json
and that export jsonl writes: of one, or of all, by their names. There are schemas of
` + strings.Join(schemaNames(), ", ") + `.`,
		Example: `  ackscope schema events
  ackscope schema > ackscope.schema.json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeWords(schemaNames()...),
		RunE: func(_ *cobra.Command, args []string) error {
			all := map[string]any{}
			for _, s := range schemas() {
				all[s.Name] = s.JSONSchema()
			}
			var what any = all
			if len(args) == 1 {
				one, ok := all[args[0]]
				if !ok {
					return fmt.Errorf("schema %q: expected %s", args[0], strings.Join(schemaNames(), ", "))
				}
				what = one
			}
			e := json.NewEncoder(a.writer())
			e.SetIndent("", "  ")
			e.SetEscapeHTML(false)
			return e.Encode(what)
		},
	}
}

func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write manual pages, one a command",
		Example: `  ackscope man ~/.local/share/man/man1
  man ackscope-findings`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o777); err != nil {
				return err
			}
			root := c.Root()
			root.DisableAutoGenTag = true // the same program writes the same pages
			return doc.GenManTree(root, &doc.GenManHeader{Title: "ACKSCOPE", Section: "1", Source: "ackscope", Manual: "ackscope"}, args[0])
		},
	}
}
