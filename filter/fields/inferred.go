package fields

import (
	"slices"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
)

var sideWords = []string{machine.A.String(), machine.B.String()}

// wordsOf returns the words of the values 0 to n.
func wordsOf[T ~uint8](n T, word func(T) string) []string {
	var out []string
	for v := T(0); v <= n; v++ {
		out = append(out, word(v))
	}
	return out
}

// flowText returns a field for one text of the flow.
func flowText(name, doc string, words []string, get func(*filter.Record) (string, bool)) *filter.Field {
	return &filter.Field{
		Name: name, Kind: filter.Text, Doc: doc, Words: words, Needs: filter.NeedFlow,
		Values: filter.TextValues(filter.One(get)),
	}
}

func flowFields(protocols []*dissect.Protocol) []*filter.Field {
	var names []string
	for _, p := range protocols {
		names = append(names, p.Name)
	}
	live := func(f *filter.Field) *filter.Field { f.Needs |= filter.NeedState; return f }
	flow := func(f *filter.Field) *filter.Field { f.Needs = filter.NeedFlow; return f }
	fields := []*filter.Field{
		flow(number("flow", "", "Number of the flow, as `flows` lists them; a flow is one conversation of two endpoints.",
			func(r *filter.Record) (uint64, bool) { return uint64(r.Flow), r.Flow != 0 })),
		flow(number("flow.session", "", "Which session it is on its pair of addresses, from 1.",
			func(r *filter.Record) (uint64, bool) { return uint64(r.Session), r.Flow != 0 })),
		flow(number("flow.was", "", "Number of the flow whose connection it continues: the player's address changed.",
			func(r *filter.Record) (uint64, bool) { return uint64(r.Was), r.Was != 0 })),
		flowText("flow.side", "Which side sent the packet: a spoke first.",
			sideWords, func(r *filter.Record) (string, bool) { return r.Datagram.From.String(), r.Flow != 0 }),
		flowText("flow.protocol", "Protocol that the flow is read as.", names, func(r *filter.Record) (string, bool) {
			if r.Protocol == nil {
				return "", false
			}
			return r.Protocol.Name, true
		}),
		flowText("flow.dialect", "Dialect of the protocol.",
			nil, func(r *filter.Record) (string, bool) { return r.Dialect, r.Protocol != nil }),
		live(flowText("flow.vantage", "Where the capture was taken, as far as the flow shows it.",
			wordsOf(machine.VantageBetween, machine.Vantage.String),
			func(r *filter.Record) (string, bool) {
				if r.Knowledge == nil || r.Protocol == nil {
					return "", false
				}
				return r.Knowledge.Facts().Vantage.String(), true
			})),
	}
	fields = append(fields,
		perSide("flow.rtt", filter.Duration, "s", "round-trip time at this packet, smoothed as the side's own library does",
			func(v *filter.Values, sides []machine.Side) {
				v.Int = figuresOf(sides,
					func(k filter.Knowledge, s machine.Side) (int64, bool) { d := k.RTT(s); return int64(d), d >= 0 })
			})...)
	fields = append(fields,
		perSide("flow.loss", filter.Float, "",
			"share of packets lost, 0 to 1, at this packet, as the side's own library computes it",
			func(v *filter.Values, sides []machine.Side) {
				v.Float = figuresOf(sides,
					func(k filter.Knowledge, s machine.Side) (float64, bool) { loss := k.Loss(s); return loss, loss >= 0 })
			})...)
	return append(fields,
		perSide("flow.packets", filter.Uint, "", "packets that the side sent, up to this one",
			func(v *filter.Values, sides []machine.Side) {
				v.Uint = figuresOf(sides, func(k filter.Knowledge, s machine.Side) (uint64, bool) { return k.Sent(s) })
			})...)
}

// perSide returns a field for the figures of both sides, and one for each side.
func perSide(name string, kind filter.Kind, unit, doc string,
	fill func(*filter.Values, []machine.Side),
) []*filter.Field {
	var out []*filter.Field
	for _, x := range []struct {
		suffix, whose string
		sides         []machine.Side
	}{
		{"", "Either side's ", []machine.Side{machine.A, machine.B}},
		{"_a", "Side a's ", []machine.Side{machine.A}},
		{"_b", "Side b's ", []machine.Side{machine.B}},
	} {
		f := &filter.Field{
			Name: name + x.suffix, Kind: kind, Unit: unit, Doc: x.whose + doc + ".",
			Needs: filter.NeedFlow | filter.NeedState,
		}
		fill(&f.Values, x.sides)
		out = append(out, f)
	}
	return out
}

