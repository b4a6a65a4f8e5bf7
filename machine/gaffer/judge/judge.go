package judge

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/tracker"
	common "github.com/ackscope/ackscope/wire"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// Behaviours lists the known ways to keep the buffers.
var Behaviours = []machine.Behaviour{
	{
		Name: BehaviourArticle,
		Doc: "the article: a newer sequence clears the entries between the previous newest and it; a slice goes again " +
			"after 100 ms",
	},
	{
		Name: BehaviourSample,
		Doc:  "the series' sample programs where they are at odds with the articles: slices go again at once, round by round",
	},
	{
		Name: noStaleClear,
		Doc:  "the article's first listing: old entries stay, and come back as acks one wrap later",
	},
	{
		Name: ReliableBefore13,
		Doc:  "reliable before 1.3: a packet that comes again is delivered again, and its acks are read again",
	},
	{Name: ReliableFrom13, Doc: "reliable from 1.3 on: duplicates and stale packets are dropped"},
	{Name: Reliable2017, Doc: "reliable's first week: duplicates and stale packets are delivered"},
	{
		Name: Rely,
		Doc: "rely, a Go port of reliable 1.0: as reliable before 1.3, but bits 8 to 15 of ack_bits are 0 unless all are " +
			"set, and a fragment never moves ack",
	},
}

// Names of behaviours.
const (
	ReliableFrom13   = "reliable@>=1.3"
	ReliableBefore13 = "reliable@<1.3"
	Reliable2017     = "reliable@2017"
	Rely             = "rely"
	noStaleClear     = "gaffer@no-stale-clear"

	BehaviourArticle = "gaffer@article"
	BehaviourSample  = "gaffer@article-sample"
)

// BehavioursOf returns the names of the behaviours that an endpoint of a profile can have,
// the usual one first.
func BehavioursOf(p *wire.Profile) []string {
	switch {
	case p == nil:
		return nil
	case gaffer.IsPieces(p):
		return []string{BehaviourArticle}
	case gaffer.IsSample(p):
		return []string{BehaviourArticle, BehaviourSample}
	case !p.HasAcks():
		return nil
	case p.ZeroedAckBits != 0:
		return []string{Rely, ReliableFrom13, ReliableBefore13, noStaleClear}
	case p.Form == wire.FormReliable && p.Duplicates == wire.Delivered:
		return []string{ReliableBefore13, ReliableFrom13, Rely, noStaleClear}
	case p.Form == wire.FormReliable:
		return []string{ReliableFrom13, ReliableBefore13, Rely, noStaleClear}
	case p.Duplicates == wire.Delivered && p.Stale == wire.Delivered && len(p.Prefix) == 1 &&
		p.Prefix[0] == wire.PrefixZero:
		return []string{Reliable2017, noStaleClear}
	}
	return []string{BehaviourArticle, noStaleClear}
}

// behave returns the rules of a profile under a named behaviour.
func behave(p *wire.Profile, name string) (*gaffer.Rules, error) {
	r := gaffer.RulesOf(p)
	switch name {
	case BehaviourArticle:
	case noStaleClear:
		r.NoStaleClear, r.ZeroedAckBits, r.FragmentsWait = true, 0, false
	case ReliableFrom13:
		r.DeliverDuplicates, r.DeliverStale, r.ZeroedAckBits, r.FragmentsWait = false, false, 0, false
	case ReliableBefore13:
		r.DeliverDuplicates, r.DeliverStale, r.ZeroedAckBits, r.FragmentsWait = true, false, 0, false
	case Rely:
		r.DeliverDuplicates, r.DeliverStale, r.ZeroedAckBits, r.FragmentsWait = true, false, wire.RelyZeroedBits, true
	case Reliable2017:
		r.DeliverDuplicates, r.DeliverStale = true, true
	default:
		return nil, fmt.Errorf("behaviour %q: expected one of %s", name, strings.Join(behaviourNames(), ", "))
	}
	return r, nil
}

func behaviourNames() (names []string) {
	for _, b := range Behaviours {
		names = append(names, b.Name)
	}
	return names
}

// Judge compares the headers of both sides of a flow with those of references: sequence, ack,
// ack_bits and fragments.
//
//	near side   its socket holds what passed the tap towards it, in order. Before
//	            each header, the reference reads as much of that as makes its own
//	            header the same. If no amount does, the side diverges.
//	far side    its headers are compared with each other, and with what passed the
//	            tap towards it. None may name a packet that the side cannot have,
//	            and none may leave out what an earlier one names.
type Judge struct {
	profile *wire.Profile
	facts   machine.Facts
	sides   [2]Judged
	packet  wire.Packet
	began   bool
}

