package tracker

import (
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/pathloss"
)

// side is what is known of one end. What changes together stands in a group of its
// own; ids of messages are unwrapped.
type side struct {
	side      machine.Side
	mayPort   bool // it can be Pytide, and need not
	behaviour *riptide.Behaviour
	smoothed  int             // its own smoothed RTT, ms; -1 unknown
	reported  []*machine.Rule // of it, that are told once

	tap    tapEvidence
	speech speech
	read   reading
	end    ending

	in       inbound
	acks     ackTrail
	notifyIn notifyInbound

	out        outbound
	notifyOut  notifyOutbound
	unreliable lives // unreliable messages: each copy is its own

	path    pathloss.Losses
	figures figures
}

// modes returns the open lives of all that the side sends.
func (s *side) modes() [3]*lives { return [3]*lives{&s.out.lives, &s.notifyOut.lives, &s.unreliable} }

// tapEvidence is how the tap stands to a side, and what speaks against that (doubts.go).
//
//	near or stream means ordered
//	answered and skipped count only what passes the tap towards a near side
type tapEvidence struct {
	near     bool
	stream   bool // the connection is a stream
	ordered  bool // what passes the tap towards the side arrives in this order
	shown    bool // that it does so is shown, not only the likeliest reading
	blurred  bool // so many waited for its Acks that some were forgotten
	against  int  // messages that passed the tap towards it, and that it had not got when it went on
	lacks    int  // signs that the capture lacks messages: gaps in what it sends, answers to what is not there
	answered int  // reliable copies that it answered
	skipped  int  // copies of which no Ack has passed, though later ones were answered
}

// speech is when a side last spoke, and was spoken to; times are 0 for never.
//
//	last and ref are of one message; ref is 0 exactly while there is none
//	before is of the message before that one
type speech struct {
	before    machine.Instant // its last message but one, of any kind
	last      machine.Instant
	ref       machine.Ref
	addressed machine.Instant // the peer's last message
}

// spoke takes a message of the side.
func (s *speech) spoke(at machine.Instant, ref machine.Ref) {
	s.before, s.last, s.ref = s.last, at, ref
}

