package filter

import (
	"slices"
	"strings"

	"github.com/ackscope/ackscope/machine"
)

func messages(r *Record) []machine.Message { return r.Messages }

// messageFields are about the messages whose lives ended at a packet, or of the
// one that `messages` lists.
func messageFields() []*Field {
	const needs = NeedFlow | NeedMessages
	uints := func(name, doc string, value func(*machine.Message) (uint64, bool)) *Field {
		return &Field{Name: name, Kind: Uint, Doc: doc, needs: needs, values: values{u: each(messages, func(_ *Record, m *machine.Message) (uint64, bool) { return value(m) })}}
	}
	texts := func(name, doc string, words []string, value func(*machine.Message) string) *Field {
		return &Field{Name: name, Kind: Text, Doc: doc, Words: words, needs: needs, values: worded(each(messages, func(_ *Record, m *machine.Message) (string, bool) {
			s := value(m)
			return s, s != ""
		}))}
	}
	times := func(name, doc string, value func(*machine.Message) (int64, bool)) *Field {
		return &Field{Name: name, Kind: Duration, Unit: "s", Doc: doc, needs: needs, values: values{i: each(messages, func(_ *Record, m *machine.Message) (int64, bool) { return value(m) })}}
	}
	return []*Field{
		{Name: "message", Doc: "The life of a message ended at this packet: nothing more can happen to it.", needs: needs, present: func(r *Record) bool { return len(r.Messages) > 0 }},
		uints("message.id", "The message's own number, unwrapped.", func(m *machine.Message) (uint64, bool) { return uint64(m.ID), m.ID >= 0 }),
		uints("message.type", "Number of its type.", func(m *machine.Message) (uint64, bool) { return uint64(m.Type), true }),
		uints("message.channel", "Channel that carried it.", func(m *machine.Message) (uint64, bool) { return uint64(m.Channel), m.Channel >= 0 }),
		uints("message.sends", "How many packets carried it.", func(m *machine.Message) (uint64, bool) { return uint64(m.Attempts), true }),
		uints("message.deliveries", "How often the receiving application was handed it.", func(m *machine.Message) (uint64, bool) { return uint64(m.Deliveries), m.Delivered == machine.Yes }),
		texts("message.name", "Name of its type, where a schema names it.", nil, func(m *machine.Message) string { return m.Name }),
		texts("message.mode", "What it was promised.", wordsOf(machine.ModeInternal, machine.Mode.String), func(m *machine.Message) string { return m.Mode.String() }),
		texts("message.side", "The side that sent it.", sideWords, func(m *machine.Message) string { return m.From.String() }),
		texts("message.acked", "Whether its sender learned that it arrived.", wordsOf(machine.Yes, machine.Answer.String), func(m *machine.Message) string { return m.Acked.String() }),
		texts("message.delivered", "Whether the receiving application was handed it.", wordsOf(machine.Yes, machine.Answer.String), func(m *machine.Message) string { return m.Delivered.String() }),
		times("message.hol", "How long it lay complete because an earlier message was missing: head-of-line blocking.", func(m *machine.Message) (int64, bool) {
			return int64(m.Wait), m.Delivered == machine.Yes
		}),
		times("message.latency", "From its first packet to its delivery.", func(m *machine.Message) (int64, bool) {
			return int64(m.DeliveredAt.Sub(m.At)), m.Delivered == machine.Yes
		}),
	}
}

// resendCause gives the field that says why content was sent again, in one word:
// the rules that tell it are named …resent-CAUSE.
func resendCause(rules []*machine.Rule) *Field {
	byRule := map[*machine.Rule]string{}
	var words []string
	for _, r := range rules {
		if _, cause, ok := strings.Cut(r.ID, "resent-"); ok {
			cause = strings.ReplaceAll(cause, "-", "_")
			if cause == "late_ack" {
				cause = "ack_late" // as ack_lost
			}
			byRule[r] = cause
			words = append(words, cause)
		}
	}
	slices.Sort(words)
	return &Field{
		Name: "rel.resend.cause", Kind: Text, Doc: "Why a side sent the same content again, as far as the capture shows it.", Words: slices.Compact(words), needs: NeedFlow | NeedFindings,
		values: worded(each(anomalies, func(_ *Record, a *machine.Anomaly) (string, bool) {
			cause, ok := byRule[a.Rule]
			return cause, ok
		})),
	}
}
