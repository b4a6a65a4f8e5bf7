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
)

// flowEnd is what an autopsy keeps of a flow.
type flowEnd struct {
	flow    *analyze.Flow
	last    [2]lastWord
	acked   [2]machine.Event   // the side's last EventAcked
	endings []machine.Event    // goodbyes and refusals, in order
	unacked []machine.Message  // reliable messages that were never acked, in the order of their end
	joined  [2]machine.Instant // when the side's Welcome passed
	beat    [2]heard           // its last heartbeat, or answer to one
	over    [2]machine.Event   // the end as its library reports it; no Ref for none
}

// heard is when a message passed.
type heard struct {
	at  machine.Instant
	ref machine.Ref
}

// lastWord is the newest message of a side. Only the last one of a capture is shown, so its text is
// made then.
type lastWord struct {
	heard
	length int // of the message
	kept   int // bytes of it that are in start
	start  [lastWordStart]byte
}

// lastWordStart is more than any message has before its body.
// Source: definition, the layouts of wire/riptide
const lastWordStart = 32

// lastText describes the last message of a side.
func (x *flowEnd) lastText(side machine.Side) []byte {
	w := &x.last[side]
	d := &machine.Datagram{At: w.at, Ref: w.ref, From: side, Bytes: w.start[:w.kept], Length: w.length}
	return x.flow.Protocol.Info(dissect.Context{Config: x.flow.Config(), From: side}, d, nil)
}

// newEndings returns a collector of how Riptide's connections ended.
func newEndings() app.Endings { return &flowEnds{} }

// flowEnds keeps a flowEnd for each flow of Riptide.
type flowEnds struct {
	byFlow    map[*analyze.Flow]*flowEnd
	recent    *flowEnd // of the last record; nil for none
	order     []*flowEnd
	forgotten int // entries of order whose flows were forgotten
}

// Forget removes a flow.
func (m *flowEnds) Forget(f *analyze.Flow, _ analyze.Reason) {
	x := m.byFlow[f]
	if x == nil {
		return
	}
	delete(m.byFlow, f)
	*x = flowEnd{}
	m.recent = nil
	if m.forgotten++; m.forgotten > 1024 && m.forgotten > len(m.order)/2 {
		m.compact()
	}
}

// compact removes the forgotten flows from the list.
func (m *flowEnds) compact() {
	m.order = slices.DeleteFunc(m.order, func(x *flowEnd) bool { return x.flow == nil })
	m.forgotten = 0
}

// ended returns the flows that had ended at a time, which is the end of the capture. The string
// says in one word how each ended.
func (m *flowEnds) ended(end machine.Instant) iter.Seq2[*flowEnd, string] {
	return func(yield func(*flowEnd, string) bool) {
		m.compact()
		for _, x := range m.order {
			if how := x.how(end); how != "" && !yield(x, how) {
				return
			}
		}
	}
}

// Ended returns each connection that had ended when the capture did.
func (m *flowEnds) Ended(end machine.Instant) (list []app.Ending) {
	for x, how := range m.ended(end) {
		list = append(list, app.Ending{
			Flow: x.flow, How: how, Silent: how == "silence", Failed: how == "unanswered", Story: x.story(how),
			Page: func(paint show.Painter) []byte { return x.text(paint, how) }, Object: x.object,
		})
	}
	return list
}

// Take keeps what a record shows of its flow.
func (m *flowEnds) Take(r *analyze.Record) {
	f := r.Flow
	if f == nil || f.Protocol == nil || f.Protocol.Name != riptide.Protocol.Name {
		return
	}
	if x := m.recent; x != nil && x.flow == f {
		x.take(r)
		return
	}
	x := m.byFlow[f]
	if x == nil {
		if m.byFlow == nil {
			m.byFlow = map[*analyze.Flow]*flowEnd{}
		}
		x = &flowEnd{flow: f}
		m.byFlow[f] = x
		m.order = append(m.order, x)
	}
	m.recent = x
	x.take(r)
}

func (x *flowEnd) take(r *analyze.Record) {
	if d := &r.Datagram; d.Length > 0 && d.At >= x.last[d.From].at {
		w := &x.last[d.From]
		w.heard, w.length = heard{d.At, d.Ref}, d.Length
		w.kept = copy(w.start[:], d.Bytes)
		if set, ok := r.Flow.Config().Profile.(*riptide.Settings); ok && set.Senders[d.From].Codec.Beats(d.Bytes, d.Length) {
			x.beat[d.From] = w.heard
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

// how returns one word for how the connection ended. It returns "" where it had not ended when the
// capture did.
func (x *flowEnd) how(end machine.Instant) string {
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

// limit returns the side that reached a limit at which the library ends the connection. It returns
// false for none.
func (x *flowEnd) limit() (machine.Side, bool) {
	for _, found := range x.flow.Findings() {
		if found.Rule == state.AttemptsLimit || found.Rule == state.QualityLimit {
			return found.Side, true
		}
	}
	return machine.A, false
}

// quiet returns the side whose last message is the older one.
func (x *flowEnd) quiet() machine.Side {
	if x.last[machine.A].at <= x.last[machine.B].at {
		return machine.A
	}
	return machine.B
}

// found returns the surest finding of a rule about a side, or nil.
func (x *flowEnd) found(rule *machine.Rule, side machine.Side) *analyze.Finding {
	for _, f := range x.flow.Findings() {
		if f.Rule == rule && f.Side == side {
			return f
		}
	}
	return nil
}

// behaviour returns how a side's library behaves.
func (x *flowEnd) behaviour(side machine.Side) *state.Behaviour {
	return riptide.BehaviourOf(x.flow.Config(), side)
}
