package riptide

import (
	"errors"
	"time"
	"unsafe"

	"github.com/ackscope/ackscope/machine"
	base "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// Config says how the flow is read.
type Config struct {
	Senders [2]Speaker
	// Stream is set where the messages come over TCP: what passes the tap then
	// reaches the other end, in this order.
	Stream bool
	// OneHost is set where both ends have the same address: the tap is at both
	// then, unless one of them is a relay.
	OneHost bool
	// Values tells what the values of a message show, of which b was captured; nil
	// where nothing is known of values.
	Values func(from machine.Side, m *wire.Message, b []byte) ValueFaults
}

// Speaker is what one end speaks.
type Speaker struct {
	Codec  wire.Codec
	Builds wire.BuildSet // the implementations that it can be
}

// Tracker rebuilds from a capture what both ends of a connection knew, and the
// lives of their messages.
//
// Every reliable message that a side has read is answered by an Ack at once and
// in order, so its Acks are the witness of its reads. What a side then is known
// to have received depends on where the tap stands:
//
//	near (witness.go)    the tap is at the side. What passed the tap lies in its
//	                     socket, in order; its Acks tell how much of it was read,
//	                     and the Receiver predicts what was handed over. Acks to it
//	                     are read in order, so its Sender is exact too.
//	far (evidence.go)    the side is known by what its Acks name.
//
// Where the tap stands is found from the first messages (vantage.go), which are
// held until it is; a known vantage may be given in Facts instead. What hangs on
// it is certain only where the tap is shown to stand there: see side.grade.
type Tracker struct {
	config  Config
	facts   machine.Facts
	open    bool     // the vantage is known: sides are valid
	sides   *[2]side // nobody until the vantage is known
	reaches [2]reach
	held    []heldMessage
	bytes   []byte  // of held messages
	mores   int     // that lives have
	lent    []*more // of ended lives, whose bodies the caller may still read
	free    []*more

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

// sighting is one message as it passed the tap.
type sighting struct {
	at     machine.Instant
	ref    machine.Ref
	from   machine.Side
	bytes  []byte
	length int
}

// heldMessage is one that waits for the vantage; its bytes are in Tracker.bytes.
type heldMessage struct {
	sighting
	end int
}

// nobody is what is known of both ends while nothing is; it is never written to.
// Very many flows may be too short for more.
var nobody [2]side

// NewTracker gives the tracker of a flow. facts are what an earlier run over the
// same flow learned; the zero value if none.
func NewTracker(c Config, facts machine.Facts) *Tracker {
	t := &Tracker{config: c, facts: facts, sides: &nobody}
	switch {
	case facts.Vantage != machine.VantageUnknown:
		t.decide(facts.Vantage, facts.VantageReason)
	case c.OneHost:
		t.decide(machine.VantageBoth, "both ends have the same address")
		t.weighing = true
	}
	return t
}

func (t *Tracker) decide(v machine.Vantage, reason string) {
	known, learned := t.facts.Settings.(proofs)
	told := t.facts.Vantage != machine.VantageUnknown && !learned
	t.facts.Vantage, t.facts.VantageReason, t.open = v, reason, true
	t.sides = new([2]side)
	for i := range t.sides {
		s := &t.sides[i]
		b := BehaviourOf(t.config.Senders[i].Codec.Dialect, t.config.Senders[i].Builds)
		*s = side{
			side: machine.Side(i), near: v.Near(machine.Side(i)), behaviour: b,
			receiver: NewReceiver(b), sender: NewSender(b), notifyIn: NewNotifyReceiver(b),
			loose: lives{loose: true}, smoothed: -1,
		}
		s.ordered = s.near || t.config.Stream
		s.stream = t.config.Stream
		s.mayPort = t.config.Senders[i].Builds.Mixed(func(b *wire.Build) bool { return b.PingStays })
		s.shown = told || t.config.Stream || known.shown[i]
		if s.near {
			s.proved = known.read[i]
		}
	}
}

// Observe takes the next message of the flow.
func (t *Tracker) Observe(d *machine.Datagram, out *machine.Effects) {
	t.free, t.lent = append(t.free, t.lent...), t.lent[:0]
	p := sighting{d.At, d.Ref, d.From, d.Bytes, max(d.Length, len(d.Bytes))}
	if t.open {
		t.step(&p, out)
		return
	}
	if m := &t.m; t.config.Senders[p.from].Codec.Fits(p.bytes, p.length, m) {
		weigh(&t.reaches, &p, m)
		if m.Type == wire.Connect && t.ended {
			v, reason, _ := judgeVantage(&t.reaches)
			t.release(v, reason, out)
			t.step(&p, out)
			return
		}
		t.ended = t.ended || m.Type == wire.Disconnect
	}
	t.bytes = append(t.bytes, p.bytes...)
	t.held = append(t.held, heldMessage{p, len(t.bytes)})
	if n := len(t.held); n >= holdLeast && n&(n-1) == 0 {
		v, reason, sure := judgeVantage(&t.reaches)
		if sure || n >= holdMost {
			t.release(v, reason, out)
		}
	}
}

// release ends the holding back.
func (t *Tracker) release(v machine.Vantage, reason string, out *machine.Effects) {
	t.decide(v, reason)
	t.weighing = true
	held, bytes := t.held, t.bytes
	t.held, t.bytes = nil, nil
	start := 0
	t.releasing = true
	defer func() { t.releasing = false }()
	for i := range held {
		p := held[i].sighting
		p.bytes = bytes[start:held[i].end]
		start = held[i].end
		t.step(&p, out)
	}
}

// Finish settles what is still open when the capture ends.
func (t *Tracker) Finish(out *machine.Effects) {
	if !t.open {
		v, reason, _ := judgeVantage(&t.reaches)
		t.release(v, reason, out)
	}
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

// side is what is known of one end.
type side struct {
	side      machine.Side
	near      bool
	ordered   bool // what passes the tap towards it arrives in this order
	stream    bool // because the connection is a stream
	shown     bool // that it does so is shown, not only the likeliest reading
	mayPort   bool // it can be Pytide, and need not
	behaviour *Behaviour
	doubts    doubts // what speaks against it

	// As a receiver.
	receiver     Receiver
	received     bool  // receiver is known: from the beginning, or by its first Ack
	unsure       int64 // ids of the peer up to here may have come before the capture, or unseen by it
	missed       []missed
	leaps        []leap
	queue        queue // reliable messages that passed the tap towards it and that no Ack has answered
	heard        bool  // an Ack of it has passed
	heardLast    int64 // newest id that one had as its last
	finished     finished
	doubt        int64 // ids up to here may have been refused, acked without coming, or let in again
	faulty       bool  // far: its Acks show bits that the shift fault left behind
	faultyTo     int64 // far: the id after that jump
	notifyIn     NotifyReceiver
	notified     bool  // notifyIn is known
	notifyHeard  int64 // newest id that a header of it had as its last
	notifyDoubt  int64
	notifyJoined int64

	// As a sender.
	sender         Sender
	sending        bool // sender is known
	notifyOut      NotifySender
	notifySending  bool
	sent           lives // reliable messages
	notes          lives // notify messages
	loose          lives // unreliable messages: each copy is its own
	looseCount     int64
	top            int64 // newest reliable sequence, unwrapped
	topAt          machine.Instant
	met            bool
	suspect        int64    // number plus one of the newest message that may be merged; 0 for none
	absent         []absent // ids that newer ones have overtaken, by age
	notifyTop      int64
	notifyMet      bool
	firstNotify    int64
	smoothed       int // its own smoothed RTT, ms; -1 unknown
	notifyQuality  quality
	sendQuality    quality
	limitAt        machine.Instant // when a limit of the connection's quality was reached; 0 if none was
	limitOf        int             // which: one of droppedAttempts and so on
	packets, bytes uint64
	resends        uint64
	acked          uint64
	duplicates     uint64
	missing        uint64
	taken          uint64
	passedOver     uint64        // notify messages that the library counts as lost nowhere
	wireRTT        time.Duration // sum over wireCount
	wireCount      uint64

	told []*machine.Rule // of it, that are told once

	// What shows that it reads.
	readTo   proof           // the newest arrival that it has answered
	proof    proof           // what passed the tap towards it up to here was read
	proved   proof           // the same at the end, where an earlier run has learned it
	previous machine.Instant // its last message but one, of any kind
	spoke    machine.Instant // its last
	spokeRef machine.Ref
	left     machine.Instant // when it said that it ends the connection; 0 if it has not
	toldLeft machine.Instant // when the peer's word that it ends reached it; 0 if it has not
}

func (s *side) modes() [3]*lives { return [3]*lives{&s.sent, &s.notes, &s.loose} }

const (
	// tickSlack is how long before something that a side sends it can have read
	// for the last time: a tick of the application, generously.
	tickSlack = 40 * time.Millisecond
	// Silence is how long after its last message a side that says nothing may
	// still be reading: its next heartbeat or answer is due within a second.
	Silence = 1200 * time.Millisecond
)

// reads grades that a side has read what passed the tap towards it at a time;
// Unknown where it may have closed the connection before.
func (s *side) reads(at machine.Instant, ref machine.Ref) machine.Certainty {
	switch {
	case s.toldLeft != 0 && at > s.toldLeft:
		return machine.Unknown
	case s.proof.covers(at, ref) || s.proved.covers(at, ref):
		return s.grade()
	case s.left != 0 && at > s.left, s.left == 0 && at.Sub(s.spoke) > Silence:
		return machine.Unknown
	}
	return machine.Likely
}

// step takes one message.
func (t *Tracker) step(p *sighting, out *machine.Effects) {
	t.last = p.at
	s, peer := &t.sides[p.from], &t.sides[p.from.Other()]
	m := &t.m
	codec := t.config.Senders[p.from].Codec
	if err := codec.Parse(p.bytes, p.length, m); err != nil && !errors.Is(err, base.ErrTrailing) {
		s.packets++
		s.bytes += uint64(p.length)
		if !errors.Is(err, base.ErrSnapped) {
			report(out, malformed, p.from, machine.Certain, p.at, p.ref, 0, float64(p.length))
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
	if limit := codec.Dialect.MaxMessage; p.length > limit {
		report(out, oversize, p.from, machine.Certain, p.at, p.ref, 0, float64(p.length))
	}
	if m.Type == wire.Disconnect {
		s.left, t.ended = p.at, true
		if peer.toldLeft == 0 {
			peer.toldLeft = p.at
		}
	} else if s.near && !t.config.Stream {
		// What leaves by a stream may have waited for its window: it does not tell
		// that the side still reads.
		s.proves(p.at.Add(-tickSlack), 0)
	}
	if t.weighing {
		if !t.releasing {
			weigh(&t.reaches, p, m)
		}
		s.shown = s.shown || t.reaches[p.from].shows()
	}
	t.settle(p.at, out)
	t.session(p, m, out)
	t.faults(s, p, m, out)
	switch {
	case m.Type == wire.Ack || m.Type == wire.AckExtra:
		if s.ordered {
			t.witness(s, peer, p, m, out)
		}
		t.evidence(s, peer, p, m, out)
		t.acked(peer, p, m, out)
	case m.Type.Reliable():
		t.reliable(s, peer, p, m, out)
	case m.Type == wire.Unreliable || bare(codec, m):
		t.unreliable(s, p, m, out)
	case m.Type == wire.Notify:
		t.notify(s, peer, p, m, out)
	}
}

// reopens reports whether a Connect begins another connection on the addresses:
// after the end of one, said or by timeout.
func (t *Tracker) reopens(p *sighting) bool {
	s, peer := &t.sides[p.from], &t.sides[p.from.Other()]
	return t.ended || (s.met || peer.met) && p.at.Sub(max(s.spoke, peer.spoke)) > Timeout
}

// proof is up to where a side is known to have read what passed the tap: a time,
// and of the frames of that very time one.
type proof struct {
	at  machine.Instant
	ref machine.Ref
}

func (p proof) covers(at machine.Instant, ref machine.Ref) bool {
	return at < p.at || at == p.at && ref <= p.ref
}

// proves notes that all up to a frame was read.
func (s *side) proves(at machine.Instant, ref machine.Ref) {
	if !s.proof.covers(at, ref) {
		s.proof = proof{at, ref}
	}
}

// proofs are Facts.Settings of this protocol.
type proofs struct {
	read  [2]proof // up to where each side is known to have read
	shown [2]bool  // the tap is shown to stand at the side
}

// Learned gives what another run over the flow can start with.
func (t *Tracker) Learned() machine.Facts {
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

// Size gives the bytes that a clone takes, about.
func (t *Tracker) Size() int {
	n := int(unsafe.Sizeof(*t)+unsafe.Sizeof(*t.sides)) + t.mores*(int(unsafe.Sizeof(more{}))+64) + len(t.bytes) + len(t.held)*int(unsafe.Sizeof(heldMessage{}))
	for i := range t.sides {
		s := &t.sides[i]
		for _, l := range s.modes() {
			n += len(l.slots)*int(unsafe.Sizeof(life{})) + len(l.index)*8
		}
		n += len(s.queue.items)*int(unsafe.Sizeof(arrival{})) + len(s.absent)*int(unsafe.Sizeof(absent{}))
	}
	return n
}

// Clone gives an independent copy.
func (t *Tracker) Clone() machine.Tracker {
	c := *t
	c.held = append([]heldMessage(nil), t.held...)
	for i := range c.reaches {
		for slot, ring := range t.reaches[i].asked {
			c.reaches[i].asked[slot] = append([]asking(nil), ring...)
		}
	}
	c.bytes = append([]byte(nil), t.bytes...)
	c.lent, c.free = nil, nil
	c.life.clients = append([]uint16(nil), t.life.clients...)
	if !t.open {
		return &c
	}
	c.sides = new([2]side)
	*c.sides = *t.sides
	for i := range c.sides {
		s, from := &c.sides[i], &t.sides[i]
		s.receiver, s.sender, s.notifyIn = from.receiver.Clone(), from.sender.Clone(), from.notifyIn.Clone()
		s.sent, s.notes, s.loose = from.sent.clone(), from.notes.clone(), from.loose.clone()
		s.queue.items = append([]arrival(nil), from.queue.items...)
		s.missed = append([]missed(nil), from.missed...)
		s.leaps = append([]leap(nil), from.leaps...)
		s.told = append([]*machine.Rule(nil), from.told...)
		s.absent = append([]absent(nil), from.absent...)
	}
	return &c
}
