package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

func (a *app) eventsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "events [FILE...]",
		Short: "What happened to every packet: sent, received, acked, duplicate, stale, lost",
		Long: `events tells every fact that the capture proves about either endpoint, each with its
certainty: a fact is told once its grade is settled, with the frame that shows it.`,
		Example: `  ackscope events match.pcapng
  ackscope events --json match.pcapng | jq 'select(.event == "acked")'`,
		RunE: func(_ *cobra.Command, args []string) error { return a.events(args) },
	}
}

func (a *app) events(args []string) error {
	w := a.writer()
	var failed error
	var o object
	var line []byte
	several := len(a.flags.read)+len(args) > 1
	names := append(append([]string(nil), a.flags.read...), args...)
	sink := func(r *analyze.Record) {
		for i := range r.Events {
			if failed != nil {
				return
			}
			e := &r.Events[i]
			if a.flags.json {
				o.begin()
				a.eventObject(&o, r.Flow, e)
				if several {
					o.str("file", names[e.Ref.File()])
				}
				failed = o.end(w)
				continue
			}
			line = appendEvent(line[:0], r.Flow, e)
			_, failed = w.Write(line)
		}
	}
	_, in, err := a.study(args, sink)
	if in != nil {
		defer in.Close()
	}
	if failed != nil {
		return failed
	}
	return a.ended(err)
}

// eventObject writes the contract's keys of an event.
func (a *app) eventObject(o *object, f *analyze.Flow, e *machine.Event) {
	o.uint("frame", e.Ref.Frame())
	o.time("time", e.At)
	o.uint("flow", uint64(f.ID))
	o.str("protocol", f.Protocol.Name)
	o.str("dialect", f.Config().Dialect)
	o.str("side", e.Side.String())
	o.addr("addr", f.Addr(e.Side))
	o.addr("peer", f.Addr(e.Side.Other()))
	o.str("event", eventName(f, e.Kind))
	o.uint("sequence", uint64(e.Sequence))
	o.int("sequence64", e.Sequence64)
	o.str("certainty", e.Certainty.String())
	if e.About != 0 {
		o.uint("about_frame", e.About.Frame())
	}
	if e.Kind == machine.EventAcked {
		if e.By != 0 {
			o.uint("by_frame", e.By.Frame())
		}
		o.uint("bit", uint64(e.Bit))
		if e.RTT >= 0 {
			o.float("rtt_ms", float64(e.RTT)/1e6, 6)
		}
	}
}

func eventName(f *analyze.Flow, k machine.EventKind) string {
	if name, ok := f.Protocol.EventNames[k]; ok {
		return name
	}
	return k.String()
}

// appendEvent writes an event for eyes.
func appendEvent(b []byte, f *analyze.Flow, e *machine.Event) []byte {
	b = fmt.Appendf(b, "%7d  ", e.Ref.Frame())
	b = e.At.Time().AppendFormat(b, "15:04:05.000000")
	b = fmt.Appendf(b, "  flow %-3d %s %-21s  %-10s %5d  %-8s", f.ID, e.Side, f.Addr(e.Side), eventName(f, e.Kind), e.Sequence, e.Certainty)
	if e.Kind == machine.EventAcked && e.By != 0 {
		b = append(b, "  by frame "...)
		b = strconv.AppendUint(b, e.By.Frame(), 10)
		b = append(b, " bit "...)
		b = strconv.AppendUint(b, uint64(e.Bit), 10)
	}
	return append(b, '\n')
}
