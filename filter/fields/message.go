package fields

import (
	"slices"
	"strings"

	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
)

func messages(r *filter.Record) []machine.Message { return r.Messages }

// messageFields returns the fields of messages: of those that a packet carried, or of the
// one that `messages` lists.
func messageFields() []*filter.Field {
	const needs = filter.NeedFlow | filter.NeedMessages
	uints := func(name, doc string, value func(*machine.Message) (uint64, bool)) *filter.Field {
		return &filter.Field{
			Name: name, Kind: filter.Uint, Doc: doc, Needs: needs,
			Values: filter.Values{
				Uint: filter.Each(messages, func(_ *filter.Record, m *machine.Message) (uint64, bool) { return value(m) }),
			},
		}
	}
	texts := func(name, doc string, words []string, value func(*machine.Message) string) *filter.Field {
		return &filter.Field{
			Name: name, Kind: filter.Text, Doc: doc, Words: words, Needs: needs,
			Values: filter.TextValues(filter.Each(messages, func(_ *filter.Record, m *machine.Message) (string, bool) {
				s := value(m)
				return s, s != ""
			})),
		}
	}
	times := func(name, doc string, value func(*machine.Message) (int64, bool)) *filter.Field {
		return &filter.Field{
			Name: name, Kind: filter.Duration, Unit: "s", Doc: doc, Needs: needs,
			Values: filter.Values{
				Int: filter.Each(messages, func(_ *filter.Record, m *machine.Message) (int64, bool) { return value(m) }),
			},
		}
	}
	return []*filter.Field{
		{
			Name: "message", Doc: "The packet carried a message; live, the life of a message ended at it.", Needs: needs,
			Present: func(r *filter.Record) bool { return len(r.Messages) > 0 },
		},
		uints("message.id", "The message's own number, unwrapped.",
			func(m *machine.Message) (uint64, bool) { return uint64(m.ID), m.ID >= 0 }),
		uints("message.type", "Number of its type.",
			func(m *machine.Message) (uint64, bool) { return uint64(m.Type), !m.Untyped }),
		uints("message.channel",
			"Channel that carried it.", func(m *machine.Message) (uint64, bool) { return uint64(m.Channel), m.Channel >= 0 }),
		uints("message.sends", "How many packets carried it.",
			func(m *machine.Message) (uint64, bool) { return uint64(m.Attempts), true }),
		uints("message.deliveries", "How often the receiving application was handed it.",
			func(m *machine.Message) (uint64, bool) { return uint64(m.Deliveries), m.Delivered == machine.Yes }),
		texts("message.name", "Name of its type, where a schema names it.",
			nil, func(m *machine.Message) string { return m.Name }),
		texts("message.mode", "What it was promised.", wordsOf(machine.ModeInternal, machine.Mode.String),
			func(m *machine.Message) string { return m.Mode.String() }),
		texts("message.side", "The side that sent it.",
			sideWords, func(m *machine.Message) string { return m.From.String() }),
		texts("message.acked", "Whether its sender learned that it arrived.", wordsOf(machine.Yes, machine.Answer.String),
			func(m *machine.Message) string { return m.Acked.String() }),
		texts("message.delivered", "Whether the receiving application was handed it.",
			wordsOf(machine.Yes, machine.Answer.String), func(m *machine.Message) string { return m.Delivered.String() }),
		times("message.hol", "How long it had arrived and waited for an earlier message: head-of-line blocking.",
			func(m *machine.Message) (int64, bool) {
				return int64(m.Wait), m.Delivered == machine.Yes
			}),
		times("message.arrival", "How long it took from its first sending to its arrival: the estimate.",
			func(m *machine.Message) (int64, bool) { return int64(m.About()), m.About() >= 0 }),
		times("message.arrival.least", "The same: what it took at least.", func(m *machine.Message) (int64, bool) {
			least, _, _ := m.Latency()
			return int64(least), least >= 0
		}),
		times("message.arrival.most", "The same: what it took at most.", func(m *machine.Message) (int64, bool) {
			_, most, _ := m.Latency()
			return int64(most), most >= 0
		}),
		texts("message.arrival.certainty", "How surely the capture proves these bounds.",
			wordsOf(machine.Certain, machine.Certainty.String), func(m *machine.Message) string {
				_, _, c := m.Latency()
				return c.String()
			}),
		times("message.proved", "From its first packet to the one that proved its delivery, which came later than it.",
			func(m *machine.Message) (int64, bool) {
				return int64(m.DeliveredAt.Sub(m.At)), m.Delivered == machine.Yes
			}),
	}
}

// resendCause returns the field that says in one word why content was sent
// again. Rules that find a cause are named …resent-CAUSE.
func resendCause(rules []*machine.Rule) *filter.Field {
	byRule := map[*machine.Rule]string{}
	var words []string
	for _, r := range rules {
		if _, cause, ok := strings.Cut(r.ID, "resent-"); ok {
			cause = strings.ReplaceAll(cause, "-", "_")
			if cause == "late_ack" {
				cause = "ack_late" // like ack_lost
			}
			byRule[r] = cause
			words = append(words, cause)
		}
	}
	slices.Sort(words)
	return &filter.Field{
		Name: "rel.resend.cause", Kind: filter.Text,
		Doc: "Why a side sent the same content again, as far as the capture shows it.", Words: slices.Compact(words),
		Needs: filter.NeedFlow | filter.NeedFindings,
		Values: filter.TextValues(filter.Each(anomalies, func(_ *filter.Record, a *machine.Anomaly) (string, bool) {
			cause, ok := byRule[a.Rule]
			return cause, ok
		})),
	}
}