// figuresOf returns the source of a figure that each of the sides has.
func figuresOf[T any](sides []machine.Side, value func(filter.Knowledge, machine.Side) (T, bool)) filter.Source[T] {
	return func(pass filter.Test[T], all bool) filter.Predicate {
		return func(r *filter.Record) bool {
			if r.Knowledge == nil {
				return false
			}
			found := false
			for _, side := range sides {
				if v, ok := value(r.Knowledge, side); ok {
					found = true
					if pass(r, v) != all {
						return !all
					}
				}
			}
			return found && all
		}
	}
}

// fateFields returns the fields of what became of the packet itself.
func fateFields() []*filter.Field {
	const needs = filter.NeedFlow | filter.NeedFate
	texts := func(name, doc string, words []string, value func(filter.Fate, machine.Certainty) string) *filter.Field {
		return &filter.Field{
			Name: name, Kind: filter.Text, Doc: doc, Words: words, Needs: needs,
			Values: filter.TextValues(filter.One(func(r *filter.Record) (string, bool) {
				if r.Hindsight == nil {
					return "", false
				}
				fate, c := r.Hindsight.Fate(r.Datagram.Ref)
				return value(fate, c), fate != filter.NoFate
			})),
		}
	}
	return []*filter.Field{
		texts("fate", "What became of this packet: its sender read an ack of it, no header can name it any more, no header "+
			"has yet, or it arrived and was never acked.", filter.Fates(),
			func(f filter.Fate, _ machine.Certainty) string { return f.String() }),
		texts("fate.certainty", "How surely the capture shows that.", wordsOf(machine.Certain, machine.Certainty.String),
			func(_ filter.Fate, c machine.Certainty) string { return c.String() }),
	}
}

func events(r *filter.Record) []machine.Event { return r.Events }

// sequencesOf returns the source of the sequence numbers of one kind of events.
// It is a faster version of filter.Each, because filters use it on nearly every
// packet.
func sequencesOf(k machine.EventKind) filter.Source[uint64] {
	return func(pass filter.Test[uint64], all bool) filter.Predicate {
		return func(r *filter.Record) bool {
			found := false
			for i := range r.Events {
				if e := &r.Events[i]; e.Kind == k {
					found = true
					if pass(r, uint64(e.Sequence)) != all {
						return !all
					}
				}
			}
			return found && all
		}
	}
}

// eventWord returns the name of an event of a protocol.
func eventWord(p *dissect.Protocol, k machine.EventKind) string {
	if k >= machine.EventProtocol && p != nil {
		if w, ok := p.EventNames[k]; ok {
			return w
		}
	}
	return k.String()
}

