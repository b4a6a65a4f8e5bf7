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

// Judge holds what both sides of a connection sent against what references would
// have sent: acks, sequences, notify headers, resends and attempts, heartbeats,
// the handshake and the timeout.
//
//	near side   every reliable message that passed the tap towards it is answered
//	            by one Ack, in order, with the state that its Receiver then has;
//	            what it sends again was pending, and due
//	far side    (over TCP, where nothing is lost on the way, as near but for time)
//	            its acks name only what was sent, and an Ack names its own cause
type Judge struct {
	config riptide.Config
	sides  [2]judged
	life   judgedLife
	m      wire.Message
}

// judgedLife is what both ends know of the connection.
type judgedLife struct {
	begun  bool // its beginning is in the capture
	asked  bool // with its first Connect
	pings  riptide.BeatRoles
	roles  bool
	sure   bool   // and by more than one Connect without data, which may be a server's answer
	beats  [2]int // that tell of each side that it is the client
	client machine.Side
	ended  machine.Instant // when a Disconnect passed; 0: none
	first  machine.Instant // when the first message passed
}

// judged is one side.
type judged struct {
	side      machine.Side
	near      bool // the tap is at it: its times are known
	ordered   bool // what passes the tap towards it reaches it, in this order
	stream    bool // over TCP: when its messages left it is not known
	hole      bool // and bytes of its stream are missing in the capture
	behaviour *riptide.Behaviour
	opinion   machine.Opinion
	joined    bool // met in the middle
	relays    bool // a server that has other clients too

	acks     judgedAcks
	sends    judgedSends
	notes    judgedNotes
	session  judgedSession
	guises   guises
	opening  guise // its first message
	opened   int   // how many it sent, two at most
	parting  guise // its Disconnect
	places   int64 // of what passed the tap towards it
	readTo   int64 // all up to this place was read
	spoke    machine.Instant
	spokeRef machine.Ref
	since    machine.Instant // what it sends from now on it cannot have sent before
}

// left returns when s sent a message. TCP may hold it back until long after: of a
// stream it is the soonest time at which s can have sent it.
func (s *judged) left(p *sight) machine.Instant {
	if s.stream {
		return s.since
	}
	return p.at
}

// New returns the judge of a connection whose sides behave as named. Of facts
// it uses where the tap stands.
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
		s.near = facts.Vantage.Near(s.side)
		s.ordered, s.stream = s.near || c.Stream, c.Stream
		s.opinion.Inferred.Tick = facts.Tick[i]
		s.begin(j.config.Senders[i].Codec.Dialect.Form)
	}
	return j, nil
}

// sight is one message that is judged.
type sight struct {
	at    machine.Instant
	ref   machine.Ref
	bytes []byte
	m     *wire.Message
	is    riptide.Beat // what a heartbeat is
}

// Observe takes the next message.
func (j *Judge) Observe(d *machine.Datagram) {
	s, peer := &j.sides[d.From], &j.sides[d.From.Other()]
	m := &j.m
	err := j.config.Senders[d.From].Codec.Parse(d.Bytes, max(d.Length, len(d.Bytes)), m)
	if err != nil {
		if s.opinion.Divergence == nil {
			s.opinion.Divergence = s.unreadable(j, d, err)
		}
		if !errors.Is(err, base.ErrTrailing) {
			s.keep(d, m.Type, false, false)
			s.opens(d, m.Type, false)
			return // a reference passes it over
		}
	}
	p := &sight{d.At, d.Ref, d.Bytes, m, j.life.pings.Take(d.From, j.config.Senders[d.From].Codec.Dialect, m)}
	if j.life.first == 0 {
		j.life.first = p.at
	}
	j.begins(d.From, p)
	open := s.opinion.Undecided
	if d.Behind || s.stream && d.Length > len(d.Bytes) {
		// Bytes before it are missing, and some of its own may be.
		s.hole = true
		s.opinion.Compared++
		s.opinion.Undecided++
		return
	}
	if s.opinion.Divergence == nil {
		s.opinion.Divergence = j.judge(s, peer, p)
		s.opinion.Undecided = min(s.opinion.Undecided, open+1) // whatever of it is open
	}
	s.relays = s.relays || m.Type == wire.ClientConnected || m.Type == wire.ClientDisconnected || m.Type == wire.Welcome &&
		m.ClientID > 1 || !j.life.begun
	s.keep(d, m.Type, true, s.opinion.Undecided > open || m.Bare)
	s.opens(d, m.Type, true)
	s.spoke, s.spokeRef = p.at, p.ref
	peer.arrive(j, p)
	if m.Type == wire.Disconnect && j.life.ended == 0 {
		j.life.ended = p.at
		if s.near {
			s.parting = newGuise(d, m.Type, true)
		}
	}
}

// begin has the side begin.
func (s *judged) begin(form wire.Form) {
	s.acks.begin(s.behaviour)
	s.notes.begin(s.behaviour)
	s.sends.begin(s.behaviour, form)
	s.session.own.told = -1
}

// settling reports whether, in a capture that began in the middle of the
// connection, what came before may still be under way.
func (j *Judge) settling(at machine.Instant) bool {
	return !j.life.begun && at.Sub(j.life.first) < settlingTime
}

// Source: measured, TestMarginsRiptide
const settlingTime = 2 * time.Second