// fellSilent reports whether the side reads no more since something happened that can
// be the end of it: an Ack that made the library throw, so that its thread has
// ended, or a limit of the connection's quality. It has said nothing since, though
// its peer went on and its next heartbeat or answer was due.
func (s *speech) fellSilent(since machine.Instant) bool {
	return since != 0 && s.last <= since && s.addressed.Sub(since) > riptide.Silence
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

// reading is what shows that a side reads. shown never goes back; learned never
// changes.
type reading struct {
	answered proof // the newest arrival that it has answered
	shown    proof // what passed the tap towards it up to here was read
	learned  proof // the same at the end, where an earlier run has learned it
}

// proves notes that all up to a frame was read.
func (r *reading) proves(at machine.Instant, ref machine.Ref) {
	if !r.shown.covers(at, ref) {
		r.shown = proof{at, ref}
	}
}

// covers reports whether a frame is shown to have been read, now or by the end.
func (r *reading) covers(at machine.Instant, ref machine.Ref) bool {
	return r.shown.covers(at, ref) || r.learned.covers(at, ref)
}

// ending is what can have ended the connection for a side, without a word or with
// one. Each time is 0 while that has not happened.
//
//	limit is set exactly where limitOf is not riptide.NotDropped
type ending struct {
	threw    machine.Instant // when an Ack made the library throw (Pytide), the first since it last spoke
	limit    machine.Instant // when a limit of the connection's quality was reached
	limitOf  int             // which: riptide.DroppedAttempts and so on
	left     machine.Instant // when it said that it ends the connection
	peerLeft machine.Instant // when the peer's word that it ends reached it
}

// endedBefore reports whether the side had the peer's word that it ends before a time: it
// takes nothing from then on.
func (e *ending) endedBefore(at machine.Instant) bool { return e.peerLeft != 0 && at > e.peerLeft }

// reached notes that a limit of the connection's quality is reached.
func (e *ending) reached(limitOf int, at machine.Instant) { e.limit, e.limitOf = at, limitOf }

// droppedAt returns until when a side can have read that has reached a limit: a limit
// of averages ends the connection at the datagram that moves them, that of the
// attempts in the update after.
func (e *ending) droppedAt() machine.Instant {
	if e.limitOf == riptide.DroppedAttempts {
		return e.limit.Add(2 * riptide.TickSlack)
	}
	return e.limit
}

// inbound is what the library of a side holds of its peer's reliable messages
// (witness.go).
//
//	receiver counts once known is set: from the beginning, or by its first Ack
//	len(missed) ≤ unseenMost, len(leaps) ≤ leapsMost
type inbound struct {
	receiver riptide.Receiver
	known    bool
	unsure   int64 // ids up to here may have come before the capture, or unseen by it
	missed   []missed
	jumps    []jump
	queue    queue // messages that passed the tap towards it and that no Ack has answered
}

// ackTrail is what the Acks of a side say of its peer's reliable messages, by their
// documented meaning (evidence.go).
//
//	blind ≤ doubt
//	last ≤ finished.top once heard is set
//	faultyTo counts while faulty is set
type ackTrail struct {
	heard    bool  // an Ack has passed
	faulty   bool  // far: they show bits that the shift fault left behind
	last     int64 // newest id that one had as its last
	finished finished
	doubt    int64 // ids up to here may have been refused, acked without coming, or let in again
	blind    int64 // far: ids up to here may have been refused, and what its window holds is not known
	faultyTo int64 // far: the id after the jump that left those bits
}

// notifyInbound is what a side has of its peer's notify messages (notify.go).
//
//	receiver and joined count once known is set
//	doubt ≤ heard
type notifyInbound struct {
	receiver riptide.NotifyReceiver
	known    bool
	heard    int64 // newest id that a header had as its last; 0 for none
	doubt    int64 // ids up to here may have been named without coming
	joined   int64 // the first id that passed, where the capture began later
}

// outbound is the reliable messages that a side sends (messages.go), and what its
// library makes of their Acks.
//
//	sender counts once known is set
//	top and topAt count once met is set
//	0 ≤ suspect ≤ lives.next
//	absent rises by id, each below top; len(absent) ≤ absentMost
//	0 ≤ missing: ids up to top that have not passed
type outbound struct {
	sender  riptide.Sender
	lives   lives
	known   bool
	met     bool
	top     int64 // newest sequence
	topAt   machine.Instant
	suspect int64    // number plus one of the newest message that may be merged; 0 for none
	missing uint64   // ids that newer ones have overtaken
	absent  []absent // the newest of them
	quality riptide.Quality
}

// notifyOutbound is the notify messages that a side sends, and what its library makes
// of the headers that answer them (notify.go).
//
//	sender counts once known is set
//	first and top count once met is set
type notifyOutbound struct {
	sender     riptide.NotifySender
	lives      lives
	known      bool
	met        bool
	first, top int64
	passedOver uint64 // messages that the library counts as lost nowhere
	quality    riptide.Quality
}

// reads grades that a side has read what passed the tap towards it at a time;
// Unknown where it may have closed the connection before.
func (s *side) reads(at machine.Instant, ref machine.Ref) machine.Certainty {
	switch {
	// before that it can have read on in the same update
	case at > s.end.threw.Add(2*riptide.TickSlack) && s.speech.fellSilent(s.end.threw):
		return machine.Unknown
	case at > s.end.droppedAt() && s.speech.fellSilent(s.end.limit):
		return machine.Unknown
	case s.end.endedBefore(at):
		return machine.Unknown
	case s.read.covers(at, ref):
		return s.tap.grade()
	case s.end.left != 0 && at > s.end.left, s.end.left == 0 && at.Sub(s.speech.last) > riptide.Silence:
		return machine.Unknown
	}
	return machine.Likely
}

// roundTrip returns the side's RTT, for waiting; something usual where it is unknown.
func (s *side) roundTrip() time.Duration {
	if s.smoothed < 0 {
		return 100 * time.Millisecond
	}
	return time.Duration(s.smoothed) * time.Millisecond
}

// clone returns an independent copy.
func (s *side) clone() side {
	c := *s
	c.reported = slices.Clone(s.reported)
	c.in, c.out = s.in.clone(), s.out.clone()
	c.notifyIn.receiver, c.notifyOut.lives = s.notifyIn.receiver.Clone(), s.notifyOut.lives.clone()
	c.unreliable = s.unreliable.clone()
	return c
}

func (i *inbound) clone() inbound {
	c := *i
	c.receiver = i.receiver.Clone()
	c.missed, c.jumps, c.queue.items = slices.Clone(i.missed), slices.Clone(i.jumps), slices.Clone(i.queue.items)
	return c
}

func (o *outbound) clone() outbound {
	c := *o
	c.sender, c.lives, c.absent = o.sender.Clone(), o.lives.clone(), slices.Clone(o.absent)
	return c
}
