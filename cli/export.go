package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/export/parquet"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
)

// exportFlags are those of all exports.
type exportFlags struct {
	out    string
	filter string
	tables []string
	tree   bool
	hex    bool

	findings bool // comments for findings only
	dialect  string
	flows    []string
}

func (a *app) exportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "export",
		Short: "Take what was found to other tools: tables, qlog, comments in a capture, Wireshark columns",
		Long: `export writes what the analysis found for other tools to read. Files are written whole or
not at all; one that is there already is replaced, unless --no-clobber is given.`,
		Args: unknownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		a.tablesCommand("jsonl", "JSON Lines: the same objects that --json prints", encodeLines),
		a.tablesCommand("csv", "CSV with a header line, for spreadsheets", encodeCSV),
		a.tablesCommand("parquet", "Apache Parquet, for notebooks and databases", encodeParquet),
		a.exportQlogCommand(),
		a.exportPcapngCommand(),
		a.exportWiresharkCommand(),
	)
	for _, one := range c.Commands() {
		a.writes(one)
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

// tableNames are the tables in the order of their writing.
var tableNames = func() (names []string) {
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

func (a *app) tablesCommand(format, short string, to encode) *cobra.Command {
	f := &exportFlags{}
	c := &cobra.Command{
		Use:   format + " [FILE...]",
		Short: short,
		Long: short + `.

Tables are ` + strings.Join(tableNames, ", ") + `; docs/tables.md has their columns. Of one table, -o
names the file, - standard output; of several, a folder that gets a file for each. Each table is
a reading of the capture of its own, in memory that does not grow with it. Of several captures,
the column file says which one a row is of: flow numbers begin at 1 in each.`,
		Example: `  ackscope export ` + format + ` --table events -o events.` + format + ` match.pcapng
  ackscope export ` + format + ` -o tables match.pcapng       # all of them, into the folder tables
  ackscope export ` + format + ` --table packets -Y 'rel.lost' -o - match.pcapng`,
		RunE: func(_ *cobra.Command, args []string) error { return a.exportTables(f, format, to, args) },
	}
	f.register(c, "write to `FILE`, - for standard output; of several tables, into a folder")
	a.joinFlag(c)
	a.filterFlag(c, &f.filter)
	p := c.Flags()
	p.StringSliceVar(&f.tables, "table", nil, "export these `TABLES` only: "+strings.Join(tableNames, ", "))
	p.BoolVarP(&f.tree, "details", "V", false, "packets: every field with its place")
	p.BoolVarP(&f.hex, "hex", "x", false, "packets: the bytes of each frame")
	_ = c.RegisterFlagCompletionFunc("table", completeWords(tableNames...))
	return c
}

func (a *app) exportTables(f *exportFlags, format string, to encode, args []string) error {
	tables := f.tables
	if len(tables) == 0 {
		tables = tableNames
	}
	for _, name := range tables {
		if !slices.Contains(tableNames, name) {
			return fmt.Errorf("--table %q: expected %s", name, strings.Join(tableNames, ", "))
		}
	}
	if f.out == "" {
		return errors.New("expected -o: a file, - for standard output, or a folder for several tables")
	}
	if len(tables) == 1 {
		return a.exportTable(f, tables[0], f.out, format, to, args)
	}
	if f.out == "-" || strings.HasSuffix(f.out, "."+format) {
		return fmt.Errorf("-o %s: expected a folder for %d tables (--table names one)", f.out, len(tables))
	}
	if slices.Contains(a.paths(args), "-") {
		return errors.New("several tables read the capture several times: expected a file rather than standard input")
	}
	if err := os.MkdirAll(f.out, 0o777); err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	for _, name := range tables {
		if err := a.exportTable(f, name, filepath.Join(f.out, name+"."+format), format, to, args); err != nil {
			return err
		}
	}
	return nil
}

// contentOf tells what a table holds: packets have bytes and messages have values,
// the other tables have what was found.
func contentOf(table string) outfile.Content {
	if table == export.Packets.Name || table == export.Messages.Name {
		return outfile.Payload
	}
	return outfile.Text
}

// exportTable writes one table.
func (a *app) exportTable(f *exportFlags, name, path, format string, to encode, args []string) error {
	if path == "-" && isTerminal(a.out) && format == "parquet" {
		return errors.New("-o -: expected a file or a pipe for Parquet, found a terminal")
	}
	return a.saveFile("-o", path, contentOf(name), a.paths(args), func(w io.Writer) error {
		i := slices.Index(tableNames, name)
		e, err := to(w, export.Tables()[i])
		if err != nil {
			return err
		}
		if err := a.tell(name, f, args, e); err != nil {
			return err
		}
		return e.Close()
	})
}

// tell gives the rows of a table to an encoder.
func (a *app) tell(name string, f *exportFlags, args []string, to export.Encoder) error {
	switch name {
	case export.Packets.Name:
		l := &listing{app: a, live: &liveFlags{}}
		var err error
		if l.filter, err = a.compile(f.filter); err != nil {
			return err
		}
		tellPackets(l, to, len(a.paths(args)) > 1, f.tree, f.hex)
		return l.run(args)
	case export.Events.Name:
		return a.tellEvents(&eventPrinter{app: a}, f.filter, args, to)
	case export.Messages.Name:
		return a.tellMessages(args, f.filter, to)
	case export.Flows.Name:
		return a.tellFlows(f.filter, args, to)
	default:
		p := &findingPrinter{app: a, gate: machine.Error + 1, rows: export.NewRows(export.Findings, to)}
		var err error
		if p.ask, err = a.newAsker(f.filter, "findings", ofFindings); err != nil {
			return err
		}
		return a.each(args, p.study)
	}
}
