package judge

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	base "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Judge compares what both sides of a connection sent with what references would have sent.
// It judges Acks, sequences, notify headers, resends and attempts. It judges heartbeats, the
// handshake and the timeout.
//
//	near side   each reliable message that passed the tap towards it is answered by
//	            one Ack, in order, with the state that its Receiver then has. What
//	            it sends again was pending, and due.
//	far side    its Acks name only what was sent, and each names its own cause. Over
//	            TCP nothing is lost on the way, so it is judged as a near side, but
//	            for times.
type Judge struct {
	config     riptide.Config
	sides      [2]judged
	connection judgedConnection
	m          wire.Message
}

// judgedConnection is what is known of the connection as a whole.
type judgedConnection struct {
	begun  bool // its beginning is in the capture
	asked  bool // with its first Connect
	pings  riptide.BeatRoles
	roles  bool
	sure   bool   // client is certain: by more than one Connect without data, which may be a server's answer
	beats  [2]int // how many heartbeats tell of each side that it is the client
	client machine.Side
	ended  machine.Instant // when a Disconnect passed; 0 for none

	answered bool // an Ack has passed
	// welcome is a Welcome that nothing passed before. It is the server's if the other side answers it.
	welcome struct {
		known bool
		from  machine.Side
	}
	first machine.Instant // when the first message passed
}

// judged is one side of a connection.
type judged struct {
	side      machine.Side
	near      bool // the tap is at it, so its times are known
	ordered   bool // all that passes the tap towards it reaches it, in order
	stream    bool // it sends over TCP, so when its messages left is not known
	supposed  bool // near, and a way off it the tap would see the same
	hole      bool // bytes of its stream are missing in the capture, or found late
	cut       bool // bytes of what it sent are missing in the capture, as the capture itself shows
	behaviour *riptide.Behaviour
	opinion   machine.Opinion
	joined    bool // the capture began in the middle of its connection
	relays    bool // it is a server with other clients too

	acks     judgedAcks
	sends    judgedSends
	notes    judgedNotes
	session  judgedSession
	recent   recentHeads
	opening  messageHead // the head of its first message
	opened   int         // how many it sent, 2 at most
	parting  messageHead // the head of its Disconnect
	places   int64       // how many messages passed the tap towards it
	readTo   int64       // all up to this place was read
	spoke    machine.Instant
	spokeRef machine.Ref
	since    machine.Instant // what it sends from now on, it sent no sooner
}

// left returns when s sent a message. TCP may hold a message back for long. Of a stream it is
// the soonest time at which s can have sent the message.
func (s *judged) left(p *observed) machine.Instant {
	if s.stream {
		return s.since
	}
	return p.at
}

// New returns the judge of a connection whose sides have the named behaviours. Of facts it uses
// where the tap stands, and the ticks. It fails for an unknown behaviour.
func New(c riptide.Config, facts machine.Facts, behaviours [2]string) (*Judge, error) {
	j := &Judge{config: c}
	for i := range j.sides {
		b := riptide.LookupBehaviour(behaviours[i])
		if b == nil {
			var names []string
			for _, b := range riptide.Behaviours {
				names = append(names, b.Name)
			}
			return nil, fmt.Errorf("behaviour %q: expected one of %s", behaviours[i], strings.Join(names, ", "))
		}
		s := &j.sides[i]
		s.side, s.behaviour = machine.Side(i), b
		s.near, s.supposed = facts.Vantage.Near(s.side), facts.Supposed[i]
		s.ordered, s.stream = s.near || c.Stream, c.Stream
		s.opinion.Inferred.Tick = facts.Tick[i]
		s.begin(j.config.Senders[i].Codec.Dialect.Form)
	}
	return j, nil
}

// observed is one message that is judged.
type observed struct {
	at    machine.Instant
	ref   machine.Ref
	bytes []byte
	m     *wire.Message
	is    riptide.Beat // what a heartbeat is
}