// Judged is one side of a flow.
type Judged struct {
	Side    machine.Side
	Rules   *gaffer.Rules
	Opinion machine.Opinion
	Near    *NearSide // nil for a far side
	far     farSide
	Sent    passed // its packets that passed the tap
	before  before // its packets that may have passed before the first one of the capture
	zeros   bool   // of the article's form: a side that has received nothing may say so by zeros
	// spokenAt is its first packet that says that something was received.
	spoken   bool
	spokenAt uint32
	current  bool // it has named a packet that passed the tap, so one of this session
	ahead    aheadClaim
	frag     ownFragments
	gaps     numberGaps       // of a near side
	said     gaffer.Claims    // of its header before; Width 0: it has sent none
	parts    fragmentSize     // of its packets of fragments
	Unread   []UnreadDatagram // of a near side: since its last number
	cut      int              // of a near side: datagrams since then that the snap length cut, whether kept or not
	hides    bool             // the snap length cut some of its packets before their number
	// misnumbers is set once a near side was shown to number its packets wrongly. From
	// then on, which packet it sent under which number is open.
	misnumbers bool
}

// New returns the judge of a flow whose sides have the named behaviours. Of facts it uses
// where the tap stands, and the ticks. It fails for an unknown behaviour.
func New(p *wire.Profile, facts machine.Facts, behaviours [2]string) (*Judge, error) {
	j := &Judge{profile: p, facts: facts}
	for i := range j.sides {
		r, err := behave(p, behaviours[i])
		if err != nil {
			return nil, err
		}
		s := &j.sides[i]
		s.Side, s.Rules, s.zeros = machine.Side(i), r, p.Form == wire.FormFixed
		s.Opinion.Inferred.Tick = facts.Tick[i]
		if facts.Vantage.Near(s.Side) {
			s.Near = newNearSide(r)
		}
		s.before = newBefore(&facts, s.Side)
	}
	return j, nil
}

// Observe judges the next datagram.
func (j *Judge) Observe(d *machine.Datagram) {
	p := &j.packet
	err := j.profile.Parse(d.Bytes, d.Length, p)
	s, peer := &j.sides[d.From], &j.sides[d.From.Other()]
	if p.Kind > wire.KindFragment || err != nil && (p.Kind != wire.KindFragment || p.FragmentCount == 0) {
		s.PassesOver(d, err)
		return // a reference ignores it, or the snap length cut off its header
	}
	j.begin(d)
	header := p.HasHeader && err == nil
	if s.Opinion.Divergence == nil {
		s.Opinion.Divergence = formDiverges(j.profile, d, p, err)
	}
	if s.Opinion.Divergence == nil && header {
		s.Opinion.Divergence = zeroedDiverges(s.Rules, d, p.Header)
	}
	if !s.Sent.met {
		s.before.begin(s.Rules, &peer.before, p)
		if peer.said.Width > 0 && !peer.said.Nothing(s.Rules) && p.Sequence < tracker.RestartMost {
			s.goesOnBefore(p.Sequence, peer)
		}
	}
	late := s.Sent.met && s.Rules.Distance(p.Sequence, s.Sent.top) < 0 && s.Sent.passage(s.Rules, p.Sequence) == passedNone
	if stray := s.Sent.met && s.before.earlier.Stray(p.Sequence, s.Sent.top, d.At); !stray {
		if s.Opinion.Divergence == nil {
			s.send(peer, d, p, header, err == nil)
		}
		s.gaps.count(s.Rules, &s.Sent, p.Sequence)
		peer.weighAhead(s, p.Sequence, s.Sent.Pass(s.Rules, p.Sequence, p.Kind == wire.KindFragment))
	}
	if v := typeDiverges(&j.profile.Messages, d, p, err); v != nil {
		if s.Opinion.Divergence == nil {
			s.Opinion.Divergence = v
		}
		return // the reference drops it before it can be acked
	}
	whole := err == nil // or the snap length cut off the header inside fragment 0
	if peer.Near != nil && peer.Opinion.Divergence == nil && (whole || errors.Is(err, common.ErrSnapped)) {
		a := pendingPacket{ref: d.Ref, sequence: p.Sequence, late: late}
		if p.Kind == wire.KindFragment {
			if whole && s.parts.odd(d, p) {
				peer.Near.malformed.enter(p.Sequence)
			}
			a.id, a.count = uint16(p.FragmentID), uint16(p.FragmentCount)
			if size := j.profile.FragmentSize; whole && size > 0 &&
				(p.FragmentID < p.FragmentCount-1 && p.PayloadLen != size || p.PayloadLen > size) {
				return // the reference drops it
			}
		}
		peer.Near.arrive(a)
	}
}

