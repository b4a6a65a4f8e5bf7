package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// This file decides what each side's library reports about the connection: made, failed, ended and
// why. Two of the reasons are never sent, and both look like silence:
//
//	TimedOut         nothing restarted the timeout of 5 s; the library checks it
//	                 once a heartbeat interval
//	PoorConnection   a message was due for its 16th sending, or the quality of
//	                 the connection was beyond its limit for 64 outcomes in a row

// connectionEvent emits an event of the connection, about the sender of p.
func (t *follower) connectionEvent(p *step, kind machine.EventKind, number uint32) {
	t.connectionEventOf(p, kind, p.from, number, machine.Certain)
}

func (t *follower) connectionEventOf(p *step, kind machine.EventKind, x machine.Side, number uint32,
	sure machine.Certainty,
) {
	t.emit(p, machine.Event{Kind: kind, Side: x, Certainty: sure, Sequence: number, Sequence64: int64(number)})
}

// arrived emits what one of the protocol's own reliable messages causes at its receiver x.
func (t *follower) arrived(p *step, x machine.Side, e *life, sure machine.Certainty) {
	if t.sides[x].behaviour.Port {
		sure = min(sure, machine.Likely) // it can ack a message and lose it
	}
	switch e.kind {
	case wire.Welcome:
		t.connected(p, x, e.client, sure)
	case wire.ClientConnected:
		t.connectionEventOf(p, riptide.EventClientConnected, x, uint32(e.client), sure)
	case wire.ClientDisconnected:
		t.connectionEventOf(p, riptide.EventClientDisconnected, x, uint32(e.client), sure)
	}
}

// connected records that the library of x counts the connection as made.
func (t *follower) connected(p *step, x machine.Side, id uint16, sure machine.Certainty) {
	if !t.conn.made[x] {
		t.conn.made[x] = true
		t.connectionEventOf(p, riptide.EventConnected, x, uint32(id), sure)
	}
}

// failed records that the client's attempt failed.
func (t *follower) failed(p *step, reason uint8) {
	client := &t.sides[t.client]
	if c := &t.conn; t.roles && !c.over[client.side] && !c.made[client.side] {
		c.over[client.side] = true
		t.connectionEventOf(p, riptide.EventFailed, client.side, uint32(reason), client.tap.grade())
	}
}

// disconnected records what a Disconnect means to either side.
func (t *follower) disconnected(p *step) {
	m, said, peer := p.m, p.own, p.peer
	reason := uint32(riptide.NoReason)
	if m.HasReason {
		reason = uint32(m.Reason)
	}
	t.connectionEvent(p, riptide.EventGoodbye, reason)
	if p.at.Sub(peer.activity.last) > riptide.Silence {
		t.silent(p, peer)
	}
	own, hers := uint8(riptide.Disconnected), uint8(riptide.Disconnected)
	if m.HasReason {
		own, hers = m.Reason, m.Reason
	}
	if own == riptide.Disconnected || own == riptide.Kicked {
		t.over(p, said, own, machine.Certain)
	}
	t.conn.over[said.side] = true // a server that stops reports nothing to its application
	sure := machine.Likely
	if peer.tap.ordered {
		sure = peer.reads(p.at, p.ref)
	}
	t.over(p, peer, hers, sure)
}

// over records that the library of s counts the connection as ended. It returns false if that was
// known already, or if the library never counted it as made.
func (t *follower) over(p *step, s *side, reason uint8, sure machine.Certainty) bool {
	c := &t.conn
	if c.over[s.side] || sure == machine.Unknown || t.begun && !c.made[s.side] {
		return false
	}
	c.over[s.side] = true
	t.connectionEventOf(p, riptide.EventDisconnected, s.side, uint32(reason), sure)
	return true
}

// silent emits why a side fell silent, if its library's rules explain it. p is a frame that shows
// how much time has passed.
func (t *follower) silent(p *step, s *side) {
	if !s.tap.near || s.activity.ref == 0 || t.conn.over[s.side] {
		return
	}
	last := pastStep(s.activity.last, s.activity.ref, p.out)
	if why := s.dropped(p.at); why != riptide.NotDropped && t.over(last, s, riptide.PoorConnection, machine.Likely) {
		p.out.At(last.at, last.ref).Report(riptide.PoorEnd, s.side, machine.Likely, 0, float64(why))
	} else if t.timedOut(s, p.at) && t.over(last, s, riptide.TimedOutReason, machine.Likely) {
		p.out.At(last.at, last.ref).Report(riptide.TimedOut, s.side, machine.Likely, 0,
			machine.Milliseconds(last.at.Sub(t.conn.heard[s.side])))
	}
}

// dropped returns the limit by which the side's library ended the connection, if the side fell
// silent at one.
func (s *side) dropped(now machine.Instant) int {
	b := s.behaviour
	if s.end.limit != 0 && s.activity.last <= s.end.limit.Add(riptide.TickSlack) {
		return s.end.limitOf
	}
	if s.in.overruns() {
		return riptide.DroppedWindow
	}
	if b.MessageLimit > 0 && s.out.top-int64(b.First)+1 == int64(b.MessageLimit) &&
		now.Sub(s.activity.last) > riptide.Silence {
		return riptide.DroppedCount
	}
	if !b.DropsConnection {
		return riptide.NotDropped
	}
	for n := s.out.lives.first; n < s.out.lives.next; n++ {
		e := s.out.lives.at(n)
		if e.sender.acked == machine.Unanswered && int(e.copies.count) >= b.Limit &&
			s.activity.last <= e.copies.last.Add(riptide.ResendAfter(s.smoothed)+riptide.TickSlack) {
			return riptide.DroppedAttempts
		}
	}
	return riptide.NotDropped
}

// timedOut reports whether the side spoke until its timeout ended the connection.
func (t *follower) timedOut(s *side, now machine.Instant) bool {
	heard := t.conn.heard[s.side]
	if heard == 0 || s.behaviour.NoTimeout || now.Sub(heard) < riptide.Timeout {
		return false
	}
	went := s.activity.last.Sub(heard)
	if t.roles && s.side != t.client && went < riptide.Timeout {
		return true // a server may have nothing to send
	}
	return went > riptide.Timeout-riptide.Silence && went < riptide.Timeout+riptide.HeartbeatInterval+riptide.Silence
}

// noConnection is the reject reason of a client that had no answer.
// Source: library, Riptide 2.0.0 to 2.2.1: RejectReason.NoConnection
const noConnection = 0

// ends emits, when the capture ends, how the connection ended without a message.
func (t *follower) ends(out *machine.Effects) {
	c := &t.conn
	end := pastStep(max(t.last, t.facts.End), 0, out)
	if t.roles && c.attempt.count >= riptide.ConnectAttempts && !c.attempt.answered {
		t.failed(pastStep(c.attempt.at, c.attempt.ref, out), noConnection)
	}
	for i := range t.sides {
		t.silent(end, &t.sides[i])
	}
}

// margin returns how long the side would wait before it gives up, if no more messages came. It
// returns false where the side is not connected.
func (t *follower) margin(x machine.Side) (time.Duration, bool) {
	if t.ended || t.conn.attempt.rejected || t.conn.over[x] || t.conn.heard[x] == 0 || t.sides[x].behaviour.NoTimeout {
		return 0, false
	}
	return riptide.Timeout - t.last.Sub(t.conn.heard[x]), true
}
