package article

import (
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// ConnectionTracker tracks the handshake of a flow: what each side knew of each of its
// connections. A connection is what one client salt names.
//
// What a side sends proves what it has read. For example, a client's response proves
// that it has read the challenge that it answers. What passed towards a side, and what
// it has not answered yet, it may have read. So each side has two links: what it knew
// for certain, and what it knew if it had read everything that passed.
type ConnectionTracker struct {
	profile *wire.Profile
	facts   machine.Facts
	sides   [2]connectionSide
	kept    [connectionsKept]connection // number n at n mod len
	count   int                         // connections so far
	last    machine.Instant             // the newest datagram
	ref     machine.Ref
	packet  wire.Packet
	read    wire.Packet // what a side must have read
}

// connectionsKept is how many connections of a flow can still change.
//
// Source: bound, memory of a flow
const connectionsKept = 8

// connectionSide is what is known of a side over all of its connections.
type connectionSide struct {
	packets, bytes uint64
	role           connectRole
	denied         machine.Ref // the newest packet with which this side said that it is full
}

// connection is one client salt, as both sides know it.
type connection struct {
	number int // from 1; 0: none
	client uint64
	begun  machine.Instant // when its first packet passed
	asked  bool            // that was a request
	made   machine.Instant // when the server's first keep-alive passed
	isMade bool
	ends   [2]connectionEnd
}

// connectionEnd is what one side knows of one connection.
type connectionEnd struct {
	shown   link        // what its packets prove
	shownBy machine.Ref // the packet that proved it
	ahead   link        // what it knows if it has read all that passed towards it
	aheadBy machine.Ref // the packet that makes the difference

	sentAt, heardAt machine.Instant // the newest packet of it, and towards it
	sent, heard     bool            // these are set
	denied          machine.Ref     // the newest packet that denied it
	told            bool            // that it counts as made, under the salt toldSalt
	toldSalt        uint64
	over            machine.EventKind // how it ended; EventNone while it has not
	overGrade       machine.Certainty
	overBy          machine.Ref
	// The peer's packet that ends the connection once the side reads it.
	leaving   machine.EventKind
	leavingAt machine.Instant
	leavingBy machine.Ref
}

// newConnectionTracker returns the tracker of a flow with the handshake.
func newConnectionTracker(p *wire.Profile, facts machine.Facts) *ConnectionTracker {
	return &ConnectionTracker{profile: p, facts: facts}
}

// sentKinds maps a packet of the handshake to the event that it was sent.
var sentKinds = [...]machine.EventKind{
	wire.ConnectRequest: gaffer.EventRequest, wire.ConnectDenied: gaffer.EventDenied,
	wire.ConnectChallenge: gaffer.EventChallenge, wire.ConnectResponse: gaffer.EventResponse,
	wire.ConnectKeepAlive: gaffer.EventKeepAlive, wire.ConnectDisconnect: gaffer.EventDisconnect,
}

// Observe takes the next datagram.
func (t *ConnectionTracker) Observe(d *machine.Datagram, out *machine.Effects) {
	s := &t.sides[d.From]
	s.packets++
	s.bytes += uint64(d.Length)
	p := &t.packet
	if t.profile.Parse(d.Bytes, d.Length, p) != nil || p.Kind != wire.KindHandshake {
		return
	}
	t.last, t.ref = d.At, d.Ref
	if role := roleOf(p.Handshake); s.role == roleOpen && role != roleOpen {
		s.role, t.sides[d.From.Other()].role = role, roleClient+roleServer-role
	}
	c := t.of(d, p)
	t.silence(d.At, c, d.From, out)
	t.event(sentKinds[p.Handshake], d.From, machine.Certain, c.number, d.Ref, out)
	t.sends(c, d, p, out)
	t.passes(c, d, p)
}

// of returns the connection of a packet, and begins it if it is new.
func (t *ConnectionTracker) of(d *machine.Datagram, p *wire.Packet) *connection {
	for i := range t.kept {
		if c := &t.kept[i]; c.number > 0 && c.client == p.ClientSalt {
			return c
		}
	}
	t.count++
	c := &t.kept[t.count%connectionsKept]
	*c = connection{number: t.count, client: p.ClientSalt, begun: d.At, asked: p.Handshake == wire.ConnectRequest}
	return c
}

// newest returns the connection that began last. It returns nil if there is none.
func (t *ConnectionTracker) newest() *connection {
	if t.count == 0 {
		return nil
	}
	return &t.kept[t.count%connectionsKept]
}

// sends applies what a packet proves of its sender.
func (t *ConnectionTracker) sends(c *connection, d *machine.Datagram, p *wire.Packet, out *machine.Effects) {
	e, server := &c.ends[d.From], t.sides[d.From].role == roleServer
	e.sentAt, e.sent = d.At, true
	switch {
	case p.Handshake == wire.ConnectDenied:
		if p.DenyReason == DenyFull {
			t.sides[d.From].denied = d.Ref
		}
		e.denied = d.Ref
		if e.shown.state != linkConnected {
			e.shown, e.ahead = link{}, link{} // it drops its challenge too
		}
		return
	case p.Handshake == wire.ConnectDisconnect:
		t.hadMade(c, d.From, true, out)
		t.ends(c, d.From, gaffer.EventDisconnected, machine.Certain, d.Ref, out)
		return
	case e.over != machine.EventNone && e.overGrade == machine.Certain:
		return // it was sent before the end, and comes late
	}
	e.over = machine.EventNone // it shows that it had not given up
	was := e.shown
	t.prove(&e.shown, server, p)
	if e.shown != was {
		e.shownBy = d.Ref
	}
	if behind(e.ahead, e.shown) {
		e.ahead, e.aheadBy = e.shown, d.Ref
	}
	t.supersedes(c, d, out)
	if e.shown.state == linkConnected && (!e.told || e.toldSalt != e.shown.server) {
		e.told, e.toldSalt = true, e.shown.server
		t.event(gaffer.EventConnected, d.From, machine.Certain, c.number, d.Ref, out)
		if server && !c.isMade {
			c.made, c.isMade = d.At, true
		}
	}
}

// supersedes ends the sender's older connections: it has one at a time with each
// address, and speaks of a newer one.
func (t *ConnectionTracker) supersedes(c *connection, d *machine.Datagram, out *machine.Effects) {
	for i := range t.kept {
		was := &t.kept[i]
		e := &was.ends[d.From]
		if was.number == 0 || was.number >= c.number || e.shown.state == linkNone {
			continue
		}
		why := gaffer.EventDisconnected
		if at, ok := was.givesUp(d.From); e.leaving != machine.EventNone {
			why = e.leaving
		} else if ok && d.At >= at {
			why = gaffer.EventTimedOut
		}
		t.ends(was, d.From, why, machine.Certain, d.Ref, out)
	}
}

// behind reports whether a link is one that leads to another one, and is not that.
func behind(l, to link) bool {
	return l.state < to.state || l.client != to.client || l.state == to.state && l.server != to.server
}

// prove brings a link to what a side must know that sends a packet: the side has read
// the packets that this one answers.
func (t *ConnectionTracker) prove(l *link, server bool, p *wire.Packet) {
	r := &t.read
	*r = wire.Packet{Kind: wire.KindHandshake, ClientSalt: p.ClientSalt, ChallengeSalt: p.ChallengeSalt}
	reads := func(k wire.HandshakeKind) linkStep {
		r.Handshake = k
		return l.read(server, r)
	}
	switch {
	case p.Handshake == wire.ConnectRequest:
		if l.state == linkNone || l.client != p.ClientSalt {
			l.request(p.ClientSalt)
		}
	case server:
		if l.state < linkChallenging || l.client != p.ClientSalt || l.server != p.ChallengeSalt {
			l.challenge(p.ClientSalt, p.ChallengeSalt)
		}
		if p.Handshake == wire.ConnectKeepAlive && reads(wire.ConnectResponse) == stepAnswered {
			l.admit()
		}
	default:
		if l.state == linkNone || l.client != p.ClientSalt || l.state > linkRequesting && l.server != p.ChallengeSalt {
			l.request(p.ClientSalt)
		}
		reads(wire.ConnectChallenge)
		if p.Handshake == wire.ConnectKeepAlive {
			reads(wire.ConnectKeepAlive)
		}
	}
}

// passes applies a packet to what its receiver knows once it has read it.
func (t *ConnectionTracker) passes(c *connection, d *machine.Datagram, p *wire.Packet) {
	to := d.From.Other()
	e, server := &c.ends[to], t.sides[to].role == roleServer
	was := e.ahead
	step := e.ahead.read(server, p)
	if step != stepAskedAgain && (step != stepIgnored || was.state == linkNone) {
		e.heardAt, e.heard = d.At, true // its time-out begins anew
	}
	switch step {
	case stepAnswered:
		e.ahead.admit()
	case stepRefused:
		e.leaves(gaffer.EventRefused, d)
	case stepEnded:
		e.leaves(gaffer.EventDisconnected, d)
	}
	if e.ahead != was {
		e.aheadBy = d.Ref
	}
}

// leaves notes a packet that ends the connection once the side reads it. If the side
// has sent something since the last such packet, it may not have read that one.
func (e *connectionEnd) leaves(why machine.EventKind, d *machine.Datagram) {
	if e.leaving == machine.EventNone || e.sentAt > e.leavingAt {
		e.leaving, e.leavingAt, e.leavingBy = why, d.At, d.Ref
	}
}

// ends records that a side counts a connection as ended.
func (t *ConnectionTracker) ends(c *connection, s machine.Side, why machine.EventKind, grade machine.Certainty,
	by machine.Ref, out *machine.Effects,
) {
	e := &c.ends[s]
	if e.over != machine.EventNone {
		return
	}
	t.hadMade(c, s, false, out)
	e.over, e.overGrade, e.overBy = why, grade, by
	if t.sides[s].role == roleServer && e.shown.state < linkConnected {
		return // it drops a challenge, which was no connection yet
	}
	t.event(why, s, grade, c.number, by, out)
}

// hadMade reports that a side likely counted a connection as made, though it sent no
// keep-alive that proves it. Either it left before its first one was due, or the tap is
// at the side, and the packet that makes the connection passed.
func (t *ConnectionTracker) hadMade(c *connection, s machine.Side, leaves bool, out *machine.Effects) {
	e := &c.ends[s]
	if e.told || e.ahead.state != linkConnected || e.over != machine.EventNone || !leaves && !t.facts.Vantage.Near(s) {
		return
	}
	e.told, e.toldSalt = true, e.ahead.server
	t.event(gaffer.EventConnected, s, machine.Likely, c.number, e.aheadBy, out)
}

// silence finds connections that a side has given up: nothing has passed towards it for
// the article's time. A side that goes on sending has another time, and is left alone.
// The sender of the present packet, and its connection, are such a side.
func (t *ConnectionTracker) silence(now machine.Instant, present *connection, sender machine.Side,
	out *machine.Effects,
) {
	for i := range t.kept {
		c := &t.kept[i]
		if c.number == 0 {
			continue
		}
		for s := range c.ends {
			side := machine.Side(s)
			if c == present && side == sender {
				continue
			}
			if at, ok := c.givesUp(side); ok && now >= at.Add(unreadMostly) && !t.left(c, side, out) {
				t.ends(c, side, gaffer.EventTimedOut, machine.Likely, t.ref, out)
			}
		}
	}
}

// givesUp returns when a side gives up a connection if nothing more passes towards it.
// It returns false if the side has no connection, or has ended it.
func (c *connection) givesUp(s machine.Side) (at machine.Instant, ok bool) {
	e := &c.ends[s]
	if e.shown.state == linkNone || e.over != machine.EventNone {
		return 0, false
	}
	// A client's time begins with its attempt.
	from := c.begun
	if e.heard {
		from = e.heardAt
	}
	at = from.Add(connectSilence)
	return at, e.sentAt < at.Add(unreadMostly)
}

// EndsAt implements machine.Ender.
func (t *ConnectionTracker) EndsAt(at machine.Instant) { t.facts.End = max(t.facts.End, at) }

// Finish reports the ends that are likely. Either the side was told of the end, or it
// heard nothing until the capture ended.
func (t *ConnectionTracker) Finish(out *machine.Effects) {
	for n := max(1, t.count-connectionsKept+1); n <= t.count; n++ {
		c := &t.kept[n%connectionsKept]
		for s := range c.ends {
			t.hadMade(c, machine.Side(s), false, out)
			t.left(c, machine.Side(s), out)
		}
	}
	if t.facts.End > t.last {
		t.silence(t.facts.End, nil, machine.A, out)
	}
}

// left ends a side's connection if it was told of the end, and has sent nothing since.
func (t *ConnectionTracker) left(c *connection, s machine.Side, out *machine.Effects) bool {
	e := &c.ends[s]
	if e.leaving == machine.EventNone || e.sent && e.sentAt >= e.leavingAt.Add(unreadMostly) {
		return false
	}
	t.ends(c, s, e.leaving, machine.Likely, e.leavingBy, out)
	return true
}

func (t *ConnectionTracker) event(kind machine.EventKind, s machine.Side, grade machine.Certainty, number int,
	ref machine.Ref, out *machine.Effects,
) {
	out.Events = append(out.Events, machine.Event{
		Kind: kind, Side: s, Certainty: grade, Sequence: uint32(number), Sequence64: int64(number), At: t.last, Ref: t.ref,
		About: ref, RTT: -1,
	})
}

// Summary returns the counts. The rest is unknown.
func (t *ConnectionTracker) Summary(s machine.Side) machine.Summary {
	return countsOnly(t.sides[s].packets, t.sides[s].bytes)
}

// Learned returns the facts that the tracker was given. A handshake has too few packets
// to show where the tap is.
func (t *ConnectionTracker) Learned() machine.Facts {
	f := t.facts
	if f.Settings == nil {
		f.Settings = Style{}
	}
	if f.Vantage == machine.VantageUnknown {
		f.VantageReason = placeUnknown
	}
	for i := range t.sides {
		f.Client[i] = t.sides[i].role == roleClient
	}
	if c := t.newest(); c != nil {
		f.Opened, f.Ending = c.asked, c.ending()
	}
	return f
}

// ending returns how the connection ended.
func (c *connection) ending() machine.Ending {
	spoke := 0
	for i := range c.ends {
		e := &c.ends[i]
		switch {
		case e.denied != 0 || e.over == gaffer.EventRefused:
			return machine.EndingDenied
		case e.over == gaffer.EventDisconnected:
			return machine.EndingDisconnect
		case e.over == gaffer.EventTimedOut:
			return machine.EndingTimeout
		case e.sent:
			spoke++
		}
	}
	if c.asked && spoke == 1 {
		return machine.EndingUnanswered
	}
	return machine.EndingUnknown
}

// Clone returns an independent copy.
func (t *ConnectionTracker) Clone() machine.Tracker {
	c := *t
	return &c
}

// Size returns the approximate size of a clone, in bytes.
func (t *ConnectionTracker) Size() int { return 3 << 10 }
