package riptide

import (
	"fmt"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// autopsyRows bounds the unacked messages that a page lists.
const autopsyRows = 12

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
				last.ref.Frame(), x.lastText(side))
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
	return app.AppendFindings(b, f)
}

// object adds what an autopsy says of Riptide.
func (x *flowEnd) object(o *app.Object) {
	f := x.flow
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
}
