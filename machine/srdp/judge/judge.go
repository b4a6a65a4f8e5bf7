package judge

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// Behaviours lists the known ways to speak the protocol.
var Behaviours = []machine.Behaviour{
	{Name: "srdp@1995", Doc: "the document: each copy of a packet is acknowledged once; a packet goes out again, " +
		"unchanged and at one interval, until it is; one that keeps order waits for the one before it"},
}

// Judge compares what both sides of a flow sent with what references would have sent. It judges
// acknowledgements, ids, repeats and their times, and the order flag.
//
//	near side   each copy that passed the tap towards it is acknowledged once, in
//	            order; what it sends again was neither acknowledged nor given up,
//	            and is due
//	far side    what it acknowledges was sent, and its copies are copies
//
// The wire does not show what an application asks for: how often a packet is sent, at which
// interval, to whom else. So a packet that is not sent again proves nothing, nor does an id
// that is missing. The copies of one packet have one interval, and that proves something.
//
// A proxy speaks for others, who are not at the tap. So in the proxied form, a side is near
// only in packets with its own address.
//
// A stream shows all that was written to it, wherever the tap is. So the client of a TCP proxy
// is held strictly there. It is the side whose peer acknowledges: a client writes data only.
type Judge struct {
	config srdp.Config
	sides  [2]judged
	began  machine.Instant // when the first datagram passed
	begun  bool
	pk     wire.Packet
}

// judged is one side of a flow.
type judged struct {
	near, stream bool
	own          wire.Address // its own address, in the proxied form
	proxied      bool
	named        bool // on a stream: own is known, from its first packet
	others       bool // it sent data of another source
	opinion      machine.Opinion
	// On a stream, acks counts the acknowledgements that the side wrote. asClient is the first
	// packet that a client would not have written. It counts once the side proves to be one.
	acks     uint64
	asClient *machine.Divergence
	asked    []arrival // the data packets that the side has not acknowledged
	places   uint64    // how many packets passed the tap towards it
	readTo   uint64    // all up to this place was read
	last     machine.Ref
	spoke    machine.Instant
	// odd is, of a far side, its first acknowledgement of an id that its peer at the tap had not sent.
	odd    *machine.Divergence
	oddID  uint16
	mangle mangled
	before bool // something of its peer may have come before the capture
	// owed is a missing acknowledgement. It counts unless the side began anew.
	owed     *owed
	joined   *joined
	doubted  *machine.Divergence // the first one that the side's beginning anew explains
	first    *machine.Divergence // the first suspicion of a side away from the tap
	answered time.Duration       // the longest time until an acknowledgement of a packet of one copy
	longest  time.Duration       // between two copies of a packet

	lanes  []*judgedLane // what it sends, by the addresses in the packets
	byPair map[srdp.Pair]*judgedLane
}

// arrival is a data packet that passed the tap towards a side.
type arrival struct {
	pair  srdp.Pair
	id    uint16
	at    machine.Instant
	ref   machine.Ref
	place uint64
	// The time since is when the earliest copy came: any copy may be the one without an
	// acknowledgement. Before that, the side had last sent something at the time spoke.
	since, spoke machine.Instant
	may          bool // it need not be acknowledged: it has unknown flags, or is too large
}

const (
	// keptMost is how many ids of a lane, and how many arrivals of a side, the
	// judge keeps.
	// Source: bound, the ids of a lane, and the arrivals of a side
	keptMost = 4096
	// laneMost is how many pairs of addresses of a side the judge follows.
	// Source: bound, the pairs of addresses that are judged
	laneMost = 1 << 10
	// answerSlack is how long an acknowledgement may wait for its side's frame
	// while the side sends other things.
	// Source: measured, TestMarginsSRDP
	answerSlack = time.Second
	// readSlack is how long an acknowledgement may lie in the socket before its
	// side reads it.
	// Source: measured, TestMarginsSRDP
	readSlack = 500 * time.Millisecond
)

// New returns the judge of a flow between two addresses. Of facts it uses where the tap stands,
// and the ticks. It fails for an unknown behaviour.
func New(c srdp.Config, facts machine.Facts, ends [2]netip.AddrPort, behaviours [2]string) (*Judge, error) {
	j := &Judge{config: c}
	for i := range j.sides {
		if behaviours[i] != Behaviours[0].Name {
			return nil, fmt.Errorf("behaviour %q: expected %s", behaviours[i], Behaviours[0].Name)
		}
		s := &j.sides[i]
		s.near, s.stream, s.proxied = facts.Vantage.Near(machine.Side(i)), c.Stream, c.Profile.Form == wire.Proxied
		s.own, _ = wire.AddressOf(ends[i])
		s.opinion.Inferred.Tick = facts.Tick[i]
	}
	return j, nil
}

