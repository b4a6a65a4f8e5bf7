package listing

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/show"
)

// packetFlags are the flags of the packets command.
type packetFlags struct {
	live    reader.LiveFlags
	filter  string
	verbose bool
	hex     bool
	print   bool
	format  string
	fields  []string
	options []string
	times   string
	once    bool
}

// PacketsCommand builds `ackscope packets`.
func PacketsCommand(a *app.App) *cobra.Command {
	f := &packetFlags{}
	c := &cobra.Command{
		Use:   "packets [FILE...]",
		Short: "One line for each packet, its decode tree, its bytes, or columns of your choice",
		Long: `packets lists the packets of captures or of a live interface. Flags are tshark's, where
tshark has the like. Live, the first packets of a flow wait until its protocol is worked out
(64 at most), unless nothing that is shown or filtered depends on it.

A filter can ask for what only later packets show: "fate" is what became of a packet, and
message.* and rel.* belong to the packets that carried the message or show the fact.

A column (-e) has the values of every header of the frame, outermost first. An error of ICMP
has two of ip.src: its own, and that of the packet that it quotes.`,
		Example: `  ackscope packets match.pcapng
  ackscope packets -Y 'flow == 2 && gaffer.sequence in {900..910}' -V match.pcapng
  ackscope packets -Y 'fate == lost && flow.side == a' match.pcapng
  ackscope packets -Y 'message.id == 300' match.pcapng      # each packet that carried it
  ackscope packets -T fields -e frame.number -e ip.src -e gaffer.ack_bits -E header=y match.pcapng
  ackscope packets -T fields -e frame.number -e icmp.type -e icmp.code -e ip.src match.pcapng
  ackscope packets -i any -a duration:10 -w match.pcapng`,
		RunE: func(_ *cobra.Command, args []string) error { return packets(a, f, args) },
	}
	f.live.Register(c)
	a.Writes(c)
	reader.JoinFlag(a, c)
	reader.FilterFlag(a, c, &f.filter)
	p := c.Flags()
	p.BoolVar(&f.once, "live", false, "read in one run and print on the way, as -i does: for tcpdump -U -w - | ackscope …")
	p.BoolVarP(&f.verbose, "details", "V", false, "show the decode tree of each packet")
	p.BoolVarP(&f.hex, "hex", "x", false, "show the bytes of each packet")
	p.BoolVarP(&f.print, "print", "P", false, "list the packets although -w writes them")
	p.StringVarP(&f.format, "format", "T", "", "output: `text|tabs|fields|json|ek`")
	p.StringArrayVarP(&f.fields, "field", "e", nil, "with -T fields, json or ek: a column, by the name of its `FIELD`")
	p.StringArrayVarP(&f.options, "fields-option", "E", nil,
		"with -T fields: header=y, separator=/t|/s|CHAR, occurrence=f|l|a, aggregator=,|/s|CHAR, quote=d|s|n, bom=y")
	p.StringVarP(&f.times, "time-format", "t", "r",
		"time column: `r`elative, d(elta), dd (since the one shown before), e(poch); local: a(bsolute), ad (with date), "+
			"adoy; UTC: u, ud, udoy")
	_ = c.RegisterFlagCompletionFunc("field", a.CompleteField)
	_ = c.RegisterFlagCompletionFunc("format", app.CompleteWords("text", "tabs", "fields", "json", "ek"))
	_ = c.RegisterFlagCompletionFunc("fields-option",
		app.CompleteWords("header=y", "separator=", "occurrence=f", "occurrence=l", "occurrence=a", "aggregator=", "quote=d",
			"quote=s", "quote=n", "bom=y"))
	_ = c.RegisterFlagCompletionFunc("time-format", app.CompleteWords(TimeFormats...))
	return c
}

func packets(a *app.App, f *packetFlags, args []string) error {
	if f.live.List {
		return reader.ListInterfaces(a)
	}
	l := &reader.Listing{App: a, Live: &f.live, Once: f.once}
	var err error
	if l.Filter, err = reader.Compile(a, f.filter); err != nil {
		return err
	}
	if err := chooseFormat(a, f, l); err != nil {
		return err
	}
	if f.live.Write != "" && !f.print && !f.verbose && !f.hex && f.format == "" && !a.Flags.JSON {
		l.Show, l.Needs = nil, 0
	}
	if f.live.Write == "-" && l.Show != nil {
		return errors.New("-w - writes to standard output: expected no listing beside it")
	}
	return l.Run(args)
}

