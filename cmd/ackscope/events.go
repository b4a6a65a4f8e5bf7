package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

func (a *app) eventsCommand() *cobra.Command {
	var text string
	c := &cobra.Command{
		Use:   "events [FILE...]",
		Short: "What happened to every packet: sent, received, acked, duplicate, stale, lost",
		Long: `events tells every fact that the capture proves about either endpoint, each with its
certainty: a fact is told once its grade is settled, with the frame that shows it.

A filter is asked about each event: rel.*, flow.*, addresses and ports, frame.number and
frame.time (of the frame that shows it). What stands in packets is not part of an event.`,
		Example: `  ackscope events match.pcapng
  ackscope events -Y 'rel.lost && flow.rtt > 80ms' match.pcapng
  ackscope events --json match.pcapng | jq 'select(.event == "acked")'`,
		RunE: func(_ *cobra.Command, args []string) error { return a.events(text, args) },
	}
	a.filterFlag(c, &text)
	return c
}

func (a *app) events(text string, args []string) error {
	paint, err := a.painter()
	if err != nil {
		return err
	}
	p := &eventPrinter{app: a, paint: paint, width: a.width(), address: 15, name: 9, number: 5}
	if a.flags.json {
		return a.tellEvents(p, text, args, a.lines(&export.Events.Schema))
	}
	return a.tellEvents(p, text, args, nil)
}

// tellEvents gives events to an encoder; to eyes where there is none.
func (a *app) tellEvents(p *eventPrinter, text string, args []string, to export.Encoder) (err error) {
	if p.filter, err = a.compile(text); err != nil {
		return err
	}
	p.names = a.paths(args)
	if to != nil {
		p.rows = export.NewRows(export.Events, to)
	}
	_, in, err := a.study(args, p.record)
	if in != nil {
		defer in.Close()
	}
	if p.err != nil {
		return p.err
	}
	return a.ended(err)
}

// eventPrinter prints the events of records.
type eventPrinter struct {
	app    *app
	filter *filter.Filter
	paint  painter
	names  []string // of the captures
	err    error
	asked  filter.Record
	rows   *export.Rows[export.EventRow] // nil for eyes
	row    export.EventRow
	line   []byte

	// widths grow with what was printed
	number, address, name int
	width                 int // of the terminal; 0 for none
}

func (p *eventPrinter) record(r *analyze.Record) {
	for i := range r.Events {
		if p.err != nil {
			return
		}
		e := &r.Events[i]
		if p.filter.String() != "" && !p.passes(r, i) {
			continue
		}
		if p.rows != nil {
			p.row = export.EventRow{Flow: r.Flow, Event: e, File: several(p.names, e.Ref)}
			p.err = p.rows.Add(&p.row)
			continue
		}
		p.print(r.Flow, e)
		_, p.err = p.app.writer().Write(p.line)
	}
}

// passes asks the filter about one event: its packet's frame is long gone.
func (p *eventPrinter) passes(r *analyze.Record, i int) bool {
	f, e := r.Flow, &r.Events[i]
	p.asked.Reset()
	p.asked.Events = r.Events[i : i+1]
	p.asked.Datagram = machine.Datagram{At: e.At, Ref: e.Ref, From: e.Side}
	p.asked.Src, p.asked.Dst, p.asked.Transport = f.Addr(e.Side), f.Addr(e.Side.Other()), f.Transport
	p.asked.Flow, p.asked.Session, p.asked.Knowledge = f.ID, f.Session, f
	p.asked.Protocol, p.asked.Dialect = f.Protocol, f.Config().Dialect
	p.asked.Start, p.asked.Previous, p.asked.File = e.At, e.At, p.names[e.Ref.File()]
	return p.filter.Match(&p.asked)
}

func eventStyle(k machine.EventKind) style {
	switch k {
	case machine.EventLost, machine.EventStale, machine.EventRejected:
		return red
	case machine.EventDuplicate, machine.EventResent, machine.EventRegraded:
		return yellow
	case machine.EventAcked, machine.EventReceived, machine.EventDelivered:
		return cyan
	default:
		return ""
	}
}

// print writes an event for eyes.
func (p *eventPrinter) print(f *analyze.Flow, e *machine.Event) {
	var scratch [64]byte
	b := p.line[:0]
	number := scratch[:0]
	if len(p.names) > 1 {
		number = append(strconv.AppendInt(number, int64(e.Ref.File()+1), 10), ':')
	}
	number = strconv.AppendUint(number, e.Ref.Frame(), 10)
	p.number = max(p.number, len(number))
	b = append(show.PadLeft(b, number, p.number), ' ', ' ')
	b = p.paint.Begin(b, dim)
	b = e.At.Time().AppendFormat(b, "15:04:05.000000")
	b = append(p.paint.End(b, dim), "  flow "...)
	from := len(b)
	b = show.Pad(strconv.AppendInt(b, int64(f.ID), 10), from, 4)
	b = append(append(b, e.Side.String()...), ' ')
	from = len(b)
	b = f.Addr(e.Side).AppendTo(b)
	p.address = max(p.address, len(b)-from)
	b = append(show.Pad(b, from, p.address), ' ', ' ')
	name := show.EventName(f, e.Kind)
	p.name = max(p.name, len(name))
	b = p.paint.Text(b, eventStyle(e.Kind), name)
	b = appendBlanks(b, p.name-len(name)+1)
	b = show.PadLeft(b, strconv.AppendUint(scratch[:0], uint64(e.Sequence), 10), 5)
	b = append(b, ' ', ' ')
	b = append(b, e.Certainty.String()...)
	if e.Kind == machine.EventAcked && e.By != 0 {
		b = appendBlanks(b, 8-len(e.Certainty.String()))
		b = append(b, " by frame "...)
		b = strconv.AppendUint(b, e.By.Frame(), 10)
		b = append(b, " bit "...)
		b = strconv.AppendUint(b, uint64(e.Bit), 10)
	}
	if note := show.EventNote(f, e); note != "" {
		b = append(append(b, "  "...), note...)
	}
	p.line = show.Fit(append(b, '\n'), p.width)
}
