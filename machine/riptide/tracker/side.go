package tracker

import (
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/pathloss"
)

// side is what is known of one end. Fields that change together form a group. Ids of messages are
// unwrapped.
type side struct {
	side      machine.Side
	maybePort bool // it may be Pytide, and may be the library
	behaviour *riptide.Behaviour
	released  *riptide.Behaviour // the behaviour by what it writes
	smoothed  int                // its own smoothed RTT, ms; -1 if unknown
	reported  []*machine.Rule    // rules about it that are reported once, and have been

	repair     repair // whether its windows are those of main
	repairable bool   // they can be
	rivals     rivals
	poll       poll // of Pytide

	tap      tapEvidence
	activity activity
	read     reading
	end      ending

	in       inbound
	acks     ackTrail
	notifyIn notifyInbound

	out        outbound
	notifyOut  notifyOutbound
	unreliable lives // unreliable messages: each copy has a life of its own

	path    pathloss.Losses
	figures figures
}

// modes returns the open lives of all that the side sends.
func (s *side) modes() [3]*lives { return [3]*lives{&s.out.lives, &s.notifyOut.lives, &s.unreliable} }

// tapEvidence shows whether the tap is at a side, and what speaks against it (tap.go).
//
//   - near or stream means ordered
//   - answered and skipped count only what passes the tap towards a near side
type tapEvidence struct {
	near       bool
	stream     bool // the connection is a stream
	ordered    bool // what passes the tap towards the side arrives in this order
	shown      bool // the order above is shown, not only likely
	overflowed bool // too many arrivals waited for Acks, so some were forgotten
	against    int  // messages that passed the tap towards the side and had not arrived when it went on
	lacks      int  // signs of messages missing from the capture: gaps in its sequence, answers to unseen copies
	answered   int  // reliable copies that it answered
	skipped    int  // copies without an Ack in the capture, though later copies have one
}

// activity is when a side last sent, and when its peer did; times are 0 for never.
//
//   - last and ref belong to the same message; ref is 0 exactly while there is none
//   - before is the time of the message before that one
type activity struct {
	before    machine.Instant // its last message but one, of any kind
	last      machine.Instant
	ref       machine.Ref
	addressed machine.Instant // the peer's last message
	begun     machine.Instant // its first message
	silence   time.Duration   // the longest time between two messages of it
}

// outage reports whether the side seems to have been cut off for a while. Then it was silent for much
// longer than usual. packets is how many it sent in all.
func (s *activity) outage(packets uint64) bool {
	usual := s.last.Sub(s.begun) / time.Duration(max(1, packets))
	return s.silence > outageLeast && s.silence > 8*usual
}

// outageLeast is the shortest silence that counts as an outage.
// Source: definition, steady-loss: an outage lasts 300 ms, and eight times the usual time between packets
const outageLeast = 300 * time.Millisecond

// spoke records a message of the side.
func (s *activity) spoke(at machine.Instant, ref machine.Ref) {
	if s.ref == 0 {
		s.begun = at
	} else {
		s.silence = max(s.silence, at.Sub(s.last))
	}
	s.before, s.last, s.ref = s.last, at, ref
}

// fellSilent reports whether the side stopped reading at an event that can end it. Such an event is
// an Ack that made the library throw, which ends its thread. Another is a limit of the connection's
// quality. The side must have sent nothing since, although its peer went on and its next heartbeat
// or answer was due.
func (s *activity) fellSilent(since machine.Instant) bool {
	return since != 0 && s.last <= since && s.addressed.Sub(since) > riptide.Silence
}

// proof is a frame up to which a side is known to have read what passed the tap. Several frames can
// have the same time, so ref decides between them.
type proof struct {
	at  machine.Instant
	ref machine.Ref
}

func (p proof) covers(at machine.Instant, ref machine.Ref) bool {
	return at < p.at || at == p.at && ref <= p.ref
}

// reading is what proves that a side reads. shown never goes back; learned never changes.
type reading struct {
	answered proof // the newest arrival that it has answered
	shown    proof // it read what passed the tap towards it up to here
	learned  proof // shown at the end of an earlier run
}

// proves records that the side read everything up to a frame.
func (r *reading) proves(at machine.Instant, ref machine.Ref) {
	if !r.shown.covers(at, ref) {
		r.shown = proof{at, ref}
	}
}

// covers reports whether a frame is known to have been read, by this run so far or by an earlier
// run.
func (r *reading) covers(at machine.Instant, ref machine.Ref) bool {
	return r.shown.covers(at, ref) || r.learned.covers(at, ref)
}

// ending holds the events that can have ended the connection for a side, whether it said so or not.
// Each time is 0 while its event has not happened.
//
//   - limit is set exactly where limitOf is not riptide.NotDropped
type ending struct {
	threw    machine.Instant // when an Ack made the library throw (Pytide), the first since it last spoke
	limit    machine.Instant // when a limit of the connection's quality was reached
	limitOf  int             // which one: riptide.DroppedAttempts and so on
	left     machine.Instant // when the side sent a Disconnect
	peerLeft machine.Instant // when the peer's Disconnect reached it
}

// endedBefore reports whether the peer's Disconnect reached the side before a time. The side
// processes nothing after that.
func (e *ending) endedBefore(at machine.Instant) bool { return e.peerLeft != 0 && at > e.peerLeft }