// Observe judges the next message.
func (j *Judge) Observe(d *machine.Datagram) {
	s, peer := &j.sides[d.From], &j.sides[d.From.Other()]
	s.hole, s.cut = s.hole || d.Gaps, s.cut || d.Gaps
	m := &j.m
	err := j.config.Senders[d.From].Codec.Parse(d.Bytes, max(d.Length, len(d.Bytes)), m)
	if err != nil {
		if s.opinion.Divergence == nil {
			s.opinion.Divergence = s.unreadable(j, d, err)
		}
		if !errors.Is(err, base.ErrTrailing) {
			s.keep(d, m.Type, false, false)
			s.opens(d, m.Type, false)
			s.cut = s.cut || d.Length > len(d.Bytes)
			return // a reference ignores it
		}
	}
	p := &observed{d.At, d.Ref, d.Bytes, m, j.connection.pings.Take(d.From, j.config.Senders[d.From].Codec.Dialect, m)}
	if j.connection.first == 0 {
		j.connection.first = p.at
	}
	j.begins(d.From, p)
	open := s.opinion.Undecided
	if d.Behind || s.stream && d.Length > len(d.Bytes) {
		// Bytes before it are missing, and some of its own may be.
		s.hole, s.cut = true, true
		s.opinion.Compared++
		s.opinion.Undecided++
		return
	}
	if s.opinion.Divergence == nil {
		s.opinion.Divergence = j.judge(s, peer, p)
		most := open + 1 // one message counts once, whatever of it is open
		if s.opinion.Divergence != nil {
			most = open // it is decided: it is wrong
		}
		s.opinion.Undecided = min(s.opinion.Undecided, most)
	}
	s.relays = s.relays || m.Type == wire.ClientConnected || m.Type == wire.ClientDisconnected || m.Type == wire.Welcome &&
		m.ClientID > 1 || !j.connection.begun
	s.keep(d, m.Type, true, s.opinion.Undecided > open || m.Bare)
	s.opens(d, m.Type, true)
	s.spoke, s.spokeRef = p.at, p.ref
	peer.arrive(j, p)
	if m.Type == wire.Disconnect && j.connection.ended == 0 {
		j.connection.ended = p.at
		if s.near {
			s.parting = newHead(d, m.Type, true)
		}
	}
}

// begin sets the side to the beginning of a connection.
func (s *judged) begin(form wire.Form) {
	s.acks.begin(s.behaviour)
	s.notes.begin(s.behaviour)
	s.sends.begin(s.behaviour, form)
	s.session.own.told = -1
}

// settling reports whether messages from before the capture may still be under way. That is so
// for some time if the capture began in the middle of the connection.
func (j *Judge) settling(at machine.Instant) bool {
	return !j.connection.begun && at.Sub(j.connection.first) < settlingTime
}

// settlingTime is how long messages from before the capture may still be under way.
// Source: measured, TestMarginsRiptide
const settlingTime = 2 * time.Second

// begins finds out which side is the client, and whether the capture has the beginning.
func (j *Judge) begins(from machine.Side, p *observed) {
	l := &j.connection
	fresh := !j.sides[0].sends.met && !j.sides[1].sends.met
	asker := &j.sides[from.Other()]
	switch p.m.Type {
	case wire.Connect:
		if l.roles {
			l.sure = l.sure || from != l.client && len(p.bytes) == 1 // a Connect that is answered
			return
		}
		l.roles, l.client, l.sure = true, from, len(p.bytes) > 1
		if o := &asker.opening; o.n > 0 && asker.opened == 1 && j.sides[from].opened == 0 &&
			p.at.Sub(o.at) < riptide.HeartbeatInterval && len(p.bytes) == 1 {
			// This answers a Connect, and the Connect is there under another type.
			l.client, l.sure, fresh, l.ended = asker.side, true, true, 0
			if asker.near && asker.opinion.Divergence == nil && !j.lacks() {
				asker.opinion.Divergence = asker.mistyped(p, o, wire.Connect,
					"the answer to it shows that it was a Connect: nothing was sent before")
			}
		}
		l.begun, l.asked = fresh, fresh
	case wire.Welcome:
		switch first := p.m.Sequence == 1 || p.m.Sequence == 2; {
		case first && l.begun && !l.sure && l.client == from && asker.opened == 0:
			// The server welcomes first: its Connect answers one from before the capture.
			l.client, l.asked = from.Other(), false
		case !first || l.begun:
		case fresh && j.config.Senders[from].Codec.Dialect.WelcomeOneWay:
			j.welcomed(from)
		case fresh:
			// It can be the client's: then the server's passed before the capture.
			l.welcome.known, l.welcome.from = !l.answered, from
		case l.welcome.known && from != l.welcome.from:
			j.welcomed(l.welcome.from)
		}
	case wire.Ack, wire.AckExtra:
		l.answered = true
		if from == l.welcome.from {
			l.welcome.known = false // it answers a message from before the capture
		}
	case wire.Heartbeat:
		client := from
		switch {
		case p.is == riptide.BeatAnswer && p.m.HasRTT: // only the roles tell the two apart
			client = from.Other()
		case p.is != riptide.BeatPing:
			return
		}
		if l.beats[client]++; !l.roles || !l.sure && l.beats[client] > 1 {
			l.client, l.sure = client, l.roles
			l.roles = true
		}
	}
}

