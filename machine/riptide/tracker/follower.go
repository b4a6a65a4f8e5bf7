package tracker

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/vantage"
	base "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// follower is a tracker that knows where the tap is.
type follower struct {
	config      riptide.Config
	facts       machine.Facts
	sides       [2]side
	place       vantage.Evidence
	beats       riptide.BeatRoles
	early       *earlyBeat // a heartbeat from before the roles were known; nil if there is none
	detailCount int        // number of details that lives have
	lent        []*details // of ended lives: the caller may still read their bodies
	free        []*details

	begun  bool // the connection's beginning is in the capture
	client machine.Side
	roles  bool            // client is known
	ended  bool            // a Disconnect has passed
	began  machine.Instant // when its first message passed
	last   machine.Instant
	// settled is the time until which no life can end.
	settled machine.Instant
	conn    connection
	seen    counted
	m       wire.Message

	releasing bool // held messages are being processed
	weighing  bool // the vantage was inferred: later messages may improve it
}

// follow returns the follower of a connection with the given vantage.
func follow(c riptide.Config, facts machine.Facts, v machine.Vantage, reason string) *follower {
	known, learned := facts.Settings.(proofs)
	told := facts.Vantage != machine.VantageUnknown && !learned
	t := &follower{config: c, facts: facts, place: vantage.New(c.Stream)}
	t.facts.Vantage, t.facts.VantageReason = v, reason
	for i := range t.sides {
		s, speaker := &t.sides[i], &c.Senders[i]
		released := riptide.BehaviourOf(speaker.Codec.Dialect, speaker.Builds)
		b := released
		if known.repair[i] == repairSettled {
			b = repaired
		}
		*s = side{
			side: machine.Side(i), behaviour: b, released: released, repair: known.repair[i], smoothed: -1,
			unreliable: lives{anonymous: true},
		}
		s.repairable = repairable(speaker)
		s.maybePort = maybePort(b, speaker.Builds)
		s.in.receiver, s.out.sender = riptide.NewReceiver(b), riptide.NewSender(b)
		s.notifyIn.receiver = riptide.NewNotifyReceiver(b)
		s.tap.near, s.tap.stream = v.Near(s.side), c.Stream
		s.tap.ordered = s.tap.near || s.tap.stream
		s.tap.shown = told || s.tap.stream || known.shown[i]
		if s.tap.near {
			s.read.learned = known.read[i]
		}
	}
	return t
}

// maybePort reports whether a side that counts as the library may be Pytide.
func maybePort(b *riptide.Behaviour, builds wire.BuildSet) bool {
	return !b.Port && !builds.All(func(b *wire.Build) bool { return !b.PingStays })
}

// narrowed takes the builds that the sides can be by what has passed.
func (t *follower) narrowed(builds [2]wire.BuildSet) {
	for i := range t.sides {
		if s := &t.sides[i]; builds[i] != t.config.Senders[i].Builds {
			t.config.Senders[i].Builds = builds[i]
			s.maybePort = maybePort(s.behaviour, builds[i])
			s.repairable = repairable(&t.config.Senders[i])
		}
	}
}

// observe processes the next message.
func (t *follower) observe(p *step) {
	if len(t.lent) > 0 {
		t.free, t.lent = append(t.free, t.lent...), t.lent[:0]
	}
	t.take(p)
}

// finish settles what is still open when the capture ends.
func (t *follower) finish(out *machine.Effects) {
	t.ends(out)
	for i := range t.sides {
		s := &t.sides[i]
		for _, l := range s.modes() {
			for l.oldest() != nil {
				t.end(s, l, out)
			}
		}
		t.settleAbsent(s, t.last, true, out)
	}
	t.endFindings(out)
}

