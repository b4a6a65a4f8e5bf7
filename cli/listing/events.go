package listing

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// EventsCommand builds `ackscope events`.
func EventsCommand(a *app.App) *cobra.Command {
	live, watch, text := &reader.LiveFlags{}, &reader.WatchFlags{}, ""
	c := &cobra.Command{
		Use:   "events [FILE...]",
		Short: "What happened to every packet: sent, received, acked, duplicate, stale, lost",
		Long: `events lists every fact that the capture shows about either side, with the frame that shows
it. Each fact has a certainty. It is printed once that certainty is settled.

A filter (-Y) of an event can use rel.*, flow.*, finding.* and the cause of resends. It can also
use what the frame contains: headers, addresses, fields. message.* belongs to "ackscope messages".
Live, a filter cannot use frames and findings.

With -i, or --live, events are printed as they happen. Those that later packets can change are
marked as provisional. (A file is read twice, so its events are settled.) A terminal shows the
newest.`,
		Example: `  ackscope events match.pcapng
  ackscope events -Y 'rel.lost && flow.rtt > 80ms' match.pcapng
  ackscope events -Y 'rel.resend.cause == "ack_late" && frame.len > 200' match.pcapng
  ackscope events --json match.pcapng | jq 'select(.event == "acked")'
  ackscope events -i eth0 -f 'udp port 7777' -Y rel.lost`,
		RunE: func(_ *cobra.Command, args []string) error { return events(a, live, watch, text, args) },
	}
	reader.RegisterWatched(a, c, live, watch, &text)
	return c
}

func events(a *app.App, live *reader.LiveFlags, watch *reader.WatchFlags, text string, args []string) error {
	if live.List {
		return reader.ListInterfaces(a)
	}
	paint, err := a.Painter()
	if err != nil {
		return err
	}
	p := &EventPrinter{App: a, eventText: newEventText(paint), width: a.Width()}
	var to export.Encoder
	if a.Flags.JSON {
		to = a.Lines(&export.Events.Schema)
	}
	if live.Streams(watch) {
		// Live traffic keeps no frames, and findings come later: filters cannot
		// name them.
		if err := p.begin(text, to, reader.OfEvents&reader.OfLive&^filter.OfFinding); err != nil {
			return err
		}
		return live.Each(a, watch, args, func(r *reader.Recording) error { return p.watch(live, watch, r) })
	}
	if err := live.FileOnly(); err != nil {
		return err
	}
	return ExportEvents(a, p, text, args, to)
}

// begin sets what is printed, and where.
func (p *EventPrinter) begin(text string, to export.Encoder, within filter.Scope) (err error) {
	if to != nil {
		p.rows = export.NewRows(export.Events, to)
	}
	p.filter, err = reader.NewRowFilter(p.App, text, "events", within)
	return err
}

// ExportEvents passes events to an encoder, or prints them as text if there is
// none.
func ExportEvents(a *app.App, p *EventPrinter, text string, args []string, to export.Encoder) (err error) {
	if err := p.begin(text, to, reader.OfEvents); err != nil {
		return err
	}
	p.empty = reader.Empty{Of: "event", Filtered: !p.filter.All()}
	err = reader.Each(a, args, func(r *reader.Recording) error {
		if err := p.heading(r); err != nil {
			return err
		}
		s, in, err := p.filter.Study(r, true, p.record)
		p.empty.Add(s)
		if in != nil {
			defer in.Close()
		}
		if err := errors.Join(p.err, p.filter.Err); err != nil {
			return err
		}
		return a.Ended(err)
	})
	if err == nil || reader.Unread(err) != nil {
		p.empty.Say(a)
	}
	return err
}

// heading prints the recording's name above text, if there are several
// recordings.
func (p *EventPrinter) heading(r *reader.Recording) error {
	if p.rows != nil {
		return nil
	}
	return reader.Heading(p.App, r)
}

// watch prints events while they happen.
func (p *EventPrinter) watch(live *reader.LiveFlags, watch *reader.WatchFlags, from *reader.Recording) error {
	if err := p.heading(from); err != nil {
		return err
	}
	p.filter.Begin(from)
	p.newest, p.total = nil, 0
	o, err := p.App.Options()
	if err != nil {
		return err
	}
	r, err := live.Begin(p.App, watch, from)
	if err != nil {
		return err
	}
	p.running, o.Sink = r, p.record
	if r.Screen = p.App.NewScreen(); r.Screen != nil {
		r.Tick = func() { p.draw(r) }
	}
	_, err = r.Run(o)
	for _, line := range p.newest { // leave the last table on screen
		_, writeErr := p.App.Writer().Write(line)
		err = errors.Join(err, writeErr)
	}
	return p.App.Ended(errors.Join(p.err, err, r.End()))
}

// newestKept is how many events are kept for a table on a terminal.
const newestKept = 500

// keep keeps an event for the table.
func (p *EventPrinter) keep(line []byte) {
	p.total++
	if len(p.newest) == newestKept {
		copy(p.newest, p.newest[1:])
		p.newest = p.newest[:newestKept-1]
	}
	p.newest = append(p.newest, bytes.Clone(line))
}

// draw shows as many of the newest events as fit.
func (p *EventPrinter) draw(r *reader.Running) {
	width, height := r.Screen.Size()
	p.width = width
	first, last := r.Session.Span()
	text := show.Fit(fmt.Appendf(nil, "%s · %s · %s · %s\n\n", strings.Join(p.filter.From.Paths, ", "),
		show.Plural(r.Session.Packets(), "packet"), show.SpanText(last.Sub(first)), show.Plural(p.total, "event")), width)
	from := max(0, len(p.newest)-max(1, height-4))
	for _, line := range p.newest[from:] {
		text = append(text, show.Fit(bytes.Clone(line), width)...)
	}
	r.Screen.Draw(text)
	p.newest = p.newest[from:]
}

// EventPrinter prints the events of records.
type EventPrinter struct {
	App    *app.App
	filter *reader.RowFilter
	empty  reader.Empty
	err    error
	rows   *export.Rows[export.EventRow] // nil for text
	row    export.EventRow
	line   []byte

	eventText

	running *reader.Running // live traffic; nil for files
	newest  [][]byte        // for a table on the terminal
	total   uint64
	width   int // columns of the terminal; 0 if it is none
}

// record prints the events of a record.
func (p *EventPrinter) record(r *analyze.Record) {
	all := p.filter.All()
	for i := range r.Events {
		if p.err != nil {
			return
		}
		e := &r.Events[i]
		p.empty.Seen++
		if !all && !p.filter.Event(r, i) {
			continue
		}
		p.empty.Shown++
		if p.rows != nil {
			p.row = export.EventRow{Flow: r.Flow, Event: e, File: p.filter.From.File(e.Ref), Provisional: p.running != nil &&
				e.Certainty != machine.Certain}
			if p.err = p.rows.Add(&p.row); p.err != nil && p.running != nil {
				p.running.Err = p.err
			}
			continue
		}
		p.line = p.append(p.line[:0], p.filter.From, r.Flow, e)
		if p.running != nil && e.Certainty != machine.Certain {
			p.line = append(p.line, "  provisional"...)
		}
		p.line = show.Fit(append(p.line, '\n'), p.width)
		if p.running != nil && p.running.Screen != nil {
			p.keep(p.line)
			continue
		}
		_, p.err = p.App.Writer().Write(p.line)
	}
}