// welcomed records that the capture has the beginning of the connection, by the server's Welcome.
func (j *Judge) welcomed(server machine.Side) {
	l := &j.connection
	l.begun = true
	if !l.roles {
		l.roles, l.client = true, server.Other()
	}
}

// judge compares a message of s with the reference's.
func (j *Judge) judge(s, peer *judged, p *observed) *machine.Divergence {
	s.opinion.Compared++
	if v := s.afterDisconnect(p); v != nil && !j.lacks() {
		if j.connection.ended == s.parting.at {
			j.connection.ended = 0
		}
		return v
	}
	if j.connection.ended != 0 && p.m.Type != wire.Disconnect && s.left(p).Sub(j.connection.ended) > endedSlack && s.near {
		v := s.diverge(p, difference{
			AfterTheEnd, machine.RestsOnPeer, "riptide.type", "nothing", p.m.Type.String(),
			"the connection had ended",
		}, s.session.endRef)
		if v = j.trusted(s, peer, p, v); v != nil {
			return v
		}
	}
	if !j.lacks() { // all of these rest on an absence
		if v := j.trusted(s, peer, p, s.goesOn(p)); v != nil {
			return v
		}
		if v := j.trusted(s, peer, p, s.alive(j, p)); v != nil {
			return v
		}
	}
	if v := s.wrongRole(j, p); v != nil {
		return v
	}
	v := j.says(s, peer, p)
	if v == nil {
		return nil
	}
	if v = j.trusted(s, peer, p, v); v == nil {
		s.accept(j, p)
	}
	return v
}

// says compares what a message of s says with what the reference would say.
func (j *Judge) says(s, peer *judged, p *observed) *machine.Divergence {
	switch t := p.m.Type; {
	case t == wire.Ack || t == wire.AckExtra:
		return s.answers(j, peer, p)
	case t.Reliable():
		s.opinion.Inferred.Submitted++
		s.welcomes(j, p)
		return s.sendsReliable(j, p)
	case t == wire.Notify && !p.m.Bare:
		s.opinion.Inferred.Submitted++
		return s.sendsNotify(j, peer, p)
	case t == wire.Unreliable || t == wire.Notify:
		s.opinion.Inferred.Submitted++
	default:
		return s.speaks(j, p)
	}
	return nil
}

// accept sets the reference to a message that it would not have sent. What passed the tap
// towards s is open, so the reference goes on from the message.
func (s *judged) accept(j *Judge, p *observed) {
	switch t := p.m.Type; {
	case !s.ordered:
	case t == wire.Ack || t == wire.AckExtra:
		open, k := s.acks.open(), s.acks.answered(p.m, j.connection.begun)
		if k == len(open) && k > 0 && p.m.Unnamed && !s.acks.receiver.Holds(p.m) {
			k = 0 // it says something of the oldest arrival
		}
		if k < len(open) {
			s.readTo = max(s.readTo, open[k].place)
			s.acks.head += k + 1
		}
		s.acks.adopt(p.m.Last, p.m.AckBits)
	case t == wire.Notify && !p.m.Bare:
		s.notes.join(p.m.Last, uint8(p.m.AckBits))
		s.notes.met, s.notes.next = true, p.m.Sequence+1
	case t.Reliable() && !s.behaviour.OneSequence:
		s.sends.accept(p, s.behaviour)
	}
}

