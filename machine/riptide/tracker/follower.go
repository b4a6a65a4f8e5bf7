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

// follower is a tracker to which the vantage is known.
type follower struct {
	config riptide.Config
	facts  machine.Facts
	sides  [2]side
	place  vantage.Evidence
	beats  riptide.BeatRoles
	early  *earlyBeat // a heartbeat that was seen before the roles were known; nil for none
	mores  int        // that lives have
	lent   []*more    // of ended lives, whose bodies the caller may still read
	free   []*more

	begun  bool // the connection's beginning is in the capture
	client machine.Side
	roles  bool // client is known
	ended  bool // a Disconnect has passed
	last   machine.Instant
	// settled is up to when no life can end.
	settled machine.Instant
	life    connection
	m       wire.Message

	releasing bool // held messages are being taken
	weighing  bool // the vantage was inferred: what else passes may tell better
}

// follow gives the follower of a connection that the tap saw from a place.
func follow(c riptide.Config, facts machine.Facts, v machine.Vantage, reason string) *follower {
	known, learned := facts.Settings.(proofs)
	told := facts.Vantage != machine.VantageUnknown && !learned
	t := &follower{config: c, facts: facts, place: vantage.New(c.Stream)}
	t.facts.Vantage, t.facts.VantageReason = v, reason
	for i := range t.sides {
		s, speaker := &t.sides[i], &c.Senders[i]
		b := riptide.BehaviourOf(speaker.Codec.Dialect, speaker.Builds)
		*s = side{
			side: machine.Side(i), near: v.Near(machine.Side(i)), stream: c.Stream, behaviour: b,
			receiver: riptide.NewReceiver(b), sender: riptide.NewSender(b), notifyIn: riptide.NewNotifyReceiver(b),
			loose: lives{loose: true}, smoothed: -1,
		}
		s.ordered = s.near || s.stream
		s.mayPort = speaker.Builds.Mixed(func(b *wire.Build) bool { return b.PingStays })
		s.shown = told || s.stream || known.shown[i]
		if s.near {
			s.proved = known.read[i]
		}
	}
	return t
}

// observe takes the next message.
func (t *follower) observe(p *sighting, out *machine.Effects) {
	t.free, t.lent = append(t.free, t.lent...), t.lent[:0]
	t.step(p, out)
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
		t.ageAbsent(s, t.last, true, out)
	}
	t.endFindings(out)
}

// step takes one message.
func (t *follower) step(p *sighting, out *machine.Effects) {
	t.last = p.at
	s, peer := &t.sides[p.from], &t.sides[p.from.Other()]
	m := &t.m
	codec := &t.config.Senders[p.from].Codec
	if err := codec.Parse(p.bytes, p.length, m); err != nil && !errors.Is(err, base.ErrTrailing) {
		s.packets++
		s.bytes += uint64(p.length)
		if !errors.Is(err, base.ErrSnapped) {
			out.Report(riptide.Malformed, p.from, machine.Certain, p.at, p.ref, 0, float64(p.length))
		}
		return
	}
	if m.Type == wire.Connect && !t.releasing && t.reopens(p) {
		out.NewSession = true
		return
	}
	s.packets++
	s.bytes += uint64(p.length)
	s.previous, s.spoke, s.spokeRef = s.spoke, p.at, p.ref
	peer.addressed = p.at
	if limit := codec.Dialect.MaxMessage; p.length > limit {
		out.Report(riptide.Oversize, p.from, machine.Certain, p.at, p.ref, 0, float64(p.length))
	}
	if m.Type == wire.Disconnect {
		s.left, t.ended = p.at, true
		if peer.toldLeft == 0 && !p.behind {
			peer.toldLeft = p.at
		}
	} else if s.near && !t.config.Stream {
		// What leaves by a stream may have waited for its window: it does not tell
		// that the side still reads.
		s.proves(p.at.Add(-riptide.TickSlack), 0)
	}
	if t.weighing {
		if !t.releasing {
			t.place.Weigh(p.at, p.from, &t.config.Senders[p.from], m)
		}
		s.shown = s.shown || t.place.Shows(p.from)
	}
	t.settle(p.at, out)
	if t.unnamed(peer) {
		s.unnamed.judge(p.at, 2*s.roundTrip()+riptide.TickSlack, &s.both)
	}
	is := t.beats.Take(p.from, codec.Dialect, m)
	if !p.behind {
		t.session(p, m, is, out)
	}
	t.faults(s, p, m, out)
	switch {
	case m.Type == wire.Ack || m.Type == wire.AckExtra:
		peer.unnamed.acks++
		answers := answerOf(m)
		if s.ordered {
			answers = t.witness(s, peer, p, m, out)
		}
		t.evidence(s, peer, p, m, answers, out)
		if !p.behind {
			t.acked(peer, p, m, out)
		}
	case m.Type.Reliable():
		if t.unnamed(peer) && !t.config.Stream {
			s.unnamed.sent(p.at)
		}
		t.reliable(s, peer, p, m, out)
	case m.Type == wire.Unreliable || m.Bare:
		t.unreliable(s, p, m, out)
	case m.Type == wire.Notify:
		t.notify(s, peer, p, m, out)
	}
}

// reopens reports whether a Connect begins another connection on the addresses:
// after the end of one, said or by timeout.
func (t *follower) reopens(p *sighting) bool {
	s, peer := &t.sides[p.from], &t.sides[p.from.Other()]
	return t.ended || (s.met || peer.met) && p.at.Sub(max(s.spoke, peer.spoke)) > riptide.Timeout
}

// proofs are Facts.Settings of this protocol.
type proofs struct {
	read  [2]proof // up to where each side is known to have read
	shown [2]bool  // the tap is shown to stand at the side
}

// learned gives what another run over the flow can start with.
func (t *follower) learned() machine.Facts {
	f := t.facts
	if t.weighing {
		f.Vantage, f.VantageReason = t.stands()
	}
	if t.roles {
		f.Tick[t.client] = t.life.tick()
	}
	var p proofs
	for i := range t.sides {
		s := &t.sides[i]
		p.read[i], p.shown[i] = s.proof, s.near && s.grade() == machine.Certain
	}
	f.Settings = p
	return f
}

// size gives the bytes that a clone takes, about.
func (t *follower) size() int {
	n := int(unsafe.Sizeof(*t)) + t.mores*(int(unsafe.Sizeof(more{}))+64)
	for i := range t.sides {
		s := &t.sides[i]
		for _, l := range s.modes() {
			n += len(l.slots)*int(unsafe.Sizeof(life{})) + len(l.index)*8
		}
		n += len(s.queue.items)*int(unsafe.Sizeof(arrival{})) + len(s.absent)*int(unsafe.Sizeof(absent{}))
	}
	return n
}

// clone gives an independent copy.
func (t *follower) clone() *follower {
	c := *t
	c.place = t.place.Clone()
	if t.early != nil {
		early := *t.early
		c.early = &early
	}
	c.lent, c.free = nil, nil
	c.life.clients = slices.Clone(t.life.clients)
	for i := range c.sides {
		s, from := &c.sides[i], &t.sides[i]
		s.receiver, s.sender, s.notifyIn = from.receiver.Clone(), from.sender.Clone(), from.notifyIn.Clone()
		s.sent, s.notes, s.loose = from.sent.clone(), from.notes.clone(), from.loose.clone()
		s.queue.items = slices.Clone(from.queue.items)
		s.missed = slices.Clone(from.missed)
		s.leaps = slices.Clone(from.leaps)
		s.told = slices.Clone(from.told)
		s.absent = slices.Clone(from.absent)
	}
	return &c
}