// begin takes the first datagram of the flow.
func (j *Judge) begin(d *machine.Datagram) {
	if j.began {
		return
	}
	j.began = true
	for i := range j.sides {
		s := &j.sides[i]
		s.before.earlier = tracker.NewEarlier(s.Rules, j.facts.Earlier[i], d.At)
	}
}

// send judges a datagram that the side sent.
func (s *Judged) send(peer *Judged, d *machine.Datagram, p *wire.Packet, header, whole bool) {
	if s.Opinion.Divergence = emptyLast(d, p, whole); s.Opinion.Divergence != nil {
		return
	}
	if s.Near != nil {
		newest := s.Sent.top
		v := s.Number(s.Rules, d, p)
		if v != nil {
			s.explainNumber(newest, (newest+1)&s.Rules.Mask(), p.Sequence, v)
		}
		if s.ForgetUnread(); v != nil {
			s.Opinion.Divergence, s.misnumbers = v, true
			return
		}
	}
	if whole {
		if s.Opinion.Divergence = s.Uneven(d, p); s.Opinion.Divergence != nil {
			return
		}
	}
	if !header {
		return
	}
	s.Opinion.Compared++
	s.Opinion.Inferred.Submitted++
	var v *machine.Divergence
	if s.Near != nil {
		v = s.Near.judge(s, peer, d, p.Header)
	} else {
		v = s.far.judge(s.Rules, s, peer, d, p.Header)
	}
	if v != nil && (peer.misnumbers || peer.hides) && v.RestsOn.Peer() {
		s.Opinion.Undecided++
		v = nil
	}
	s.Opinion.Divergence = v
	c := s.claims(p.Header)
	if v != nil {
		s.explainAck(peer, c, v)
	} else {
		s.said = c
	}
	s.claimsAhead(peer, c)
}

// claims reads the acks of a header of the side. An endpoint that has received nothing may
// say so by zeros, and not as reliable does.
func (s *Judged) claims(h wire.Header) gaffer.Claims {
	c := s.Rules.Claims(h.Ack, h.AckBits)
	before := !s.spoken || s.Rules.Newer(s.spokenAt, h.Sequence)
	switch {
	case !before || c.Nothing(s.Rules):
		return c
	case s.zeros && h.Ack == 0 && h.AckBits == 0:
		return gaffer.Claims{Newest: s.Rules.Mask(), Width: c.Width}
	}
	s.spoken, s.spokenAt = true, h.Sequence
	return c
}

// Finish ends the flow: what is still open counts as undecided.
func (j *Judge) Finish() {
	for i := range j.sides {
		s := &j.sides[i]
		if s.Near != nil {
			s.Near.finish(s)
			s.gaps.explain(s.Opinion.Divergence)
			s.Opinion.Inferred.Refused = s.Near.refused + uint64(len(s.Near.doubts))
			if s.Opinion.Undecided > 0 {
				s.Opinion.Why = s.Near.why()
			}
			continue
		}
		if s.Opinion.Undecided == 0 {
			s.Opinion.Undecided = s.Opinion.Compared // the capture does not show what it received
		}
		if s.Opinion.Undecided > 0 {
			s.Opinion.Why = machine.NotCapturedHere
		}
	}
}

// Opinion returns what is found of a side.
func (j *Judge) Opinion(s machine.Side) *machine.Opinion { return &j.sides[s].Opinion }

// mismatchOf returns the first field in which the acks of two headers differ.
func mismatchOf(r *gaffer.Rules, want, got gaffer.Claims) machine.Mismatch {
	if want.Newest != got.Newest {
		return machine.Differ("gaffer.ack", want.Newest, got.Newest)
	}
	digits := r.AckBits / 4
	return machine.Differ("gaffer.ack_bits", machine.Hex(bitsOf(r, want), digits), machine.Hex(bitsOf(r, got), digits))
}

// bitsOf returns ack_bits as a header has them.
func bitsOf(r *gaffer.Rules, c gaffer.Claims) uint64 {
	if r.AckBelow {
		return c.Named >> 1
	}
	return c.Named
}

// picture draws claims as cells, the newest packet first.
func picture(r *gaffer.Rules, c gaffer.Claims) string {
	if c.Nothing(r) {
		return "nothing received"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "received, from %d down: ", c.Newest)
	for n := range min(c.Width, 64) {
		if c.Named>>uint(n)&1 == 1 {
			b.WriteRune(machine.CellReceived.Rune())
		} else {
			b.WriteRune(machine.CellEmpty.Rune())
		}
	}
	return b.String()
}
