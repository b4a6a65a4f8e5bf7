//go:build !js

package about

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/outfile"
)

// ManCommand builds `ackscope man`, which writes manual pages.
func ManCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write manual pages, one a command",
		Example: `  ackscope man ~/.local/share/man/man1
  man ackscope-findings`,
		Args: app.Arguments(1, 1, "one FOLDER"),
		RunE: func(c *cobra.Command, args []string) error {
			// The user names the folder: it may exist, and its parents may be
			// missing.
			if err := os.MkdirAll(args[0], 0o777); err != nil {
				return err
			}
			c.Root().DisableAutoGenTag = true // no date: the same program writes the same pages
			return writeManual(a, c.Root(), args[0])
		},
	}
	a.Writes(c)
	return c
}

// writeManual writes the manual pages of a command and of its subcommands.
func writeManual(a *app.App, c *cobra.Command, folder string) error {
	header := &doc.GenManHeader{Title: "ACKSCOPE", Section: "1", Source: "ackscope", Manual: "ackscope"}
	path := filepath.Join(folder, strings.ReplaceAll(c.CommandPath(), " ", "-")+"."+header.Section)
	if err := a.SaveFile("FOLDER", path, outfile.Text,
		nil, func(w io.Writer) error { return doc.GenMan(c, header, w) }); err != nil {
		return err
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() && !below.IsAdditionalHelpTopicCommand() {
			if err := writeManual(a, below, folder); err != nil {
				return err
			}
		}
	}
	return nil
}
