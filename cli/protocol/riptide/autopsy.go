package riptide

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/machine"
	state "github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/show"
	wire "github.com/ackscope/ackscope/wire/riptide"
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

// remains is what an autopsy keeps of a flow.
type remains struct {
	flow    *analyze.Flow
	last    [2]lastWord
	acked   [2]machine.Event   // the last that the side learned to have arrived
	endings []machine.Event    // goodbyes and refusals, in order
	unacked []machine.Message  // reliable ones that were never acked, newest first sent last
	joined  [2]machine.Instant // when the side's Welcome passed
	beat    [2]lastWord        // its last heartbeat, or answer to one
	over    [2]machine.Event   // what its library made of the end; no Ref for nothing
}

type lastWord struct {
	at   machine.Instant
	ref  machine.Ref
	text string
}

func autopsy(a *app.App, args []string) error {
	paint, err := a.Painter()
	if err != nil {
		return err
	}
	return reader.Each(a, args, func(r *reader.Recording) error { return autopsyOf(a, r, paint) })
}

// autopsyOf tells how the connections of a recording ended.
func autopsyOf(a *app.App, from *reader.Recording, paint show.Painter) error {
	var m mortuary
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

// newEndings tells how the connections of Riptide ended.
func newEndings() app.Endings { return &mortuary{} }

// mortuary keeps the remains of all flows that an autopsy can tell of.
type mortuary struct {
	byFlow map[*analyze.Flow]*remains
	order  []*remains
	dead   int // of order: those whose flows were let go
}

// Forget lets go of a flow's remains.
func (m *mortuary) Forget(f *analyze.Flow, _ analyze.Reason) {
	x := m.byFlow[f]
	if x == nil {
		return
	}
	delete(m.byFlow, f)
	*x = remains{}
	if m.dead++; m.dead > 1024 && m.dead > len(m.order)/2 {
		m.compact()
	}
}

// compact takes what was forgotten out of the list.
func (m *mortuary) compact() {
	m.order = slices.DeleteFunc(m.order, func(x *remains) bool { return x.flow == nil })
	m.dead = 0
}

// ended gives what is left of the connections that had ended when the capture did,
// and in a word how they had.
func (m *mortuary) ended(end machine.Instant) iter.Seq2[*remains, string] {
	return func(yield func(*remains, string) bool) {
		m.compact()
		for _, x := range m.order {
			if how := x.how(end); how != "" && !yield(x, how) {
				return
			}
		}
	}
}

// Ended tells of each connection that had ended when the capture did.
func (m *mortuary) Ended(end machine.Instant) (list []app.Ending) {
	for x, how := range m.ended(end) {
		list = append(list, app.Ending{
			Flow: x.flow, Silent: how == "silence", Story: x.story(how),
			Page: func(paint show.Painter) []byte { return x.text(paint, how) },
		})
	}
	return list
}

// Take keeps what a record tells of its flow.
func (m *mortuary) Take(r *analyze.Record) {
	f := r.Flow
	if f == nil || f.Protocol == nil || f.Protocol.Name != riptide.Protocol.Name {
		return
	}
	x := m.byFlow[f]
	if x == nil {
		if m.byFlow == nil {
			m.byFlow = map[*analyze.Flow]*remains{}
		}
		x = &remains{flow: f}
		m.byFlow[f] = x
		m.order = append(m.order, x)
	}
	x.take(r)
}

func (x *remains) take(r *analyze.Record) {
	if d := &r.Datagram; d.Length > 0 && d.At >= x.last[d.From].at {
		w := &x.last[d.From]
		w.at, w.ref = d.At, d.Ref
		w.text = string(r.Flow.Protocol.Info(dissect.Context{Config: r.Flow.Config(), From: d.From}, d, nil))
		var m wire.Message
		if set, ok := r.Flow.Config().Profile.(*riptide.Settings); ok && set.Senders[d.From].Codec.Fits(d.Bytes, d.Length, &m) && m.Type == wire.Heartbeat {
			x.beat[d.From] = *w
		}
	}
	for i := range r.Events {
		switch e := &r.Events[i]; e.Kind {
		case machine.EventAcked:
			x.acked[e.Side] = *e
		case state.EventWelcomed:
			x.joined[e.Side] = e.At
		case state.EventGoodbye, state.EventRejected:
			x.endings = append(x.endings, *e)
		case state.EventDisconnected:
			x.over[e.Side] = *e
		}
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		limit := x.behaviour(m.From).Limit
		spent := m.Acked == machine.No && limit > 0 && m.Attempts >= limit
		if (m.Mode == machine.ModeReliable || m.Mode == machine.ModeInternal) && m.Acked != machine.Yes && (!m.Named || spent) {
			kept := *m
			kept.Body, kept.Data = nil, nil
			x.unacked = append(x.unacked, kept)
		}
	}
}

// how tells in a word how the connection ended; empty where it had not when the
// capture did.
func (x *remains) how(end machine.Instant) string {
	for i := range x.endings {
		if x.endings[i].Kind == state.EventGoodbye {
			return "goodbye"
		}
	}
	if len(x.endings) > 0 {
		return "rejected"
	}
	first := min(x.last[machine.A].at, x.last[machine.B].at)
	switch {
	case x.joined == [2]machine.Instant{}:
		if x.last[machine.B].at == 0 {
			return "unanswered"
		}
		return ""
	case end.Sub(first) > state.Silence:
		return "silence"
	}
	if _, reached := x.limit(); reached {
		return "silence"
	}
	return ""
}

// limit gives the side that reached a limit at which the library ends the
// connection, and never spoke long after.
func (x *remains) limit() (machine.Side, bool) {
	for _, found := range x.flow.Findings() {
		switch found.Rule.ID {
		case "riptide-attempts-exhausted", "riptide-quality-limit":
			return found.Side, true
		}
	}
	return machine.A, false
}

// quiet gives the side that spoke last the longer ago.
func (x *remains) quiet() machine.Side {
	if x.last[machine.A].at <= x.last[machine.B].at {
		return machine.A
	}
	return machine.B
}

// story tells how it ended, in sentences.
func (x *remains) story(how string) []string {
	f := x.flow
	name := func(s machine.Side) string { return fmt.Sprintf("%s (%v)", strings.ToUpper(s.String()), f.Addr(s)) }
	switch how {
	case "goodbye":
		e := &x.endings[len(x.endings)-1]
		for i := range x.endings {
			if x.endings[i].Kind == state.EventGoodbye {
				e = &x.endings[i]
				break
			}
		}
		reason := riptide.EndReason(f.Config(), e)
		if e.Sequence == wire.UnpackedStop {
			reason += "; its clients report reason 80"
		}
		return []string{
			fmt.Sprintf("%s ended it in frame %d and said so: %s.", name(e.Side), e.Ref.Frame(), reason),
			"A goodbye is sent once and not acked: had it been lost, the other side would have known only by its timeout.",
		}
	case "rejected":
		e := &x.endings[0]
		return []string{fmt.Sprintf("%s refused the client in frame %d: %s.", name(e.Side), e.Ref.Frame(), riptide.EndReason(f.Config(), e))}
	case "unanswered":
		return []string{fmt.Sprintf("%s asked and never had an answer.", name(machine.A))}
	}
	var out []string
	gaveUp := false
	for _, side := range []machine.Side{machine.A, machine.B} {
		e := &x.over[side]
		if e.Ref == 0 {
			continue
		}
		gaveUp = true
		reason := riptide.EndReason(f.Config(), e)
		if e.Sequence == state.ReasonTimedOut {
			out = append(out, fmt.Sprintf("%s gave up (%s, %s): nothing that keeps a connection alive had reached it for 5 s%s.", name(side), reason, e.Certainty, x.heard(side)))
			continue
		}
		out = append(out, fmt.Sprintf("%s ended it (%s, %s) and said so to nobody: %s.", name(side), reason, e.Certainty, x.because(side)))
	}
	quiet := x.quiet()
	if !gaveUp {
		gap := x.last[quiet.Other()].at.Sub(x.last[quiet].at)
		out = append(out, fmt.Sprintf("%s fell silent first, without a goodbye; %s went on for %v.", name(quiet), name(quiet.Other()), gap.Round(time.Millisecond)))
		if limited, limits := x.limit(); limits {
			out = append(out, fmt.Sprintf("%s had reached a limit of the library's quality rules: with default settings the library then ends the connection (PoorConnection) and says nothing.", name(limited)))
		} else if x.found("riptide-pytide-ack-error", quiet) != nil {
			out = append(out, "No limit was reached that the capture shows. It is Pytide, and an Ack made it throw: its update thread ends with that, and nothing is sent any more.")
		} else {
			out = append(out, "No limit was reached that the capture shows: it was killed, or lost its network.")
		}
	}
	for _, side := range []machine.Side{machine.A, machine.B} {
		switch other := &x.over[side.Other()]; {
		case x.over[side].Ref != 0:
		case other.Ref != 0 && other.Sequence == state.ReasonTimedOut:
			out = append(out, fmt.Sprintf("%s had fallen silent before: it was killed, lost its network, or had ended the connection itself without a word.", name(side)))
		case !gaveUp && side == quiet:
		case x.behaviour(side).NoTimeout:
			out = append(out, fmt.Sprintf("%s is Pytide, whose timeout never strikes: it goes on as if nothing had happened.", name(side)))
		default:
			out = append(out, fmt.Sprintf("%s can have known only by its own timeout, 5 to 6 s after the last heartbeat that reached it%s.", name(side), x.heard(side)))
		}
	}
	return out
}

// heard tells which heartbeat was the last to reach a side, as far as the tap knows.
func (x *remains) heard(side machine.Side) string {
	if b := &x.beat[side.Other()]; b.at != 0 {
		return fmt.Sprintf(" (frame %d, %s)", b.ref.Frame(), b.at.Time().Format("15:04:05.000"))
	}
	return ""
}

// because gives the words of the finding that explains why a side ended the
// connection by itself.
func (x *remains) because(side machine.Side) string {
	why := "a limit of its quality rules was reached"
	if found := x.found("riptide-poor-connection", side); found != nil {
		why = found.Message()
	}
	if x.found("riptide-merged-sequences", side) != nil {
		why += " of the id that it waited for; on the wire messages stood under ids of other connections, ORed into theirs (the fault of 2.1.0)"
	}
	return why
}

// found gives the surest finding of a rule about a side; nil for none.
func (x *remains) found(rule string, side machine.Side) *analyze.Finding {
	for _, f := range x.flow.Findings() {
		if f.Rule.ID == rule && f.Side == side {
			return f
		}
	}
	return nil
}

// behaviour is how a side's library behaves.
func (x *remains) behaviour(side machine.Side) *state.Behaviour {
	return riptide.BehaviourOf(x.flow.Config(), side)
}

func (x *remains) page(a *app.App, paint show.Painter, how string, further bool) error {
	if further {
		if _, err := a.Writer().WriteString("\n"); err != nil {
			return err
		}
	}
	_, err := a.Writer().Write(x.text(paint, how))
	return err
}

// text is the page.
func (x *remains) text(paint show.Painter, how string) (b []byte) {
	f := x.flow
	b = paint.Text(b, show.Bold, fmt.Sprintf("flow %d  %s/%s  %v ↔ %v: %s", f.ID, f.Protocol.Name, f.Config().Dialect, f.A, f.B, how))
	b = append(b, '\n')
	for _, sentence := range x.story(how) {
		b = fmt.Appendf(b, "  %s\n", sentence)
	}
	b = append(b, '\n')
	for _, side := range []machine.Side{machine.A, machine.B} {
		if last := x.last[side]; last.at != 0 {
			b = fmt.Appendf(b, "  %v  last word      %s  frame %d  %s\n", side, last.at.Time().Format("15:04:05.000"), last.ref.Frame(), last.text)
		}
		if w := x.beat[side]; w.at != 0 {
			b = fmt.Appendf(b, "     last heartbeat %s  frame %d\n", w.at.Time().Format("15:04:05.000"), w.ref.Frame())
		}
		if e := x.acked[side]; e.Ref != 0 {
			b = fmt.Appendf(b, "     last arrival   %s  frame %d  the ack of its message %d (%s)\n", e.At.Time().Format("15:04:05.000"), e.Ref.Frame(), e.Sequence, e.Certainty)
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
			b = fmt.Appendf(b, "    %v  seq %-5d  %s from %s on, delivered: %s%s\n", m.From, m.Sequence, show.Plural(m.Attempts, "send"), m.At.Time().Format("15:04:05.000"), m.Delivered, named)
		}
	}
	if found := f.Findings(); len(found) > 0 {
		b = fmt.Appendf(b, "\n  findings:\n")
		for i, one := range found {
			if i > 0 && one.Rule == found[i-1].Rule && one.Side == found[i-1].Side {
				continue // the same, and less sure
			}
			b = fmt.Appendf(b, "    %-5s %v  %s (%v)\n", strings.ToUpper(one.Rule.Severity.String()), one.Side, one.Rule.Summary, one.Certainty)
		}
	}
	return b
}

func (x *remains) object(a *app.App, from *reader.Recording, how string) error {
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