// Observe judges the next datagram; it ignores what is none of the protocol.
func (j *Judge) Observe(d *machine.Datagram) {
	pk := &j.pk
	length := max(d.Length, len(d.Bytes))
	s, peer := &j.sides[d.From], &j.sides[d.From.Other()]
	if !j.begun {
		j.began, j.begun = d.At, true
	}
	if s.joined != nil && d.At.Sub(j.began) > joinSlack {
		s.settleJoined(peer)
	}
	var v *machine.Divergence
	switch {
	case !j.config.Profile.Fits(d.Bytes, length, pk):
		if v = s.marked(j, d); v == nil {
			v = s.misspelt(&j.config.Profile, d)
		}
		if v == nil {
			s.mangles(&j.config.Profile, d)
			return
		}
	case j.config.Profile.Contradicts(pk):
		s.opinion.Compared++
		if v = s.contradicts(&j.config.Profile, d, pk); pk.Ack {
			peer.acked(d, pk)
		}
	case pk.Ack:
		s.opinion.Compared++
		v = s.acknowledges(j, peer, d, pk)
		peer.acked(d, pk)
	default:
		s.opinion.Compared++
		s.opinion.Inferred.Submitted++
		v = s.sends(j, d)
		may := j.config.Profile.UnknownFlags(pk.Flags) != 0 || length-pk.PayloadOffset > j.config.MaxPayload &&
			j.config.MaxPayload > 0
		peer.arrives(arrival{peer.pairOf(pk), pk.ID, d.At, d.Ref, 0, d.At, peer.spoke, may})
	}
	if first := s.opinion.Divergence; first == nil || v != nil && v.Ref < first.Ref {
		s.draw(j, d, v)
		s.opinion.Divergence = v
	}
	if s.stream && pk.Ack {
		s.acks++
	}
	peer.provesClient(s)
	s.provesClient(peer)
	s.spoke, s.last = d.At, d.Ref
}

// client reports whether a side has proved to be the client of a TCP proxy: the
// proxy has acknowledged, and the side has not.
func (s *judged) client(peer *judged) bool { return s.stream && s.acks == 0 && peer.acks > 0 }

// provesClient takes over what the client of a TCP proxy would not have written.
func (s *judged) provesClient(peer *judged) {
	if s.asClient != nil && s.opinion.Divergence == nil && s.client(peer) {
		s.opinion.Divergence = s.asClient
	}
}

// pairOf returns the addresses in a packet; none in the direct form.
func (s *judged) pairOf(pk *wire.Packet) srdp.Pair {
	if !s.proxied {
		return srdp.Pair{}
	}
	return srdp.Pair{Source: pk.Source, Destination: pk.Destination}
}

// strict reports whether the tap stands at the endpoint of this side that has an address. That
// endpoint's packets are judged strictly.
func (s *judged) strict(at wire.Address) bool {
	return s.near && !s.stream && (!s.proxied || at == s.own)
}

// lane returns what the side sends under a pair of addresses; nil where that is one too many.
func (s *judged) lane(p srdp.Pair) *judgedLane {
	if l := s.known(p); l != nil || len(s.lanes) >= laneMost {
		return l
	}
	l := &judgedLane{pair: p}
	s.lanes = append(s.lanes, l)
	if len(s.lanes) > 1 {
		if s.byPair == nil {
			s.byPair = map[srdp.Pair]*judgedLane{}
		}
		s.byPair[p] = l
	}
	return l
}

func (s *judged) known(p srdp.Pair) *judgedLane {
	if len(s.lanes) > 0 && s.lanes[0].pair == p {
		return s.lanes[0]
	}
	return s.byPair[p]
}

// Finish ends the flow: what is still open counts as undecided.
func (j *Judge) Finish() {
	for i := range j.sides {
		s := &j.sides[i]
		s.settleJoined(&j.sides[1-i])
		if v := s.alive(0); v != nil && s.opinion.Divergence == nil {
			v.Assumed = true
			s.opinion.Divergence = v
		}
		s.concludes()
		strict := s.near && !s.stream || s.client(&j.sides[1-i])
		if !strict && s.opinion.Undecided == 0 {
			s.opinion.Undecided = s.opinion.Compared
		}
		switch {
		case s.opinion.Undecided == 0:
		case s.others:
			s.opinion.Why = "it also sends for other addresses, and what reached those is not known"
		default:
			s.opinion.Why = "what was captured on its way to this side may have been lost after that; repeats and time-outs " +
				"are " +
				"its application's"
		}
	}
}

// Opinion returns what is found of a side.
func (j *Judge) Opinion(s machine.Side) *machine.Opinion { return &j.sides[s].opinion }
