package riptide

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

func autopsyCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "autopsy [FILE...]",
		Short: "How each connection ended: what was exchanged last, what was unacked, who gave up",
		Long: `autopsy gives a page to each Riptide connection that ended: the last exchange that went well
each way, what waited for an ack and how often it had been sent, which limits were reached,
who fell silent or said goodbye first, and what the other side can have known of it.`,
		Example: `  ackscope autopsy match.pcapng
  ackscope autopsy --json match.pcapng | jq 'select(.ended == "silence")'`,
		RunE: func(_ *cobra.Command, args []string) error { return autopsy(a, args) },
	}
	reader.JoinFlag(a, c)
	return c
}

// autopsyRows bounds the unacked messages that a page lists.
const autopsyRows = 12

func autopsy(a *app.App, args []string) error {
	paint, err := a.Painter()
	if err != nil {
		return err
	}
	return reader.Each(a, args, func(r *reader.Recording) error { return autopsyOf(a, r, paint) })
}

// autopsyOf writes how the connections of a recording ended.
func autopsyOf(a *app.App, from *reader.Recording, paint show.Painter) error {
	var m flowEnds
	a.Memory.Gone = m.Forget
	s, in, err := reader.Study(a, from, m.Take)
	if in != nil {
		defer in.Close()
	}
	if s == nil {
		return err
	}
	if !a.Flags.JSON {
		if err := reader.Heading(a, from); err != nil {
			return err
		}
	}
	_, end := s.Span()
	told := 0
	for x, how := range m.ended(end) {
		told++
		if a.Flags.JSON {
			if err := x.object(a, from, how); err != nil {
				return err
			}
			continue
		}
		if err := x.page(a, paint, how, told > 1); err != nil {
			return err
		}
	}
	if told == 0 && !a.Flags.JSON {
		fmt.Fprintln(a.Writer(), "no connection ended in this capture")
	}
	return a.Ended(err)
}

func (x *flowEnd) page(a *app.App, paint show.Painter, how string, further bool) error {
	if further {
		if _, err := a.Writer().WriteString("\n"); err != nil {
			return err
		}
	}
	_, err := a.Writer().Write(x.text(paint, how))
	return err
}

// text returns the page.
func (x *flowEnd) text(paint show.Painter, how string) (b []byte) {
	f := x.flow
	b = paint.Text(b, show.Bold, fmt.Sprintf("flow %d  %s/%s  %v ↔ %v: %s", f.ID, f.Protocol.Name, f.Config().Dialect,
		f.A, f.B, how))
	b = append(b, '\n')
	for _, sentence := range x.story(how) {
		b = fmt.Appendf(b, "  %s\n", sentence)
	}
	b = append(b, '\n')
	for _, side := range []machine.Side{machine.A, machine.B} {
		if last := x.last[side]; last.at != 0 {
			b = fmt.Appendf(b, "  %v  last word      %s  frame %d  %s\n", side, last.at.Time().Format("15:04:05.000"),
				last.ref.Frame(), last.text)
		}
		if w := x.beat[side]; w.at != 0 {
			b = fmt.Appendf(b, "     last heartbeat %s  frame %d\n", w.at.Time().Format("15:04:05.000"), w.ref.Frame())
		}
		if e := x.acked[side]; e.Ref != 0 {
			b = fmt.Appendf(b, "     last arrival   %s  frame %d  the ack of its message %d (%s)\n",
				e.At.Time().Format("15:04:05.000"), e.Ref.Frame(), e.Sequence, e.Certainty)
		}
	}
	if len(x.unacked) > 0 {
		b = fmt.Appendf(b, "\n  never acked:\n")
		for i := range x.unacked {
			if i == autopsyRows {
				b = fmt.Appendf(b, "    and %d more\n", len(x.unacked)-i)
				break
			}
			m := &x.unacked[i]
			named := ""
			if m.Named {
				named = ", though Acks name its id"
			}
			b = fmt.Appendf(b, "    %v  seq %-5d  %s from %s on, delivered: %s%s\n", m.From, m.Sequence,
				show.Plural(m.Attempts, "send"), m.At.Time().Format("15:04:05.000"), m.Delivered, named)
		}
	}
	if found := f.Findings(); len(found) > 0 {
		b = fmt.Appendf(b, "\n  findings:\n")
		for i, one := range found {
			if i > 0 && one.Rule == found[i-1].Rule && one.Side == found[i-1].Side {
				continue // the same, and less sure
			}
			b = fmt.Appendf(b, "    %-5s %v  %s (%v)\n", strings.ToUpper(one.Rule.Severity.String()), one.Side, one.Rule.Summary,
				one.Certainty)
		}
	}
	return b
}

func (x *flowEnd) object(a *app.App, from *reader.Recording, how string) error {
	f := x.flow
	var o app.Object
	o.Begin()
	o.File(from.File(f.FirstRef))
	o.Uint("flow", uint64(f.ID))
	o.Str("protocol", f.Protocol.Name)
	o.Str("dialect", f.Config().Dialect)
	o.Addr("a", f.A)
	o.Addr("b", f.B)
	o.Str("ended", how)
	o.Str("story", strings.Join(x.story(how), " "))
	for _, side := range []machine.Side{machine.A, machine.B} {
		suffix := "_" + side.String()
		if last := x.last[side]; last.at != 0 {
			o.Time("last"+suffix, last.at)
			o.Uint("last_frame"+suffix, last.ref.Frame())
		}
		if w := x.beat[side]; w.at != 0 {
			o.Uint("last_heartbeat_frame"+suffix, w.ref.Frame())
		}
		if e := &x.over[side]; e.Ref != 0 {
			o.Uint("reason"+suffix, uint64(e.Sequence))
			o.Str("reason_name"+suffix, riptide.EndReason(f.Config(), e))
			o.Str("reason_certainty"+suffix, e.Certainty.String())
		}
		if e := x.acked[side]; e.Ref != 0 {
			o.Uint("last_acked_frame"+suffix, e.Ref.Frame())
			o.Uint("last_acked_sequence"+suffix, uint64(e.Sequence))
		}
		unacked := 0
		for i := range x.unacked {
			if x.unacked[i].From == side {
				unacked++
			}
		}
		o.Int("unacked"+suffix, int64(unacked))
	}
	return o.End(a.Writer())
}
