package tracker

import (
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
)

// side is what is known of one end.
type side struct {
	side      machine.Side
	near      bool
	ordered   bool // what passes the tap towards it arrives in this order
	stream    bool // because the connection is a stream
	shown     bool // that it does so is shown, not only the likeliest reading
	mayPort   bool // it can be Pytide, and need not
	behaviour *riptide.Behaviour
	doubts    doubts // what speaks against it

	// As a receiver.
	receiver     riptide.Receiver
	received     bool  // receiver is known: from the beginning, or by its first Ack
	unsure       int64 // ids of the peer up to here may have come before the capture, or unseen by it
	missed       []missed
	leaps        []leap
	queue        queue // reliable messages that passed the tap towards it and that no Ack has answered
	heard        bool  // an Ack of it has passed
	heardLast    int64 // newest id that one had as its last
	finished     finished
	doubt        int64 // ids up to here may have been refused, acked without coming, or let in again
	blind        int64 // far: ids up to here may have been refused, and what its window holds is not known
	faulty       bool  // far: its Acks show bits that the shift fault left behind
	faultyTo     int64 // far: the id after that jump
	notifyIn     riptide.NotifyReceiver
	notified     bool  // notifyIn is known
	notifyHeard  int64 // newest id that a header of it had as its last
	notifyDoubt  int64
	notifyJoined int64

	// As a sender.
	sender         riptide.Sender
	sending        bool // sender is known
	notifyOut      riptide.NotifySender
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
	notifyQuality  riptide.Quality
	sendQuality    riptide.Quality
	limitAt        machine.Instant // when a limit of the connection's quality was reached; 0 if none was
	limitOf        int             // which: one of droppedAttempts and so on
	packets, bytes uint64
	resends        uint64
	acked          uint64
	duplicates     uint64
	missing        uint64
	toTap          machine.PathLoss // of its numbered messages, on the way to the tap; far only
	beyond         machine.PathLoss // of those that passed the tap, on the way to its peer
	both           machine.PathLoss // of the same, or their Acks on the way back
	unnamed        unnamedPath      // of its messages, where the peer's Acks name none
	taken          uint64
	passedOver     uint64        // notify messages that the library counts as lost nowhere
	wireRTT        time.Duration // sum over wireCount
	wireCount      uint64

	threwAt machine.Instant // when an Ack made the library throw (Pytide), the first since it last spoke; 0 for none

	told []*machine.Rule // of it, that are told once

	// What shows that it reads.
	readTo    proof           // the newest arrival that it has answered
	proof     proof           // what passed the tap towards it up to here was read
	proved    proof           // the same at the end, where an earlier run has learned it
	previous  machine.Instant // its last message but one, of any kind
	spoke     machine.Instant // its last
	spokeRef  machine.Ref
	addressed machine.Instant // the peer's last message
	left      machine.Instant // when it said that it ends the connection; 0 if it has not
	toldLeft  machine.Instant // when the peer's word that it ends reached it; 0 if it has not
}

func (s *side) modes() [3]*lives { return [3]*lives{&s.sent, &s.notes, &s.loose} }

// reads grades that a side has read what passed the tap towards it at a time;
// Unknown where it may have closed the connection before.
func (s *side) reads(at machine.Instant, ref machine.Ref) machine.Certainty {
	switch {
	case at > s.threwAt.Add(2*riptide.TickSlack) && s.mute(s.threwAt): // before that it can have read on in the same update
		return machine.Unknown
	case at > s.droppedAt() && s.mute(s.limitAt):
		return machine.Unknown
	case s.toldLeft != 0 && at > s.toldLeft:
		return machine.Unknown
	case s.proof.covers(at, ref) || s.proved.covers(at, ref):
		return s.grade()
	case s.left != 0 && at > s.left, s.left == 0 && at.Sub(s.spoke) > riptide.Silence:
		return machine.Unknown
	}
	return machine.Likely
}

// mute reports whether the side reads no more since something happened that can
// be the end of it: an Ack that made the library throw, so that its thread has
// ended, or a limit of the connection's quality. It has said nothing since, though
// its peer went on and its next heartbeat or answer was due.
func (s *side) mute(since machine.Instant) bool {
	return since != 0 && s.spoke <= since && s.addressed.Sub(since) > riptide.Silence
}

// droppedAt gives until when a side can have read that has reached a limit: a limit
// of averages ends the connection at the datagram that moves them, that of the
// attempts in the update after.
func (s *side) droppedAt() machine.Instant {
	if s.limitOf == riptide.DroppedAttempts {
		return s.limitAt.Add(2 * riptide.TickSlack)
	}
	return s.limitAt
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