// chooseFormat sets what the listing shows, and what it needs.
func chooseFormat(a *app.App, f *packetFlags, l *reader.Listing) error {
	format := f.format
	if format == "" && len(f.fields) > 0 {
		format = "fields"
	}
	if a.Flags.JSON && (format != "" && format != "text" || len(f.options) > 0) {
		return fmt.Errorf("--json with -T %s or -e: expected one of them", format)
	}
	if a.Flags.JSON {
		ExportPackets(l, a.Lines(&export.Packets.Schema), f.verbose, f.hex)
		return nil
	}
	switch {
	case format != "fields" && len(f.options) > 0:
		return fmt.Errorf("-E: expected -T fields, found -T %s", format)
	case format != "fields" && format != "json" && format != "ek" && len(f.fields) > 0:
		return fmt.Errorf("-e: expected -T fields, json or ek, found -T %s", format)
	}
	switch format {
	case "fields":
		s, err := newFieldLister(a, f.fields, f.options)
		if err != nil {
			return err
		}
		l.Show, l.Begin = s.show, s.columns.begin
		l.Needs |= s.columns.needs
	case "json", "ek":
		f.format = format
		s, err := newTsharkWriter(a, f, &l.Reading)
		if err != nil {
			return err
		}
		l.Show, l.Begin, l.End, l.Needs = s.show, s.chosen.begin, s.end, s.needs()
	case "", "text", "tabs":
		s, err := newPacketLister(a, f, l)
		if err != nil {
			return err
		}
		l.Show, l.Begin, l.Needs = s.show, s.begin, filter.NeedFlow|filter.NeedFindings
		if f.verbose {
			l.Needs |= filter.NeedFields | filter.NeedEvents
		}
	default:
		return fmt.Errorf("-T %q: expected text, tabs, fields, json or ek (--json prints JSON Lines)", format)
	}
	return nil
}

// fieldLister prints columns like tshark's -T fields.
type fieldLister struct {
	app        *app.App
	columns    *columns
	separator  string
	aggregator string
	occurrence byte // f, l or a
	quote      string
	line       []byte
	value      []byte
}

func newFieldLister(a *app.App, names, options []string) (*fieldLister, error) {
	if len(names) == 0 {
		return nil, errors.New("-T fields: expected one -e FIELD at least (`ackscope fields` lists them)")
	}
	s := &fieldLister{app: a, separator: "\t", aggregator: ",", occurrence: 'a'}
	var err error
	if s.columns, err = newColumns(a, names); err != nil {
		return nil, err
	}
	header, bom := false, false
	for _, o := range options {
		key, value, _ := strings.Cut(o, "=")
		char := map[string]string{"/t": "\t", "/s": " "}[value]
		if char == "" { // one character: tshark uses the first of several
			_, n := utf8.DecodeRuneInString(value)
			char = value[:n]
		}
		var ok bool
		switch key {
		case "header":
			header = value == "y"
			ok = value == "y" || value == "n"
		case "bom":
			bom = value == "y"
			ok = value == "y" || value == "n"
		case "separator":
			s.separator, ok = char, char != ""
		case "aggregator":
			s.aggregator, ok = char, char != ""
		case "occurrence":
			ok = value == "f" || value == "l" || value == "a"
			if ok {
				s.occurrence = value[0]
			}
		case "quote":
			s.quote, ok = map[string]string{"d": `"`, "s": "'", "n": ""}[value]
		default:
			ok = false
		}
		if !ok {
			return nil, fmt.Errorf("-E %s: expected header=y|n, separator=/t|/s|CHAR, occurrence=f|l|a, aggregator=CHAR, "+
				"quote=d|s|n or bom=y|n", o)
		}
	}
	if bom {
		fmt.Fprint(a.Writer(), "\ufeff")
	}
	if header {
		fmt.Fprintln(a.Writer(), strings.Join(names, s.separator))
	}
	return s, nil
}

func (s *fieldLister) show(r *filter.Record, x *analyze.Record) error {
	line := s.line[:0]
	s.columns.take(r, x)
	for i := range s.columns.list {
		if i > 0 {
			line = append(line, s.separator...)
		}
		between := s.aggregator
		if s.occurrence != 'a' {
			between = "\x00"
		}
		value := s.columns.append(s.value[:0], i, r, between)
		s.value = value
		switch s.occurrence {
		case 'f':
			value, _, _ = bytes.Cut(value, []byte{0})
		case 'l':
			for {
				_, rest, more := bytes.Cut(value, []byte{0})
				if !more {
					break
				}
				value = rest
			}
		}
		if len(value) > 0 {
			line = append(line, s.quote...)
			line = show.AppendClean(line, value)
			line = append(line, s.quote...)
		}
	}
	s.line = append(line, '\n')
	_, err := s.app.Writer().Write(s.line)
	return err
}
