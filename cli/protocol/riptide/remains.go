package riptide

import (
	"iter"
	"slices"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/machine"
	state "github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/show"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

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

// ended returns what is left of the connections that had ended when the capture did,
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
		if set, ok := r.Flow.Config().Profile.(*riptide.Settings); ok &&
			set.Senders[d.From].Codec.Fits(d.Bytes, d.Length, &m) && m.Type == wire.Heartbeat {
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
		if (m.Mode == machine.ModeReliable || m.Mode == machine.ModeInternal) && m.Acked != machine.Yes &&
			(!m.Named || spent) {
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

// limit returns the side that reached a limit at which the library ends the
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

// quiet returns the side that spoke last the longer ago.
func (x *remains) quiet() machine.Side {
	if x.last[machine.A].at <= x.last[machine.B].at {
		return machine.A
	}
	return machine.B
}

// found returns the surest finding of a rule about a side; nil for none.
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
