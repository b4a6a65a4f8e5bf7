package listing

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// MessagesCommand builds `ackscope messages`.
func MessagesCommand(a *app.App) *cobra.Command {
	text := ""
	c := &cobra.Command{
		Use:   "messages [FILE...]",
		Short: "The life of every message: sent, resent, acked, delivered, held back by which other",
		Long: `messages lists what became of each message: which packets carried it, when it arrived, and
when its sender learned that. It also says when the receiver handed it to the game, and how long
it waited there for an earlier message. With a schema (--profiles), it shows the values of each
message. The messages of netcode need its keys (--keys).

A message is printed once nothing more can happen to it.

A filter (-Y) of a message can use message.*, flow.*, finding.* and the cause of resends. It can
also use what is in the packet that carried the message first.`,
		Example: `  ackscope messages --profiles mygame.yaml match.pcapng
  ackscope messages -Y 'message.hol > 100ms || message.delivered == no' match.pcapng
  ackscope messages --json match.pcapng | jq 'select(.wait_ms > 100)'
  ackscope messages --keys keys.yaml --profiles mygame.yaml yojimbo.pcapng`,
		RunE: func(_ *cobra.Command, args []string) error { return messages(a, args, text) },
	}
	reader.JoinFlag(a, c)
	reader.FilterFlag(a, c, &text)
	return c
}

func messages(a *app.App, args []string, text string) error {
	if a.Flags.JSON {
		return ExportMessages(a, args, text, a.Lines(&export.Messages.Schema))
	}
	return ExportMessages(a, args, text, nil)
}

// ExportMessages passes messages to an encoder, or prints them as text if there
// is none.
func ExportMessages(a *app.App, args []string, text string, to export.Encoder) error {
	filter, err := reader.NewRowFilter(a, text, "messages", reader.OfMessages)
	if err != nil {
		return err
	}
	p := &messagePrinter{app: a, filter: filter}
	p.empty = reader.Empty{Of: "message", Messages: true, Filtered: !filter.All()}
	if to != nil {
		p.rows = export.NewRows(export.Messages, to)
	}
	err = reader.Each(a, args, func(r *reader.Recording) error {
		if p.rows == nil {
			if err := reader.Heading(a, r); err != nil {
				return err
			}
		}
		s, in, err := filter.Study(r, true, p.record)
		p.empty.Add(s)
		if in != nil {
			defer in.Close()
		}
		if err := errors.Join(p.err, filter.Err); err != nil {
			return err
		}
		return a.Ended(err)
	})
	if err == nil || reader.Unread(err) != nil {
		p.empty.Say(a)
	}
	return err
}

// messagePrinter prints the messages of records.
type messagePrinter struct {
	app    *app.App
	filter *reader.RowFilter
	empty  reader.Empty
	err    error
	rows   *export.Rows[export.MessageRow] // nil for text
	row    export.MessageRow
	line   []byte
}

func (p *messagePrinter) record(r *analyze.Record) {
	for i := range r.Messages {
		if p.err != nil {
			return
		}
		m := &r.Messages[i]
		p.empty.Seen++
		if !p.filter.All() && !p.filter.Message(r, i) {
			continue
		}
		p.empty.Shown++
		p.row = export.NewMessageRow(r.Flow, m, p.filter.From.File(m.Frames[0]))
		if p.rows != nil {
			p.err = p.rows.Add(&p.row)
			continue
		}
		p.print(r.Flow, m, p.row.Name, p.row.Values)
		_, p.err = p.app.Writer().Write(p.line)
	}
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// print prints a message as text.
func (p *messagePrinter) print(f *analyze.Flow, m *machine.Message, name string, values dissect.Values) {
	b := fmt.Appendf(p.line[:0], "%7d  ", m.Frames[0].Frame())
	b = m.At.Time().AppendFormat(b, "15:04:05.000000")
	b = fmt.Appendf(b, "  flow %-3d %s→%s  ", f.ID, m.From, m.From.Other())
	if m.Channel >= 0 {
		b = fmt.Appendf(b, "channel %d  ", m.Channel)
	}
	b = fmt.Appendf(b, "%-10s  ", m.Mode)
	if m.ID >= 0 {
		b = fmt.Appendf(b, "id %-6d", m.ID)
	} else {
		b = fmt.Appendf(b, "seq %-5d", m.Sequence)
	}
	if name == "" {
		name = m.TypeText()
	}
	b = append(b, ' ')
	b = show.AppendClean(b, name)
	if m.Block > 0 {
		b = fmt.Appendf(b, ", block of %d bytes", m.Block)
	}
	b = fmt.Appendf(b, "  in %d packet", m.Attempts)
	if m.Attempts != 1 {
		b = append(b, 's')
	}
	switch m.Delivered {
	case machine.Yes:
		b = fmt.Appendf(b, "  arrived after %s", show.ArrivalText(m))
		if m.Wait > 0 {
			b = fmt.Appendf(b, ", held %.1f ms by id %d", ms(m.Wait), m.BlockedBy)
		}
	case machine.No:
		b = append(b, "  not delivered"...)
	default:
		b = append(b, "  arrival: ?"...)
	}
	b = fmt.Appendf(b, " (%s)", m.Certainty)
	if m.AckedBy != 0 {
		b = fmt.Appendf(b, "  acked in frame %d", m.AckedBy.Frame())
	}
	if values != nil {
		if object, err := values.MarshalJSON(); err == nil {
			b = append(b, "  "...)
			b = show.AppendClean(b, object)
		}
	}
	p.line = append(b, '\n')
}
