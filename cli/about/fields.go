package about

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/show"
)

// FieldsCommand builds `ackscope fields`, which lists the names for filters and
// columns.
func FieldsCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "fields [NAME...]",
		Short: "The fields that -Y and -e know, each with a sentence",
		Long: `fields lists what display filters (-Y) and columns (-e) can name. A name, or the start of
one, narrows the list: "gaffer", "rel.", "flow.rtt". Fields marked "(-e)" are for columns alone.

Filters are Wireshark's: == != > >= < <= contains matches in {1, 5..9}, && || ! and (),
slices as in udp.payload[0:2], functions len count upper lower string abs. A field alone
asks whether it is there. Values carry units: 80ms, 1kB, 3%, 10.0.0.0/8, 0a:1b:2c.
A comparison with a field that a packet does not have is false; != means all values differ.`,
		Example: `  ackscope fields
  ackscope fields rel
  ackscope packets -Y 'rel.lost && flow.rtt > 80ms' match.pcapng`,
		ValidArgsFunction: a.CompleteField,
		RunE:              func(_ *cobra.Command, args []string) error { return fields(a, args) },
	}
}

func fields(a *app.App, args []string) error {
	shown, begun := map[*filter.Field]bool{}, map[string]bool{}
	var list []*filter.Field
	for _, f := range a.Table().Columns() {
		if len(args) == 0 {
			list = append(list, f)
		}
		for _, name := range args {
			if !strings.HasPrefix(strings.ToLower(f.Name), strings.ToLower(name)) {
				continue
			}
			if begun[name] = true; !shown[f] {
				shown[f] = true
				list = append(list, f)
			}
		}
	}
	for _, name := range args {
		if begun[name] {
			continue
		}
		if near := a.Table().SuggestColumn(name); near != "" {
			return fmt.Errorf("no field begins with %q; did you mean %s?", name, near)
		}
		return fmt.Errorf("no field begins with %q", name)
	}
	colored, err := a.Colored()
	if err != nil {
		return err
	}
	paint := show.Painter(colored)
	names, kinds := 0, 0
	for _, f := range list {
		names, kinds = max(names, len(f.Name)), max(kinds, len(fieldKind(f)))
	}
	w := a.Writer()
	var o app.Object
	for _, f := range list {
		if a.Flags.JSON {
			o.Begin()
			o.Str("name", f.Name)
			o.Str("type", f.Kind.String())
			o.Word("unit", f.Unit)
			o.Str("doc", f.Doc)
			if f.Of != nil {
				o.Str("protocol", f.Of.Name)
			}
			if f.ColumnOnly() {
				o.Bool("column_only", true)
			}
			if len(f.Words) > 0 {
				o.Key("values")
				o.Buf = append(o.Buf, '[')
				for i, word := range f.Words {
					if i > 0 {
						o.Buf = append(o.Buf, ',')
					}
					o.Buf = export.AppendString(o.Buf, word)
				}
				o.Buf = append(o.Buf, ']')
			}
			if err := o.End(w); err != nil {
				return err
			}
			continue
		}
		line := paint.Text(nil, show.Bold, f.Name)
		for n := len(f.Name); n < names+2; n++ {
			line = append(line, ' ')
		}
		from := len(line)
		line = append(line, fieldKind(f)...)
		line = show.Pad(line, from, kinds+2)
		line = printable.Append(line, f.Doc)
		if f.ColumnOnly() {
			line = append(line, " (-e)"...)
		}
		if n := len(f.Words); n > 0 && n <= 16 {
			line = printable.Append(line, " One of "+strings.Join(f.Words, ", ")+".")
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// fieldKind returns the name of a field's type. It is empty for a field that is
// either present or absent.
func fieldKind(f *filter.Field) string {
	kind := f.Kind.String()
	switch f.Kind {
	case filter.Heading:
		return "–"
	case filter.Uint:
		kind = "integer"
	default:
	}
	if f.Unit != "" && f.Kind != filter.Duration && f.Kind != filter.Time {
		kind += " (" + f.Unit + ")"
	}
	return kind
}
