package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// What the library of each side makes of the connection: made, failed, ended and
// why. Two of the reasons are never said on the wire, and both show as silence:
//
//	TimedOut         nothing put off the timeout of 5 s, which is looked at once
//	                 a heartbeat's time
//	PoorConnection   a message was due for its 16th sending, or the quality of
//	                 the connection was beyond its limit for 64 outcomes in a row

// tells an event of the connection's life.
func (t *follower) tells(out *machine.Effects, kind machine.EventKind, number uint32, p *sighting) {
	t.tellsOf(out, kind, p.from, number, machine.Certain, p)
}

func (t *follower) tellsOf(out *machine.Effects, kind machine.EventKind, x machine.Side, number uint32, sure machine.Certainty, p *sighting) {
	t.tell(out, machine.Event{Kind: kind, Side: x, Certainty: sure, Sequence: number, Sequence64: int64(number)}, p)
}

// arrived tells what a reliable message of the protocol itself brings about at
// the side that has it.
func (t *follower) arrived(x machine.Side, e *life, sure machine.Certainty, p *sighting, out *machine.Effects) {
	if t.sides[x].behaviour.Port {
		sure = min(sure, machine.Likely) // it can ack and lose what it acks
	}
	switch e.Type {
	case wire.Welcome:
		t.connected(x, e.client, sure, p, out)
	case wire.ClientConnected:
		t.tellsOf(out, riptide.EventClientConnected, x, uint32(e.client), sure, p)
	case wire.ClientDisconnected:
		t.tellsOf(out, riptide.EventClientDisconnected, x, uint32(e.client), sure, p)
	}
}

// connected notes that the library of x counts the connection as made.
func (t *follower) connected(x machine.Side, id uint16, sure machine.Certainty, p *sighting, out *machine.Effects) {
	if !t.life.made[x] {
		t.life.made[x] = true
		t.tellsOf(out, riptide.EventConnected, x, uint32(id), sure, p)
	}
}

// failed notes that the client's attempt came to nothing.
func (t *follower) failed(reason uint8, p *sighting, out *machine.Effects) {
	client := &t.sides[t.client]
	if c := &t.life; t.roles && !c.over[client.side] && !c.made[client.side] {
		c.over[client.side] = true
		t.tellsOf(out, riptide.EventFailed, client.side, uint32(reason), client.hears(), p)
	}
}

// hears grades that a side reads what passes the tap towards it now.
func (s *side) hears() machine.Certainty { return s.grade() }

// disconnected takes a Disconnect for what it is to either side.
func (t *follower) disconnected(p *sighting, m *wire.Message, out *machine.Effects) {
	said, peer := &t.sides[p.from], &t.sides[p.from.Other()]
	reason := uint32(riptide.NoReason)
	if m.HasReason {
		reason = uint32(m.Reason)
	}
	t.tells(out, riptide.EventGoodbye, reason, p)
	if p.at.Sub(peer.spoke) > riptide.Silence {
		t.silent(peer, p, out)
	}
	own, hers := uint8(riptide.Disconnected), uint8(riptide.Disconnected)
	if m.HasReason {
		own, hers = m.Reason, m.Reason
	}
	if own == riptide.Disconnected || own == riptide.Kicked {
		t.over(said, own, machine.Certain, p, out)
	}
	t.life.over[said.side] = true // a server that stops tells its application nothing
	sure := machine.Likely
	if peer.ordered {
		sure = peer.reads(p.at, p.ref)
	}
	t.over(peer, hers, sure, p, out)
}

// over notes that the library of s counts the connection as ended; one that was
// never made in its eyes has no end.
func (t *follower) over(s *side, reason uint8, sure machine.Certainty, p *sighting, out *machine.Effects) bool {
	c := &t.life
	if c.over[s.side] || sure == machine.Unknown || t.begun && !c.made[s.side] {
		return false
	}
	c.over[s.side] = true
	t.tellsOf(out, riptide.EventDisconnected, s.side, uint32(reason), sure, p)
	return true
}

// silent tells why a side fell silent that has not spoken for long, as far as its
// library's rules say; p is what shows that time has passed.
func (t *follower) silent(s *side, p *sighting, out *machine.Effects) {
	if !s.near || s.spokeRef == 0 || t.life.over[s.side] {
		return
	}
	last := &sighting{at: s.spoke, ref: s.spokeRef, from: s.side}
	if why := s.dropped(p.at); why != riptide.NotDropped && t.over(s, riptide.PoorConnection, machine.Likely, last, out) {
		out.Report(riptide.PoorEnd, s.side, machine.Likely, last.at, last.ref, 0, float64(why))
	} else if t.timedOut(s, p.at) && t.over(s, riptide.TimedOutReason, machine.Likely, last, out) {
		out.Report(riptide.TimedOut, s.side, machine.Likely, last.at, last.ref, 0, machine.Milliseconds(last.at.Sub(t.life.heard[s.side])))
	}
}

// dropped tells by which limit the side's library ended the connection, if it
// fell silent where one does.
func (s *side) dropped(now machine.Instant) int {
	b := s.behaviour
	if s.limitAt != 0 && s.spoke <= s.limitAt.Add(riptide.TickSlack) {
		return s.limitOf
	}
	if b.MessageLimit > 0 && s.top-int64(b.First)+1 == int64(b.MessageLimit) && now.Sub(s.spoke) > riptide.Silence {
		return riptide.DroppedCount
	}
	if !b.DropsConnection {
		return riptide.NotDropped
	}
	for n := s.sent.first; n < s.sent.next; n++ {
		e := s.sent.at(n)
		if e.Acked == machine.Unanswered && int(e.Attempts) >= b.Limit && s.spoke <= e.lastAt.Add(riptide.ResendAfter(s.smoothed)+riptide.TickSlack) {
			return riptide.DroppedAttempts
		}
	}
	return riptide.NotDropped
}

// timedOut reports whether the side went on until its timeout struck.
func (t *follower) timedOut(s *side, now machine.Instant) bool {
	heard := t.life.heard[s.side]
	if heard == 0 || s.behaviour.NoTimeout || now.Sub(heard) < riptide.Timeout {
		return false
	}
	went := s.spoke.Sub(heard)
	if t.roles && s.side != t.client && went < riptide.Timeout {
		return true // a server need not have anything to say
	}
	return went > riptide.Timeout-riptide.Silence && went < riptide.Timeout+riptide.HeartbeatInterval+riptide.Silence
}

// noConnection is the reject reason of a client that had no answer.
const noConnection = 0

// ends tells, when the capture ends, what became of the connection without a word.
func (t *follower) ends(out *machine.Effects) {
	c := &t.life
	end := &sighting{at: max(t.last, t.facts.End)}
	if t.roles && c.connects >= riptide.ConnectAttempts && !c.answered {
		t.failed(noConnection, &sighting{at: c.connectAt, ref: c.connectRef, from: t.client}, out)
	}
	for i := range t.sides {
		t.silent(&t.sides[i], end, out)
	}
}

// margin gives how long the side would wait before it gives up, were nothing
// more to come; false where it is not connected.
func (t *follower) margin(x machine.Side) (time.Duration, bool) {
	if t.ended || t.life.rejected || t.life.over[x] || t.life.heard[x] == 0 || t.sides[x].behaviour.NoTimeout {
		return 0, false
	}
	return riptide.Timeout - t.last.Sub(t.life.heard[x]), true
}
