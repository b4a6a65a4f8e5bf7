package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

func (a *app) messagesCommand() *cobra.Command {
	text := ""
	c := &cobra.Command{
		Use:   "messages [FILE...]",
		Short: "The life of every message: sent, resent, acked, delivered, held back by which other",
		Long: `messages tells what became of each message that the packets carry: which packets carried
it, when its sender learned that it arrived, when the receiver handed it to the game, and how
long it lay there because an earlier one was missing. Values are shown where a schema reads
them (--profiles); netcode's messages need its keys (--keys).

A message is told once nothing more can happen to it, so the order is that of their ends.`,
		Example: `  ackscope messages --profiles mygame.yaml match.pcapng
  ackscope messages --json match.pcapng | jq 'select(.wait_ms > 100)'
  ackscope messages --keys keys.yaml --profiles mygame.yaml yojimbo.pcapng`,
		RunE: func(_ *cobra.Command, args []string) error { return a.messages(args, text) },
	}
	a.filterFlag(c, &text)
	return c
}

func (a *app) messages(args []string, text string) error {
	only, err := a.compile(text)
	if err != nil {
		return err
	}
	p := &messagePrinter{app: a, names: a.paths(args), filter: only}
	_, in, err := a.study(args, p.record)
	if in != nil {
		defer in.Close()
	}
	if p.err != nil {
		return p.err
	}
	return a.ended(err)
}

// messagePrinter prints the messages of records.
type messagePrinter struct {
	app   *app
	names []string
	// filter is asked about each message and its flow.
	filter *filter.Filter
	err    error
	o      object
	line   []byte
}

func (p *messagePrinter) record(r *analyze.Record) {
	for i := range r.Messages {
		if p.err != nil {
			return
		}
		m := &r.Messages[i]
		if p.filter.String() != "" && !p.filter.Match(filter.MessageRecord(r.Flow, m, p.names[m.Frames[0].File()])) {
			continue
		}
		var name string
		var values dissect.Values
		if say := r.Flow.Protocol.Message; say != nil {
			name, values = say(r.Flow.Config(), m)
		}
		if m.Name != "" {
			name = m.Name
		}
		if !p.app.flags.json {
			p.print(r.Flow, m, name, values)
			_, p.err = p.app.writer().Write(p.line)
			continue
		}
		p.o.begin()
		messageObject(&p.o, r.Flow, m, name, values)
		if len(p.names) > 1 {
			p.o.str("file", p.names[m.Frames[0].File()])
		}
		p.err = p.o.end(p.app.writer())
	}
}

// messageObject writes the contract's keys of a message.
func messageObject(o *object, f *analyze.Flow, m *machine.Message, name string, values dissect.Values) {
	o.uint("frame", m.Frames[0].Frame())
	o.time("time", m.At)
	o.uint("flow", uint64(f.ID))
	o.str("protocol", f.Protocol.Name)
	o.str("dialect", f.Config().Dialect)
	o.str("side", m.From.String())
	o.addr("from", f.Addr(m.From))
	o.addr("to", f.Addr(m.From.Other()))
	o.str("mode", m.Mode.String())
	if m.Channel >= 0 {
		o.int("channel", int64(m.Channel))
	}
	if m.ID >= 0 {
		o.uint("message_id", uint64(m.ID)&(1<<m.IDBits-1))
		o.int("message_id64", m.ID)
	} else {
		o.null("message_id")
	}
	o.uint("type", uint64(m.Type))
	o.word("name", name)
	o.uint("sequence", uint64(m.Sequence))
	o.int("sequence64", m.Sequence64)
	if m.Bits >= 0 {
		o.int("bits", int64(m.Bits))
	}
	if m.Block > 0 {
		o.int("block_bytes", int64(m.Block))
	}
	o.int("attempts", int64(m.Attempts))
	o.key("frames")
	o.buf = append(o.buf, '[')
	for i := range min(m.Attempts, machine.MessageFrames) {
		if i > 0 {
			o.buf = append(o.buf, ',')
		}
		o.buf = strconv.AppendUint(o.buf, m.Frames[i].Frame(), 10)
	}
	o.buf = append(o.buf, ']')
	answer(o, "acked", m.Acked)
	if m.Named {
		o.bool("named", true)
	}
	if m.AckedBy != 0 {
		o.uint("acked_frame", m.AckedBy.Frame())
		o.float("acked_ms", ms(m.AckedAt.Sub(m.At)), 6)
	}
	o.str("delivered", m.Delivered.String())
	if m.Delivered == machine.Yes {
		o.uint("delivered_frame", m.DeliveredBy.Frame())
		o.time("delivered_time", m.DeliveredAt)
		o.int("deliveries", int64(m.Deliveries))
		o.float("wait_ms", ms(m.Wait), 6)
	}
	if m.BlockedBy >= 0 {
		o.int("blocked_by", m.BlockedBy)
	} else {
		o.null("blocked_by")
	}
	if values != nil {
		if list, err := values.MarshalList(); err == nil {
			o.key("values")
			o.buf = append(o.buf, list...)
		}
		if object, err := values.MarshalJSON(); err == nil {
			o.key("fields")
			o.buf = append(o.buf, object...)
		}
	}
	o.str("certainty", m.Certainty.String())
}

// answer writes true, false, or null where the capture does not say.
func answer(o *object, key string, a machine.Answer) {
	switch a {
	case machine.Yes:
		o.bool(key, true)
	case machine.No:
		o.bool(key, false)
	default:
		o.null(key)
	}
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// print writes a message for eyes.
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
		name = fmt.Sprintf("type %d", m.Type)
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
		b = fmt.Appendf(b, "  delivered after %.1f ms", ms(m.DeliveredAt.Sub(m.At)))
		if m.Wait > 0 {
			b = fmt.Appendf(b, ", held %.1f ms by id %d", ms(m.Wait), m.BlockedBy)
		}
	case machine.No:
		b = append(b, "  not delivered"...)
	default:
		b = append(b, "  delivered: unknown"...)
	}
	b = fmt.Appendf(b, " (%s)", m.Certainty)
	if values != nil {
		if object, err := values.MarshalJSON(); err == nil {
			b = append(b, "  "...)
			b = show.AppendClean(b, object)
		}
	}
	p.line = append(b, '\n')
}
