package srdp

import (
	"fmt"
	"slices"
	"time"

	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// Behaviours lists the known ways to speak the protocol.
var Behaviours = []machine.Behaviour{
	{Name: "srdp@1995", Doc: "the document: each copy of a packet is acknowledged once, a packet goes out again until it is, and one that keeps order waits for the one before it"},
}

// Judge holds what both sides of a flow sent against what references would have
// sent: acknowledgements, ids, repeats and the order flag.
//
//	near side   each copy that passed the tap towards it is acknowledged once, in
//	            order; what it sends again was neither acknowledged nor changed
//	far side    it acknowledges what was sent, and its copies are copies
type Judge struct {
	config Config
	sides  [2]judged
	pk     wire.Packet
}

// judged is one side.
type judged struct {
	near    bool
	stream  bool
	opinion machine.Opinion
	asked   []arrival // that the side has not acknowledged
	last    machine.Ref
	spoke   machine.Instant
	before  bool // something of its peer came before the capture, for all that is known

	met     bool
	top     uint16 // newest id sent that keeps no order
	high    uint16 // newest id sent
	highMet bool
	sent    map[uint16]*outgoing
	old     []uint16 // ids by age, to forget them
	// The packet that keeps order and that was sent last.
	ordered uint16
	waits   bool
}

// arrival is a data packet that passed the tap towards a side.
type arrival struct {
	id  uint16
	at  machine.Instant
	ref machine.Ref
	may bool // it need not be acknowledged: the reference does not know its flags, or it is too large
}

// outgoing is a data packet that a side sent.
type outgoing struct {
	hash    uint64
	ref     machine.Ref // the first copy's frame
	lastRef machine.Ref
	lastAt  machine.Instant
	copies  int
	acks    int // that passed the tap towards the side
	ackedAt machine.Instant
	ackRef  machine.Ref
}

const (
	keptMost = 4096 // ids and arrivals of one side
	// answerSlack is how long an acknowledgement may wait for its side's frame,
	// while the side sends other things.
	answerSlack = time.Second
	// readSlack is how long an acknowledgement may lie in the socket.
	readSlack = 500 * time.Millisecond
)

// NewJudge gives the judge of a flow. Of facts it uses where the tap stands.
func NewJudge(c Config, facts machine.Facts, behaviours [2]string) (*Judge, error) {
	j := &Judge{config: c}
	for i := range j.sides {
		if behaviours[i] != Behaviours[0].Name {
			return nil, fmt.Errorf("behaviour %q: expected %s", behaviours[i], Behaviours[0].Name)
		}
		s := &j.sides[i]
		s.near, s.stream = facts.Vantage.Near(machine.Side(i)), c.Stream
		s.opinion.Inferred.Tick = facts.Tick[i]
		s.sent = map[uint16]*outgoing{}
	}
	return j, nil
}

// Observe takes the next datagram; what is none of the protocol's is passed over.
func (j *Judge) Observe(d *machine.Datagram) {
	pk := &j.pk
	length := max(d.Length, len(d.Bytes))
	if !j.config.Profile.Fits(d.Bytes, length, pk) {
		return
	}
	s, peer := &j.sides[d.From], &j.sides[d.From.Other()]
	s.opinion.Compared++
	var v *machine.Divergence
	if pk.Ack {
		v = s.acknowledges(j, peer, d)
		peer.acked(d, pk.ID)
	} else {
		s.opinion.Inferred.Submitted++
		v = s.sends(j, d)
		may := j.config.Profile.UnknownFlags(pk.Flags) != 0 || length-pk.PayloadOffset > j.config.MaxPayload && j.config.MaxPayload > 0
		peer.arrives(arrival{pk.ID, d.At, d.Ref, may})
	}
	if s.opinion.Divergence == nil {
		s.opinion.Divergence = v
	}
	s.spoke, s.last = d.At, d.Ref
}

func (s *judged) arrives(a arrival) {
	if len(s.asked) >= keptMost {
		s.asked = append(s.asked[:0], s.asked[keptMost/2:]...)
		s.before = true
	}
	s.asked = append(s.asked, a)
}

// acknowledges takes an acknowledgement that s sent.
func (s *judged) acknowledges(j *Judge, peer *judged, d *machine.Datagram) *machine.Divergence {
	id := j.pk.ID
	if !s.near || s.stream {
		s.opinion.Undecided++
		if peer.near && peer.highMet && peer.sent[id] == nil && newer(id, peer.high) {
			return diverge(d, "ack-unsent", "srdp.packet_id", fmt.Sprintf("at most %d", peer.high), id, fmt.Sprintf("no packet of id %d had been sent", id), s.last)
		}
		return nil
	}
	k := slices.IndexFunc(s.asked, func(a arrival) bool { return a.id == id })
	if k < 0 {
		if s.before || s.last == 0 {
			s.opinion.Undecided++
			return nil // of a packet from before the capture
		}
		return diverge(d, "ack-unasked", "srdp.packet_id", "no acknowledgement", id, fmt.Sprintf("no copy of packet %d passed the tap towards this side that was not acknowledged before", id), s.last)
	}
	for _, a := range s.asked[:k] {
		if !a.may {
			return diverge(d, "ack-missing", "srdp.packet_id", a.id, id, fmt.Sprintf("packet %d came before packet %d, and each copy is acknowledged", a.id, id), a.ref, s.asked[k].ref)
		}
	}
	s.asked = append(s.asked[:0], s.asked[k+1:]...)
	return nil
}

// overdue looks for a copy that s ought to have acknowledged long ago.
func (s *judged) overdue(d *machine.Datagram) *machine.Divergence {
	if !s.near || s.stream || len(s.asked) == 0 {
		return nil
	}
	a := s.asked[0]
	if a.may || d.At.Sub(a.at) < answerSlack || s.spoke.Sub(a.at) < answerSlack/2 {
		return nil
	}
	return diverge(d, "ack-missing", "srdp.ack", "acknowledgement of "+fmt.Sprint(a.id), "data", fmt.Sprintf("packet %d came %.0f ms ago and was not acknowledged", a.id, millis(d.At.Sub(a.at))), a.ref)
}

// sends takes a data packet that s sent.
func (s *judged) sends(j *Judge, d *machine.Datagram) *machine.Divergence {
	overdue := s.overdue(d)
	if v := s.counts(j, d); overdue == nil {
		return v
	}
	return overdue
}

// counts takes a packet into account, whatever else is wrong with its sender:
// its peer may acknowledge it.
func (s *judged) counts(j *Judge, d *machine.Datagram) *machine.Divergence {
	pk := &j.pk
	hash := hashOf(d.Bytes)
	if e := s.sent[pk.ID]; e != nil && d.At.Sub(e.lastAt) < reuseAfter {
		if e.hash != hash {
			return diverge(d, "id-reuse", "srdp.packet_id", "another id", pk.ID, fmt.Sprintf("packet %d was sent before with other content", pk.ID), e.ref)
		}
		v := s.repeats(d, pk.ID, e)
		e.copies++
		e.lastAt, e.lastRef = d.At, d.Ref
		return v
	}
	// What keeps order has its number when it is submitted, and may leave later.
	ordered := pk.Flags&j.config.Profile.Order != 0
	var v *machine.Divergence
	if s.near && !s.stream && s.met && !ordered && !newer(pk.ID, s.top) {
		v = diverge(d, "sequence", "srdp.packet_id", fmt.Sprintf("newer than %d", s.top), pk.ID, "a sender numbers its packets upwards", s.last)
	}
	if w := s.keepsOrder(j, d); v == nil {
		v = w
	}
	if !s.highMet || newer(pk.ID, s.high) {
		s.highMet, s.high = true, pk.ID
	}
	if !ordered {
		s.met, s.top = true, pk.ID
	}
	if len(s.old) >= keptMost {
		delete(s.sent, s.old[0])
		s.old = s.old[1:]
	}
	s.old = append(s.old, pk.ID)
	s.sent[pk.ID] = &outgoing{hash: hash, ref: d.Ref, lastRef: d.Ref, lastAt: d.At, copies: 1}
	return v
}

// reuseAfter is when an id that comes again is another packet: the counter has
// wrapped, or its sender began anew.
const reuseAfter = 30 * time.Second

// repeats judges another copy.
func (s *judged) repeats(d *machine.Datagram, id uint16, e *outgoing) *machine.Divergence {
	switch {
	case !s.near:
		s.opinion.Undecided++
	case s.stream:
		return diverge(d, "repeat-on-stream", "srdp.packet_id", "no copy", id, "over TCP nothing is sent again: the proxy does", e.ref)
	case e.acks > 0 && d.At.Sub(e.ackedAt) > readSlack:
		return diverge(d, "repeat-after-ack", "srdp.packet_id", "no copy", id, fmt.Sprintf("packet %d was acknowledged %.0f ms before it was sent again", id, millis(d.At.Sub(e.ackedAt))), e.lastRef, e.ackRef)
	}
	return nil
}

// keepsOrder judges a new packet that is to keep order: the one before it has
// been acknowledged, or was given up.
func (s *judged) keepsOrder(j *Judge, d *machine.Datagram) *machine.Divergence {
	if j.pk.Flags&j.config.Profile.Order == 0 {
		return nil
	}
	was, waits := s.ordered, s.waits
	s.ordered, s.waits = j.pk.ID, true
	e := s.sent[was]
	if !waits || e == nil || e.acks > 0 || !s.near || s.stream {
		return nil
	}
	// One that is given up is not followed at once by the next.
	if e.copies > 1 || d.At.Sub(e.lastAt) > giveUpLeast {
		s.opinion.Undecided++
		return nil
	}
	return diverge(d, "order", "srdp.packet_id", fmt.Sprintf("no packet before %d is acknowledged", was), j.pk.ID, fmt.Sprintf("packet %d keeps order and is not acknowledged: one is in flight at a time", was), e.ref)
}

// giveUpLeast is the shortest time after which a sender can have given up a
// packet of which one copy was sent.
const giveUpLeast = 20 * time.Millisecond

// acked takes an acknowledgement that passed the tap towards s.
func (s *judged) acked(d *machine.Datagram, id uint16) {
	if e := s.sent[id]; e != nil {
		if e.acks++; e.acks == 1 {
			e.ackedAt, e.ackRef = d.At, d.Ref
		}
	}
}

// newer reports whether id a is newer than b, modulo 32768.
func newer(a, b uint16) bool { return (a-b)&0x7fff != 0 && (a-b)&0x7fff < 0x4000 }

func diverge(d *machine.Datagram, rule, field string, expected, got any, because string, frames ...machine.Ref) *machine.Divergence {
	v := &machine.Divergence{Ref: d.Ref, At: d.At, Rule: rule, Field: field, Expected: fmt.Sprint(expected), Got: fmt.Sprint(got), Because: because}
	for _, f := range frames {
		if f != 0 && !slices.Contains(v.Frames, f) {
			v.Frames = append(v.Frames, f)
		}
	}
	slices.Sort(v.Frames)
	v.Reference, v.Captured = v.Expected, v.Got
	return v
}

// Finish settles what is open.
func (j *Judge) Finish() {
	for i := range j.sides {
		s := &j.sides[i]
		if !s.near && s.opinion.Undecided == 0 {
			s.opinion.Undecided = s.opinion.Compared
		}
		if s.opinion.Undecided > 0 {
			s.opinion.Why = "what passed the tap towards this side may have been lost behind it; repeats and time-outs are its application's"
		}
	}
}

// Opinion gives what is found of a side.
func (j *Judge) Opinion(s machine.Side) *machine.Opinion { return &j.sides[s].opinion }

// hashOf tells the bytes of packets apart (FNV-1a).
func hashOf(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}