// reached records that a limit of the connection's quality is reached.
func (e *ending) reached(limitOf int, at machine.Instant) { e.limit, e.limitOf = at, limitOf }

// droppedAt returns the time until which a side can have read after it reached a limit. A limit of
// averages ends the connection at the datagram that moves them. The limit of attempts ends it in
// the update after.
func (e *ending) droppedAt() machine.Instant {
	if e.limitOf == riptide.DroppedAttempts {
		return e.limit.Add(2 * riptide.TickSlack)
	}
	return e.limit
}

// inbound is what the library of a side holds of its peer's reliable messages (witness.go).
//
//   - receiver is valid once known is set: from the beginning, or by its first Ack
//   - len(missed) ≤ unseenMost, len(jumps) ≤ jumpsMost
type inbound struct {
	receiver riptide.Receiver
	known    bool
	unsure   int64 // ids up to here may have come before the capture, or unseen by it
	missed   []missed
	jumps    []jump
	queue    queue // messages that passed the tap towards it and that no Ack has answered
}

// ackTrail is what the Acks of a side say of its peer's reliable messages, by their documented
// meaning (evidence.go).
//
//   - blind ≤ doubt
//   - last ≤ finished.top once heard is set
//   - faultyTo is valid while faulty is set, foreknown while foreknew is
type ackTrail struct {
	heard     bool  // an Ack has passed
	faulty    bool  // far: they show bits that the shift fault left behind
	foreknew  bool  // Acks passed before the first message that they could name
	last      int64 // newest id that an Ack had as its last
	finished  finished
	doubt     int64  // ids up to here may have been refused, acked without arriving, or delivered again
	blind     int64  // far: ids up to here may have been refused, and its window is not known
	faultyTo  int64  // far: the id after the jump that left those bits
	foreknown uint16 // newest id of the Acks that passed before the first message
}

// notifyInbound is what a side has of its peer's notify messages (notify.go).
//
//   - receiver and joined are valid once known is set
//   - doubt ≤ heard
type notifyInbound struct {
	receiver riptide.NotifyReceiver
	known    bool
	heard    int64 // newest id that a header had as its last; 0 for none
	doubt    int64 // ids up to here may have been named without arriving
	joined   int64 // the first id that passed, where the capture began later
}

// outbound is the reliable messages that a side sends (messages.go), and what its library concludes
// from their Acks.
//
//   - sender is valid once known is set
//   - top, topAt and metAt are valid once met is set
//   - 0 ≤ suspect ≤ lives.next
//   - absent rises by id, each below top; len(absent) ≤ absentMost
//   - 0 ≤ missing: ids up to top that have not passed
type outbound struct {
	sender  riptide.Sender
	lives   lives
	known   bool
	met     bool
	top     int64 // newest sequence
	topAt   machine.Instant
	metAt   machine.Instant // when its first message passed, where the capture began later
	suspect int64           // number plus one of the newest message that may be merged; 0 for none
	missing uint64          // ids that newer ones have overtaken
	absent  []absent        // the newest of them
	quality riptide.Quality
}

// notifyOutbound is the notify messages that a side sends, and what its library concludes from the
// headers that answer them (notify.go).
//
//   - sender is valid once known is set
//   - first and top are valid once met is set
type notifyOutbound struct {
	sender     riptide.NotifySender
	lives      lives
	known      bool
	met        bool
	first, top int64
	passedOver uint64 // lost messages that the library leaves out of its loss rate
	quality    riptide.Quality
}

// reads grades the claim that a side read what passed the tap towards it at a time. It returns
// Unknown where the side may have closed the connection before.
func (s *side) reads(at machine.Instant, ref machine.Ref) machine.Certainty {
	switch {
	// Up to this time it can have read on in the same update.
	case at > s.end.threw.Add(2*riptide.TickSlack) && s.activity.fellSilent(s.end.threw):
		return machine.Unknown
	case at > s.end.droppedAt() && s.activity.fellSilent(s.end.limit):
		return machine.Unknown
	case s.end.endedBefore(at):
		return machine.Unknown
	case s.read.covers(at, ref):
		return s.tap.grade()
	case s.end.left != 0 && at > s.end.left, s.end.left == 0 && at.Sub(s.activity.last) > riptide.Silence:
		return machine.Unknown
	}
	return machine.Likely
}

// usualRoundTrip stands for an RTT that is not known.
// Source: measured, TestMarginsRiptide
const usualRoundTrip = 100 * time.Millisecond

// roundTrip returns the side's RTT for waiting, or a usual one where it is unknown.
func (s *side) roundTrip() time.Duration {
	if s.smoothed < 0 {
		return usualRoundTrip
	}
	return time.Duration(s.smoothed) * time.Millisecond
}

// clone returns an independent copy.
func (s *side) clone() side {
	c := *s
	c.reported = slices.Clone(s.reported)
	c.rivals, c.poll = s.rivals.clone(), s.poll.clone()
	c.in, c.out = s.in.clone(), s.out.clone()
	c.notifyIn.receiver, c.notifyOut.lives = s.notifyIn.receiver.Clone(), s.notifyOut.lives.clone()
	c.unreliable = s.unreliable.clone()
	c.figures.trips = s.figures.trips.Clone()
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
