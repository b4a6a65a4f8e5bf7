//go:build !js

package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/listing"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/export/parquet"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
)

// exportFlags are the flags of all exports.
type exportFlags struct {
	out    string
	filter string
	tables []string
	tree   bool
	hex    bool

	findings bool // only findings become comments
	dialect  string
	flows    []string
}

// ExportCommand builds `ackscope export` and a subcommand for each format.
func ExportCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "export",
		Short: "Take what was found to other tools: tables, qlog, comments in a capture, Wireshark columns",
		Long: `export writes what the analysis found for other tools to read. Files are written whole or
not at all; one that is there already is replaced, unless --no-clobber is given.`,
		Args: app.UnknownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		tablesCommand(a, "jsonl", "JSON Lines: the same objects that --json prints", encodeLines),
		tablesCommand(a, "csv", "CSV with a header line, for spreadsheets", encodeCSV),
		tablesCommand(a, "parquet", "Apache Parquet, for notebooks and databases", encodeParquet),
		exportQlogCommand(a),
		exportPcapngCommand(a),
		exportWiresharkCommand(a),
	)
	for _, one := range c.Commands() {
		a.Writes(one)
	}
	return c
}

// register adds the flags that every export has.
func (f *exportFlags) register(c *cobra.Command, out string) {
	p := c.Flags()
	p.StringVarP(&f.out, "output", "o", "", out)
	p.BoolP("force", "f", false, "files that are there already are replaced anyway; taken for older scripts' sake")
	_ = p.MarkHidden("force")
}

// TableNames are the tables in the order in which they are written.
var TableNames = func() (names []string) {
	for _, s := range export.Tables() {
		names = append(names, s.Name)
	}
	return names
}()

type encode func(w io.Writer, s *export.Schema) (export.Encoder, error)

func encodeLines(w io.Writer, s *export.Schema) (export.Encoder, error) {
	return export.NewLines(w, s), nil
}

func encodeCSV(w io.Writer, s *export.Schema) (export.Encoder, error) { return export.NewCSV(w, s) }

func encodeParquet(w io.Writer, s *export.Schema) (export.Encoder, error) {
	return parquet.New(w, s), nil
}

func tablesCommand(a *app.App, format, short string, to encode) *cobra.Command {
	f := &exportFlags{}
	c := &cobra.Command{
		Use:   format + " [FILE...]",
		Short: short,
		Long: short + `.

Tables are ` + strings.Join(TableNames, ", ") + `; docs/tables.md has their columns. Of one table, -o
names the file, - standard output; of several, a folder that gets a file for each. Each table is
a reading of the capture of its own, in memory that does not grow with it. Of several captures,
the column file says which one a row is of: flow numbers begin at 1 in each.`,
		Example: `  ackscope export ` + format + ` --table events -o events.` + format + ` match.pcapng
  ackscope export ` + format + ` -o tables match.pcapng       # all of them, into the folder tables
  ackscope export ` + format + ` --table packets -Y 'rel.lost' -o - match.pcapng`,
		RunE: func(_ *cobra.Command, args []string) error { return exportTables(a, f, format, to, args) },
	}
	f.register(c, "write to `FILE`, - for standard output; of several tables, into a folder")
	reader.JoinFlag(a, c)
	reader.FilterFlag(a, c, &f.filter)
	p := c.Flags()
	p.StringSliceVar(&f.tables, "table", nil, "export these `TABLES` only: "+strings.Join(TableNames, ", "))
	p.BoolVarP(&f.tree, "details", "V", false, "packets: every field with its place")
	p.BoolVarP(&f.hex, "hex", "x", false, "packets: the bytes of each frame")
	_ = c.RegisterFlagCompletionFunc("table", app.CompleteWords(TableNames...))
	return c
}

func exportTables(a *app.App, f *exportFlags, format string, to encode, args []string) error {
	tables := f.tables
	if len(tables) == 0 {
		tables = TableNames
	}
	for _, name := range tables {
		if !slices.Contains(TableNames, name) {
			return fmt.Errorf("--table %q: expected %s", name, strings.Join(TableNames, ", "))
		}
	}
	if f.out == "" {
		return errors.New("expected -o: a file, - for standard output, or a folder for several tables")
	}
	if len(tables) == 1 {
		return exportTable(a, f, tables[0], f.out, format, to, args)
	}
	if f.out == "-" || strings.HasSuffix(f.out, "."+format) {
		return fmt.Errorf("-o %s: expected a folder for %d tables (--table names one)", f.out, len(tables))
	}
	if slices.Contains(reader.Paths(a, args), "-") {
		return errors.New("several tables read the capture several times: expected a file rather than standard input")
	}
	if err := os.MkdirAll(f.out, 0o777); err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	var unread error // the same for each table
	for _, name := range tables {
		err := exportTable(a, f, name, filepath.Join(f.out, name+"."+format), format, to, args)
		if err != nil && reader.Unread(err) == nil {
			return err
		}
		unread = err
	}
	return unread
}

// contentOf returns the kind of contents of a table. Packets contain bytes,
// messages contain values, and the other tables contain results.
func contentOf(table string) outfile.Content {
	if table == export.Packets.Name || table == export.Messages.Name {
		return outfile.Payload
	}
	return outfile.Text
}

// exportTable writes one table.
func exportTable(a *app.App, f *exportFlags, name, path, format string, to encode, args []string) error {
	if path == "-" && app.IsTerminal(a.Out) && format == "parquet" {
		return errors.New("-o -: expected a file or a pipe for Parquet, found a terminal")
	}
	var unread error // of some of several captures: the rows of the others are kept
	err := a.SaveFile("-o", path, contentOf(name), reader.Paths(a, args), func(w io.Writer) error {
		i := slices.Index(TableNames, name)
		e, err := to(w, export.Tables()[i])
		if err != nil {
			return err
		}
		if err := exportRows(a, name, f, args, e); err != nil {
			if reader.Unread(err) == nil {
				return err
			}
			unread = err
		}
		return e.Close()
	})
	return errors.Join(err, unread)
}

// exportRows passes the rows of a table to an encoder.
func exportRows(a *app.App, name string, f *exportFlags, args []string, to export.Encoder) error {
	switch name {
	case export.Packets.Name:
		l := &reader.Listing{App: a, Live: &reader.LiveFlags{}}
		var err error
		if l.Filter, err = reader.Compile(a, f.filter); err != nil {
			return err
		}
		listing.ExportPackets(l, to, f.tree, f.hex)
		return l.Run(args)
	case export.Events.Name:
		return listing.ExportEvents(a, &listing.EventPrinter{App: a}, f.filter, args, to)
	case export.Messages.Name:
		return listing.ExportMessages(a, args, f.filter, to)
	case export.Flows.Name:
		return listing.ExportFlows(a, f.filter, args, to)
	default:
		p := &listing.FindingPrinter{App: a, Gate: machine.Error + 1, Rows: export.NewRows(export.Findings, to)}
		var err error
		if p.Filter, err = reader.NewRowFilter(a, f.filter, "findings", reader.OfFindings); err != nil {
			return err
		}
		return reader.Each(a, args, p.Study)
	}
}