// begins notes who is the client, and whether the capture has the beginning.
func (j *Judge) begins(from machine.Side, p *sight) {
	l := &j.life
	fresh := !j.sides[0].sends.met && !j.sides[1].sends.met
	asker := &j.sides[from.Other()]
	switch p.m.Type {
	case wire.Connect:
		if l.roles {
			l.sure = l.sure || from != l.client && len(p.bytes) == 1 // it is answered
			return
		}
		l.roles, l.client, l.sure = true, from, len(p.bytes) > 1
		if o := &asker.opening; o.n > 0 && asker.opened == 1 && j.sides[from].opened == 0 &&
			p.at.Sub(o.at) < riptide.HeartbeatInterval && len(p.bytes) == 1 {
			// It is the answer to a Connect, which is there under another type.
			l.client, l.sure, fresh, l.ended = asker.side, true, true, 0
			if asker.near && asker.opinion.Divergence == nil {
				asker.opinion.Divergence = asker.disguised(p, o, wire.Connect,
					"the answer to it shows that it was a Connect: nothing was sent before")
			}
		}
		l.begun, l.asked = fresh, fresh
	case wire.Welcome:
		if first := p.m.Sequence == 1 || p.m.Sequence == 2; first && fresh && !l.begun {
			l.begun = true
			if !l.roles {
				l.roles, l.client = true, from.Other()
			}
		}
	case wire.Heartbeat:
		client := from
		switch {
		case p.is == riptide.BeatAnswer && p.m.HasRTT: // as only the roles tell
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

// judge holds a message of s against the reference's.
func (j *Judge) judge(s, peer *judged, p *sight) *machine.Divergence {
	s.opinion.Compared++
	if v := s.undead(p); v != nil {
		if j.life.ended == s.parting.at {
			j.life.ended = 0
		}
		return v
	}
	if j.life.ended != 0 && p.m.Type != wire.Disconnect && s.left(p).Sub(j.life.ended) > endedSlack && s.near {
		v := s.diverge(p, difference{
			"after-the-end", "riptide.type", "nothing", p.m.Type.String(),
			"the connection had ended",
		}, s.session.endRef)
		if v = j.trusted(s, peer, p, v); v != nil {
			return v
		}
	}
	if v := j.trusted(s, peer, p, s.alive(j, p)); v != nil {
		return v
	}
	if v := s.miscast(j, p); v != nil {
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

// says holds what a message of s says against what the reference would say.
func (j *Judge) says(s, peer *judged, p *sight) *machine.Divergence {
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

// accept takes a message of s for right that the reference would not have sent,
// since what passed the tap towards s is open: the reference goes on from it.
func (s *judged) accept(j *Judge, p *sight) {
	switch t := p.m.Type; {
	case !s.ordered:
	case t == wire.Ack || t == wire.AckExtra:
		open, k := s.acks.open(), s.acks.answered(p.m, j.life.begun)
		if k == len(open) && k > 0 && p.m.Unnamed && !s.acks.receiver.Holds(p.m) {
			k = 0 // it says something of the oldest
		}
		if k < len(open) {
			s.readTo = max(s.readTo, open[k].place)
			s.acks.head += k + 1
		}
		s.acks.adopt(p.m.Last, p.m.AckBits)
	case t == wire.Notify && !p.m.Bare:
		s.notes.join(p.m.Last, uint8(p.m.AckBits))
	}
}

// opens keeps the head of the first message of a side.
func (s *judged) opens(d *machine.Datagram, kind wire.Type, known bool) {
	if s.opened == 0 {
		s.opening = newGuise(d, kind, known)
	}
	s.opened = min(s.opened+1, 2)
}

// keep keeps the head of a message of a side at the tap.
func (s *judged) keep(d *machine.Datagram, kind wire.Type, known, undecided bool) {
	if s.near && s.opinion.Divergence == nil {
		s.guises.keep(d, kind, known, undecided)
	}
}

// endedSlack is for how long a message may be under way out of the process when
// the end of the connection passes.
// Source: measured, TestMarginsRiptide
const endedSlack = time.Second

// arrive takes what passed the tap towards s.
func (s *judged) arrive(j *Judge, p *sight) {
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
			s.acks.passed.pass(p.m.Sequence, j.sides[s.side.Other()].behaviour.First, j.life.begun)
		}
		s.acks.sent(p.m.Sequence)
		s.heard(p)
	case t == wire.Notify && p.m.Bare:
	case t == wire.Notify:
		if s.ordered {
			s.notes.put(judgedArrival{p.m.Sequence, s.places, p.at, p.ref})
		} else {
			s.notes.passed.pass(p.m.Sequence, 1, j.life.begun)
		}
		s.notes.sent(p.m.Sequence)
	default:
		s.hears(j, p)
	}
}

// Finish settles what is open.
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
			s.opinion.Why = "the tap is not at this side: what passed it may have been lost or late behind it"
			if s.ordered {
				s.opinion.Why = "the capture began in the middle of the connection"
			}
		}
	}
}

// Opinion returns what is found of a side.
func (j *Judge) Opinion(s machine.Side) *machine.Opinion { return &j.sides[s].opinion }

// difference is in what a message is not the reference's: by which rule, in which
// field, what was expected there and what stands there, and why.
type difference struct {
	rule, field   string
	expected, got any
	because       string
}

// diverge formats a difference of a message of s. The frames are those that it rests on.
func (s *judged) diverge(p *sight, x difference, frames ...machine.Ref) *machine.Divergence {
	d := machine.Diverge(&machine.Datagram{At: p.at, Ref: p.ref}, x.rule, machine.Differ(x.field, x.expected, x.got),
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
