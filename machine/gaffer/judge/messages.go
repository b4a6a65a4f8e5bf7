package judge

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	"github.com/ackscope/ackscope/machine/gaffer/yojimbo"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// breaches are the rules of messages that no correct endpoint breaks, with the
// field that shows it. What a side at the tap sent is held against what its
// tracker knows that it had read.
var breaches = map[*machine.Rule]struct{ field, expected string }{
	messages.MessageBeyond:      {"gaffer.message.id", "below the oldest unacked id plus the receive queue"},
	messages.MessageResentEarly: {"gaffer.message.id", "not before the resend time of 100 ms"},
	messages.MessageResentAcked: {"gaffer.message.id", "no message whose packet is acked"},
	messages.MessageStuck:       {"gaffer.message.id", "the oldest message that was not sent yet"},
}

// messageJudge holds the headers of a flow against references, and its messages
// against the rules of sending.
type messageJudge struct {
	headers machine.Judge
	tracker machine.Tracker
	near    [2]bool
	broken  [2]*machine.Divergence
	out     machine.Effects
}

// NewConversation returns the judge of a flow whose packets carry messages. In
// the simple scheme, which sends the same run until it is acked, the rules of
// sending leave nothing to judge beside the headers.
func NewConversation(p *wire.Profile, facts machine.Facts, behaviours [2]string) (machine.Judge, error) {
	headers, err := New(p, facts, behaviours)
	if err != nil {
		return nil, err
	}
	if p.Messages.Form != wire.MessagesByID || p.Messages.Bodies == nil {
		return headers, nil
	}
	return newArticleJudge(headers, &p.Messages, facts), nil
}

func newMessageJudge(headers machine.Judge, t machine.Tracker, facts machine.Facts) *messageJudge {
	return &messageJudge{headers: headers, tracker: t,
		near: [2]bool{facts.Vantage.Near(machine.A), facts.Vantage.Near(machine.B)}}
}

// Observe takes the next datagram.
func (j *messageJudge) Observe(d *machine.Datagram) {
	j.headers.Observe(d)
	j.out.Reset()
	j.tracker.Observe(d, &j.out)
	j.take()
}

func (j *messageJudge) take() {
	for i := range j.out.Anomalies {
		a := &j.out.Anomalies[i]
		b, ok := breaches[a.Rule]
		if !ok || !j.near[a.Side] || j.broken[a.Side] != nil || a.Rule != messages.MessageResentEarly &&
			a.Certainty != machine.Certain {
			continue
		}
		v := &machine.Divergence{Ref: a.Ref, At: a.At, Rule: a.Rule.ID, Field: b.field, Expected: b.expected,
			Because: a.Rule.Summary, Frames: gaffer.Refs(a.About)}
		if a.Rule.Say != nil {
			v.Got = a.Rule.Say(1, a.Figures)
		}
		v.Reference, v.Captured = b.expected, v.Got
		j.broken[a.Side] = v
	}
}

// Finish settles what is open.
func (j *messageJudge) Finish() {
	j.headers.Finish()
	j.out.Reset()
	j.tracker.Finish(&j.out)
	j.take()
}

// Opinion returns what is found of a side: the earlier of what its headers and its
// messages show.
func (j *messageJudge) Opinion(s machine.Side) *machine.Opinion {
	o := j.headers.Opinion(s)
	peer := j.headers.Opinion(s.Other()).Divergence
	if v := j.broken[s]; v != nil && peer != nil && peer.Ref <= v.Ref {
		return o // what its peer had acked is open
	} else if v != nil && (o.Divergence == nil || v.Ref < o.Divergence.Ref) {
		o.Divergence = v
	}
	return o
}

// yojimboJudge judges what netcode carries.
type yojimboJudge struct {
	netcode *wire.Profile
	opener  yojimbo.Opener
	inner   *Judge
	seen    [2]map[uint64]bool
	packet  wire.Packet
	plain   machine.Datagram
}

// NewYojimbo returns the judge of a flow that can be decrypted: its packets
// of reliable, and the messages in them.
func NewYojimbo(l yojimbo.Layers, o yojimbo.Opener, facts machine.Facts, behaviours [2]string) (machine.Judge, error) {
	inner, err := New(l.Reliable, facts, behaviours)
	if err != nil {
		return nil, err
	}
	y := &yojimboJudge{netcode: l.Netcode, opener: o, inner: inner}
	return newMessageJudge(y, yojimbo.NewTracker(l, o.Clone(), facts), facts), nil
}

// Observe takes the next datagram.
func (y *yojimboJudge) Observe(d *machine.Datagram) {
	pk := &y.packet
	if y.netcode.Parse(d.Bytes, d.Length, pk) != nil {
		y.inner.sides[d.From].PassesOver(d)
		return
	}
	if pk.NetcodeType == wire.NetcodeRequestType {
		_ = y.opener.Request(d) // a token that stays closed leaves its packets closed too
		return
	}
	plain, err := y.opener.Open(d, pk)
	if err != nil {
		y.inner.sides[d.From].PassesOver(d)
	}
	if err != nil || pk.NetcodeType != wire.NetcodePayload || y.again(d.From, pk.NetcodeSequence) {
		return
	}
	y.plain = machine.Datagram{At: d.At, Ref: d.Ref, From: d.From, Bytes: plain, Length: len(plain)}
	y.inner.Observe(&y.plain)
}

// Source: library, netcode 1.4.3: NETCODE_REPLAY_PROTECTION_BUFFER_SIZE
const replayWindow = 256

// again reports whether a datagram is a copy: netcode lets none through. Of very
// old ones it lets nothing through either.
func (y *yojimboJudge) again(from machine.Side, sequence uint64) bool {
	seen := y.seen[from]
	if seen == nil {
		seen = map[uint64]bool{}
		y.seen[from] = seen
	}
	if seen[sequence] {
		return true
	}
	seen[sequence] = true
	delete(seen, sequence-4*replayWindow)
	return false
}

// Finish settles what is open.
func (y *yojimboJudge) Finish() { y.inner.Finish() }

// Opinion returns what is found of a side.
func (y *yojimboJudge) Opinion(s machine.Side) *machine.Opinion { return y.inner.Opinion(s) }