// opens keeps the head of the first message of a side.
func (s *judged) opens(d *machine.Datagram, kind wire.Type, known bool) {
	if s.opened == 0 {
		s.opening = newHead(d, kind, known)
	}
	s.opened = min(s.opened+1, 2)
}

// keep keeps the head of a message of a side at the tap.
func (s *judged) keep(d *machine.Datagram, kind wire.Type, known, undecided bool) {
	if s.near && s.opinion.Divergence == nil {
		s.recent.keep(d, kind, known, undecided)
	}
}

// endedSlack is how long a message may take to leave the process after the connection has
// ended.
// Source: measured, TestMarginsRiptide
const endedSlack = time.Second

// arrive records a message that passed the tap towards s.
func (s *judged) arrive(j *Judge, p *observed) {
	s.places++
	switch t := p.m.Type; {
	case t == wire.Ack || t == wire.AckExtra:
		if s.ordered {
			s.cleared(j, p)
		}
	case t.Reliable():
		if s.ordered {
			s.acks.put(judgedArrival{p.m.Sequence, s.places, p.at, p.ref})
		} else {
			s.acks.passed.pass(p.m.Sequence, j.sides[s.side.Other()].behaviour.First, j.connection.begun)
		}
		s.acks.sent(p.m.Sequence)
		s.heard(p)
	case t == wire.Notify && p.m.Bare:
	case t == wire.Notify:
		if s.ordered {
			s.notes.put(judgedArrival{p.m.Sequence, s.places, p.at, p.ref})
		} else {
			s.notes.passed.pass(p.m.Sequence, 1, j.connection.begun)
		}
		s.notes.sent(p.m.Sequence)
	default:
		s.hears(j, p)
	}
}

// Finish ends the flow.
func (j *Judge) Finish() {
	j.withdraw()
	for i := range j.sides {
		s := &j.sides[i]
		s.opinion.Undecided = min(s.opinion.Undecided, s.opinion.Compared)
		if s.sends.overLimit > 0 {
			s.opinion.Why = fmt.Sprintf("a message was sent %d times: the application has lifted the limit of %d",
				s.sends.overLimit, s.behaviour.Limit)
		}
		if s.opinion.Undecided > 0 && s.opinion.Why == "" {
			s.opinion.Why = machine.NotCapturedHere
			switch {
			case j.lacks():
				s.opinion.Why = "the capture lacks bytes of this connection, so no side is blamed for what was in them"
			case s.ordered:
				s.opinion.Why = "the capture began in the middle of the connection"
			}
		}
	}
}

// Opinion returns what is found of a side.
func (j *Judge) Opinion(s machine.Side) *machine.Opinion { return &j.sides[s].opinion }

// difference is how a message differs from the reference's: by which rule, in which field, and
// why. rests is what the reason rests on.
type difference struct {
	rule          *machine.Rule
	rests         machine.RestsOn
	field         string
	expected, got any
	because       string
}

// diverge returns the divergence of a message of s. The frames are those that it follows from.
func (s *judged) diverge(p *observed, x difference, frames ...machine.Ref) *machine.Divergence {
	d := machine.Diverge(&machine.Datagram{At: p.at, Ref: p.ref}, x.rule, x.rests,
		machine.Differ(x.field, x.expected, x.got),
		x.because, frames...)
	d.Reference, d.Captured = s.state(p), told(p.m)
	return d
}

// window draws the newest id and the bits behind it.
func window(last uint16, acks uint64, width int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d and before it ", last)
	for i := range width {
		if acks>>i&1 == 1 {
			b.WriteRune(machine.CellReceived.Rune())
		} else {
			b.WriteRune(machine.CellEmpty.Rune())
		}
	}
	return b.String()
}