func eventFields(protocols []*dissect.Protocol) []*filter.Field {
	const needs = filter.NeedFlow | filter.NeedEvents
	uints := func(name, doc string, value func(*filter.Record, *machine.Event) (uint64, bool)) *filter.Field {
		return &filter.Field{
			Name: name, Kind: filter.Uint, Doc: doc, Needs: needs,
			Values: filter.Values{Uint: filter.Each(events, value)},
		}
	}
	texts := func(name, doc string, words []string, value func(*filter.Record, *machine.Event) string) *filter.Field {
		return &filter.Field{
			Name: name, Kind: filter.Text, Doc: doc, Words: words, Needs: needs,
			Values: filter.TextValues(filter.Each(events, func(r *filter.Record, e *machine.Event) (string, bool) {
				return value(r, e), true
			})),
		}
	}
	kind := func(name, doc string, k machine.EventKind) *filter.Field {
		return &filter.Field{
			Name: name, Kind: filter.Uint, Doc: doc + " The value is the packet's sequence number.",
			Needs: needs, Values: filter.Values{Uint: sequencesOf(k), Bare: func(r *filter.Record) bool {
				for i := range r.Events {
					if r.Events[i].Kind == k {
						return true
					}
				}
				return false
			}},
		}
	}
	words := wordsOf(machine.EventRegraded, machine.EventKind.String)[1:]
	var own []*filter.Field
	for _, p := range protocols {
		var kinds []machine.EventKind
		for k := range p.EventNames {
			kinds = append(kinds, k)
		}
		slices.Sort(kinds)
		for _, k := range kinds {
			w := p.EventNames[k]
			words = append(words, w)
			own = append(own, uints("rel."+w, p.Title+": "+w+".", func(r *filter.Record, e *machine.Event) (uint64, bool) {
				return uint64(e.Sequence), e.Kind == k && r.Protocol == p
			}))
		}
	}
	fields := []*filter.Field{
		{
			Name: "rel", Doc: "This packet shows something about reliability; live, it settles something.", Needs: needs,
			Present: func(r *filter.Record) bool { return len(r.Events) > 0 },
		},
		kind("rel.sent", "A side sent a packet.", machine.EventSent),
		kind("rel.received", "A side accepted a packet of its peer.", machine.EventReceived),
		kind("rel.acked", "A side learned that its packet arrived.", machine.EventAcked),
		kind("rel.dup", "A side refused a packet as already received.", machine.EventDuplicate),
		kind("rel.stale", "A side refused a packet as too old.", machine.EventStale),
		kind("rel.rejected", "A side's application refused a packet.", machine.EventRejected),
		kind("rel.lost", "A side's packet can no longer be acked.", machine.EventLost),
		kind("rel.resend", "A side sent the same content again.", machine.EventResent),
		kind("rel.delivered", "A side's application was handed a message.", machine.EventDelivered),
		kind("rel.regraded", "Later evidence changed how sure an earlier event is.", machine.EventRegraded),
		texts("rel.event", "What was settled, in one word.",
			words, func(r *filter.Record, e *machine.Event) string { return eventWord(r.Protocol, e.Kind) }),
		texts("rel.side", "The side that the event belongs to.",
			sideWords, func(_ *filter.Record, e *machine.Event) string { return e.Side.String() }),
		texts("rel.certainty", "How surely the capture proves the event.", wordsOf(machine.Certain, machine.Certainty.String),
			func(_ *filter.Record, e *machine.Event) string { return e.Certainty.String() }),
		uints("rel.sequence", "Sequence number of the packet that an event is about, as on the wire.",
			func(_ *filter.Record, e *machine.Event) (uint64, bool) { return uint64(e.Sequence), true }),
		{
			Name: "rel.sequence64", Kind: filter.Int, Doc: "The same, unwrapped.", Needs: needs,
			Values: filter.Values{
				Int: filter.Each(events, func(_ *filter.Record, e *machine.Event) (int64, bool) { return e.Sequence64, true }),
			},
		},
		uints("rel.bit", "Which bit of the ack bits told that a packet arrived.",
			func(_ *filter.Record, e *machine.Event) (uint64, bool) {
				return uint64(e.Bit), e.Kind == machine.EventAcked
			}),
		uints("rel.by_frame", "Frame whose header carried the ack.", func(_ *filter.Record, e *machine.Event) (uint64, bool) {
			return e.By.Frame(), e.Kind == machine.EventAcked && e.By != 0
		}),
		{
			Name: "rel.rtt", Kind: filter.Duration, Unit: "s", Doc: "Round-trip time that the side sampled from an ack.",
			Needs: needs, Values: filter.Values{Int: filter.Each(events, func(_ *filter.Record, e *machine.Event) (int64, bool) {
				return e.RTT, e.Kind == machine.EventAcked && e.RTT >= 0
			})},
		},
	}
	return append(fields, own...)
}

func anomalies(r *filter.Record) []machine.Anomaly { return r.Anomalies }

func findingFields(rules []*machine.Rule) []*filter.Field {
	const needs = filter.NeedFlow | filter.NeedFindings
	texts := func(name, doc string, words []string, value func(*machine.Anomaly) string) *filter.Field {
		return &filter.Field{
			Name: name, Kind: filter.Text, Doc: doc, Words: words, Needs: needs,
			Values: filter.TextValues(filter.Each(anomalies, func(_ *filter.Record, a *machine.Anomaly) (string, bool) {
				return value(a), true
			})),
		}
	}
	ids := make([]string, len(rules))
	for i, rule := range rules {
		ids[i] = rule.ID
	}
	slices.Sort(ids)
	return []*filter.Field{
		{
			Name: "finding", Doc: "A rule found something at this packet.", Needs: needs,
			Present: func(r *filter.Record) bool { return len(r.Anomalies) > 0 },
		},
		texts("finding.rule", "Which rule did, as `explain` names it.",
			slices.Compact(ids), func(a *machine.Anomaly) string { return a.Rule.ID }),
		texts("finding.severity", "How grave it is.", wordsOf(machine.Error, machine.Severity.String),
			func(a *machine.Anomaly) string { return a.Rule.Severity.String() }),
		texts("finding.certainty", "How surely the capture proves it.", wordsOf(machine.Certain, machine.Certainty.String),
			func(a *machine.Anomaly) string { return a.Certainty.String() }),
		texts("finding.side", "Whose doing it is.", sideWords, func(a *machine.Anomaly) string { return a.Side.String() }),
	}
}
