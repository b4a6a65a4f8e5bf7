package judge

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	"github.com/ackscope/ackscope/machine/gaffer/yojimbo"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// breach is a finding of the tracker that is a divergence as well, since no correct endpoint
// breaks its rule. The tracker compares what a side at the tap sent with what the side had
// read.
type breach struct {
	finding  *machine.Rule
	rule     *machine.Rule
	rests    machine.RestsOn
	expected string
	likely   bool // it counts even if the tracker grades the finding only likely
}

var breaches = [...]breach{
	{
		messages.MessageBeyond, MessageBeyondWindow, machine.RestsOnBoth,
		"below the oldest unacked id plus the receive queue", false,
	},
	{
		messages.MessageResentEarly, MessageResentEarly, machine.RestsOnOwn,
		"not before the resend time of 100 ms", true,
	},
	{
		messages.MessageResentAcked, MessageResentAfterAck, machine.RestsOnPeer,
		"no message whose packet is acked", false,
	},
	{
		messages.MessageStuck, StuckMessage, machine.RestsOnAbsence,
		"the oldest message that was not sent yet", false,
	},
}

// breachOf returns the breach that an anomaly shows; nil where it shows none, or not surely
// enough.
func breachOf(a *machine.Anomaly) *breach {
	for i := range breaches {
		if b := &breaches[i]; b.finding == a.Rule && (b.likely || a.Certainty == machine.Certain) {
			return b
		}
	}
	return nil
}

// messageJudge compares the headers of a flow with references, and its messages with the rules
// of sending.
type messageJudge struct {
	headers machine.Judge
	tracker machine.Tracker
	near    [2]bool
	broken  [2]*machine.Divergence
	out     machine.Effects
}

// NewConversation returns the judge of a flow whose packets carry messages. The simple scheme
// sends the same run of messages until it is acked. Its messages have no rules of their own,
// so only its headers are judged.
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
	return &messageJudge{
		headers: headers, tracker: t,
		near: [2]bool{facts.Vantage.Near(machine.A), facts.Vantage.Near(machine.B)},
	}
}

// Observe judges the next datagram.
func (j *messageJudge) Observe(d *machine.Datagram) {
	j.headers.Observe(d)
	j.out.Reset()
	j.tracker.Observe(d, &j.out)
	j.take()
}

func (j *messageJudge) take() {
	for i := range j.out.Anomalies {
		a := &j.out.Anomalies[i]
		b := breachOf(a)
		if b == nil || !j.near[a.Side] || j.broken[a.Side] != nil {
			continue
		}
		v := &machine.Divergence{
			Ref: a.Ref, At: a.At, Rule: b.rule, RestsOn: b.rests,
			Mismatch: machine.Differ("gaffer.message.id", b.expected, ""), Because: a.Rule.Summary, Frames: gaffer.Refs(a.About),
		}
		if a.Rule.Say != nil {
			v.Got = a.Rule.Say(1, a.Figures)
		}
		v.Reference, v.Captured = b.expected, v.Got
		j.broken[a.Side] = v
	}
}

// Finish ends the flow.
func (j *messageJudge) Finish() {
	j.headers.Finish()
	j.out.Reset()
	j.tracker.Finish(&j.out)
	j.take()
}

// Opinion returns what is found of a side: the divergence of its headers or that of its
// messages, whichever came first.
func (j *messageJudge) Opinion(s machine.Side) *machine.Opinion {
	o := j.headers.Opinion(s)
	peer := j.headers.Opinion(s.Other()).Divergence
	if v := j.broken[s]; v != nil && peer != nil && peer.Ref <= v.Ref {
		return o // the peer is at fault, so what it acked is open
	} else if v != nil && (o.Divergence == nil || v.Ref < o.Divergence.Ref) {
		o.Divergence = v
	}
	return o
}

// yojimboJudge judges the packets of reliable that netcode packets carry.
type yojimboJudge struct {
	netcode *wire.Profile
	opener  yojimbo.Opener
	inner   *Judge
	seen    [2]map[uint64]bool
	packet  wire.Packet
	plain   machine.Datagram
}

// NewYojimbo returns the judge of a flow that can be decrypted. It judges the packets of
// reliable, and the messages in them.
func NewYojimbo(l yojimbo.Layers, o yojimbo.Opener, facts machine.Facts, behaviours [2]string) (machine.Judge, error) {
	inner, err := New(l.Reliable, facts, behaviours)
	if err != nil {
		return nil, err
	}
	y := &yojimboJudge{netcode: l.Netcode, opener: o, inner: inner}
	return newMessageJudge(y, yojimbo.NewTracker(l, o.Clone(), facts), facts), nil
}

// Observe judges the next datagram.
func (y *yojimboJudge) Observe(d *machine.Datagram) {
	pk := &y.packet
	if y.netcode.Parse(d.Bytes, d.Length, pk) != nil {
		y.inner.sides[d.From].PassesOver(d, nil)
		return
	}
	if pk.NetcodeType == wire.NetcodeRequestType {
		_ = y.opener.Request(d) // without its token, the packets of the connection stay closed
		return
	}
	plain, err := y.opener.Open(d, pk)
	if err != nil {
		y.inner.sides[d.From].PassesOver(d, nil)
	}
	if err != nil || pk.NetcodeType != wire.NetcodePayload || y.isCopy(d.From, pk.NetcodeSequence) {
		return
	}
	y.plain = machine.Datagram{At: d.At, Ref: d.Ref, From: d.From, Bytes: plain, Length: len(plain)}
	y.inner.Observe(&y.plain)
}

// replayWindow is how many entries netcode's replay window has.
// Source: library, netcode 1.4.3: NETCODE_REPLAY_PROTECTION_BUFFER_SIZE
const replayWindow = 256

// isCopy reports whether a datagram with this number came before. netcode lets no copy through,
// and no very old datagram either.
func (y *yojimboJudge) isCopy(from machine.Side, sequence uint64) bool {
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

// Finish ends the flow.
func (y *yojimboJudge) Finish() { y.inner.Finish() }

// Opinion returns what is found of a side.
func (y *yojimboJudge) Opinion(s machine.Side) *machine.Opinion { return y.inner.Opinion(s) }