// take processes one message. Of p, it sets the message and the sides.
func (t *follower) take(p *step) {
	if t.last = p.at; t.began == 0 {
		t.began = p.at
	}
	p.m, p.own, p.peer = &t.m, &t.sides[p.from], &t.sides[p.from.Other()]
	s, peer, m, out := p.own, p.peer, p.m, p.out
	codec := &t.config.Senders[p.from].Codec
	if err := codec.Parse(p.bytes, p.length, m); err != nil && !errors.Is(err, base.ErrTrailing) {
		s.figures.packet(p.length)
		if !errors.Is(err, base.ErrSnapped) {
			out.At(p.at, p.ref).Report(riptide.Malformed, p.from, machine.Certain, 0, float64(p.length))
		}
		return
	}
	if m.Type == wire.Connect && !t.releasing && t.reopens(p) {
		out.NewSession = true
		return
	}
	if p.gaps && s.tap.stream {
		s.tap.lacks, peer.tap.lacks = max(s.tap.lacks, 1), max(peer.tap.lacks, 1)
	}
	t.seen.take(p.from, m)
	s.figures.packet(p.length)
	s.activity.spoke(p.at, p.ref)
	peer.activity.addressed = p.at
	if limit := codec.Dialect.MaxMessage; p.length > limit {
		out.At(p.at, p.ref).Report(riptide.Oversize, p.from, machine.Certain, 0, float64(p.length))
	}
	if m.Type == wire.Disconnect {
		s.end.left, t.ended = p.at, true
		if peer.end.peerLeft == 0 && !p.behind {
			peer.end.peerLeft = p.at
		}
	} else if s.tap.near && !t.config.Stream {
		// TCP may have held the message back, so it does not prove that the side still reads.
		s.read.proves(p.at.Add(-riptide.TickSlack), 0)
	}
	if t.weighing {
		if !t.releasing {
			t.place.Weigh(p.at, p.from, &t.config.Senders[p.from], m)
		}
		s.tap.shown = s.tap.shown || t.place.Shows(p.from)
	}
	t.settle(p.at, out)
	if t.unnamed(peer) {
		s.path.CountUnnamed(p.at, 2*s.roundTrip()+riptide.TickSlack)
	}
	p.beat = t.beats.Take(p.from, codec.Dialect, m)
	if !p.behind {
		t.session(p)
	}
	t.faults(p)
	t.message(p)
}

// message records what a message says about messages: it is one itself, or acks others.
func (t *follower) message(p *step) {
	switch m := p.m; {
	case m.Type == wire.Ack || m.Type == wire.AckExtra:
		p.peer.path.Unnamed.Ack()
		answers := answerOf(m)
		if p.own.tap.ordered {
			answers = t.witness(p)
		}
		t.evidence(p, answers)
		if !p.behind {
			t.acked(p)
		}
	case m.Type.Reliable():
		if t.unnamed(p.peer) && !t.config.Stream {
			p.own.path.Unnamed.Copy(p.at)
		}
		t.reliable(p)
	case m.Type == wire.Unreliable || m.Bare:
		t.unreliable(p)
	case m.Type == wire.Notify:
		t.notify(p)
	}
}

// reopens reports whether a Connect begins another connection between the same addresses. The old
// one must have ended by a Disconnect or by timeout.
func (t *follower) reopens(p *step) bool {
	s, peer := p.own, p.peer
	return t.ended || (s.out.met || peer.out.met) && p.at.Sub(max(s.activity.last, peer.activity.last)) > riptide.Timeout
}

// proofs are Facts.Settings of this protocol.
type proofs struct {
	read  [2]proof // the time up to which each side is known to have read
	shown [2]bool  // the tap is shown to be at the side
	// repair is repairNone or repairSettled where the windows of a side showed its version.
	repair [2]repair
	builds [2]wire.BuildSet // what each side can be; empty where nothing was learned
}

// learned returns the facts that another run over the flow can start with.
func (t *follower) learned() machine.Facts {
	f := t.facts
	if t.weighing {
		f.Vantage, f.VantageReason = t.placeTap()
	}
	if t.roles {
		f.Client[t.client] = true
		f.Tick[t.client] = t.conn.clock.Tick()
	}
	f.Opened, f.Ending = t.conn.attempt.count > 0, t.conn.ending()
	var p proofs
	for i := range t.sides {
		s := &t.sides[i]
		p.read[i], p.shown[i] = s.read.shown, s.tap.near && s.tap.grade() == machine.Certain
		if p.repair[i] = s.repair; s.repair == repairShown {
			p.repair[i] = repairSettled
		}
		if !f.Marked {
			f.Supposed[i] = f.Vantage.Near(s.side) && !s.tap.shown
		}
		if t.weighing {
			f.Prompt[i], f.Scrambled[i] = t.place.Shows(s.side), t.place.Scrambled(s.side)
		}
	}
	f.Settings = p
	return f
}

// size returns about how many bytes a clone takes.
func (t *follower) size() int {
	n := int(unsafe.Sizeof(*t)) + t.detailCount*(int(unsafe.Sizeof(details{}))+bodyRoom)
	for i := range t.sides {
		s := &t.sides[i]
		for _, l := range s.modes() {
			n += len(l.slots)*int(unsafe.Sizeof(life{})) + len(l.index)*8
		}
		n += len(s.in.queue.items)*int(unsafe.Sizeof(arrival{})) + len(s.out.absent)*int(unsafe.Sizeof(absent{}))
	}
	return n
}

// clone returns an independent copy.
func (t *follower) clone() *follower {
	c := *t
	c.place = t.place.Clone()
	if t.early != nil {
		early := *t.early
		c.early = &early
	}
	c.lent, c.free = nil, nil
	c.conn.clients = slices.Clone(t.conn.clients)
	for i := range c.sides {
		c.sides[i] = t.sides[i].clone()
	}
	return &c
}
