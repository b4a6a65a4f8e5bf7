package riptide

import (
	"hash/maphash"
	"slices"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// The worth of evidence, in bits. A relation between packets is worth more the rarer it is in other
// protocols.
//
//   - A readable packet alone is worth nothing: other protocols have small first bytes too.
//   - An unreadable packet counts against the dialect.
//   - Evidence that can repeat without meaning, such as a counter or a constant byte, counts up to
//     a bound.
const (
	worthUnreadable   = -12
	worthOdd          = -8 // an unknown reason, data after a reason that has none, nonzero padding
	worthConnect      = 3
	worthBareConnect  = 4 // one byte, which is the type
	worthConnectText  = 6 // its data begins with a text and its length
	worthConnectAgain = 5 // the same after a second
	worthConnectEcho  = 6
	worthHasty        = -4 // a Connect or an echo repeated too early
	worthReject       = 12 // a known reason in answer to a Connect
	worthRejectCopy   = 4
	worthPending      = 4   // the answer to a Connect that was repeated: the application has not decided
	worthFirstWelcome = 8   // has the first sequence id
	worthWelcomeBack  = 14  // both sides name the same client id
	worthNoWelcome    = -10 // the first reliable message is no Welcome, although both sides begin with one
	worthLateStart    = -6  // the first id of a side that has asked for a connection lies far from the first of all
	worthNextSequence = 6
	worthJump         = -6
	worthAck          = 8 // names a reliable message of the other side
	worthAckOfNothing = -5
	worthAckOfBefore  = -1 // an id from before the capture
	worthUnnamed      = -4 // newer bits show that an older id arrived, and it does not name that id
	worthFirstBeat    = 10 // ping 0, RTT -1
	worthBeat         = 8  // next ping, a second later
	worthSameBeat     = 3  // the same ping, a second later
	worthOddBeat      = -6
	worthEcho         = 6 // the answer has the ping id
	worthSameEcho     = 1
	worthNotNotes     = -3 // a form that the dialect's document does not have
	worthNotify       = 7
	worthNotifyAck    = 5
	worthLeave        = 3  // a Disconnect after other relations
	worthOtherPrefix  = -8 // of a side's stream: no build of the dialect has a length of that size

	boundCounter = 60 // of evidence from one side's own counters
)

// relation is a kind of evidence.
type relation uint8

const (
	relConnects  relation = 1 << iota // Connect repeated on time
	relHandshake                      // Connect answered, Welcome answered
	relAcks                           // acks name reliable messages
	relBeats                          // heartbeats on time
	relEchoes                         // heartbeats answered
	relSequence                       // reliable ids count up
	relNotify                         // notify ids count up
	relNotifyAck                      // notify headers name the other side's
)

// relCross are the relations between the two sides.
const relCross = relHandshake | relAcks | relEchoes | relNotifyAck

// hypotheses are the ways to read a flow that the classifier compares, the likeliest first.
var hypotheses = func() (out []wire.Codec) {
	order := []*wire.Dialect{wire.V21, wire.V20, wire.DevN, wire.DevD, wire.Notes}
	for _, d := range order {
		out = append(out, wire.Codec{Dialect: d})
	}
	for _, d := range order[1:] {
		out = append(out, wire.Codec{Dialect: d, BigEndian: true})
	}
	return out
}()

const hypothesisCount = 9

// sender is the evidence in one side's packets under one hypothesis.
type sender struct {
	bits           float64
	counters       float64 // part of bits
	fits, misfits  uint32
	relations      relation
	acks, beats    uint32 // number of relAcks and relBeats
	answers        uint8  // acks of any kind
	last, lastBits uint16 // of the newest of them
	builds         wire.BuildSet
	dead           bool    // does not read as the dialect
	headerBits     float64 // notes: evidence for the library's ack header in Notify

	connects    uint8
	echoes      uint32
	connectHash uint64
	connectAt   machine.Instant
	rejects     uint8
	rejectAt    machine.Instant

	welcomed  bool
	clientID  uint16
	unwelcome bool // its first reliable message was no Welcome

	sequenced bool
	newest    uint16
	hash      uint64 // of the message with the newest id
	sameIDs   uint8  // messages with that id and another content
	astray    uint8  // messages in a row that are far behind the newest
	sent      uint16 // user messages among them, copies too
	sentPing  uint16 // the same when the newest ping was sent
	oldest    uint16 // the oldest id seen: acks can name what came before the capture
	seen      window // bit i: newest-i was sent
	acked     window // bit i: newest-i was acked by the other side

	pinged     bool
	ping       uint8
	pingAt     machine.Instant
	samePings  uint8
	echoed     bool
	lastEcho   uint8
	notified   bool
	notifySeen uint64
	notify     uint16
	notifyHash uint64

	notifyAstray uint8 // messages that are far behind the newest
}

// classifier decides how to read a flow. It keeps figures, no bytes.
type classifier struct {
	weigher
	sides   [hypothesisCount][2]sender
	packets [2]uint32
	user    *knowledge
	shared  map[[2]Sender]*dissect.Config // of flows with the same settings, of which there can be very many
	said    map[unrelatedKey]string       // what was said of flows before
}

// unrelatedKey is what a reason of classifier.unrelated names.
type unrelatedKey struct {
	fits, of uint32
	dialect  string
}

// weigher weighs messages. m is the message that is weighed.
type weigher struct {
	seed maphash.Seed
	m    wire.Message
}

// sharedMost bounds the configurations that flows share.
const sharedMost = 1 << 10

// saidMost bounds the texts that flows share.
const saidMost = 1 << 10

func newClassifier(k *knowledge) dissect.Classifier {
	c := &classifier{user: k, shared: map[[2]Sender]*dissect.Config{}}
	c.Reset()
	return c
}

// Reset forgets the flow.
func (c *classifier) Reset() {
	*c = classifier{weigher: weigher{seed: hashSeed}, user: c.user, shared: c.shared, said: c.said}
	for h := range c.sides {
		for s := range c.sides[h] {
			c.sides[h][s].builds = allBuilds[h]
		}
	}
}

// Framed records how many bytes precede each message of a stream.
func (c *classifier) Framed(prefix int) {
	for h := range hypotheses {
		if !slices.Contains(hypotheses[h].Dialect.Prefixes, prefix) {
			c.sides[h][machine.A].bits += worthOtherPrefix
			c.sides[h][machine.B].bits += worthOtherPrefix
		}
	}
}

// allBuilds holds the builds of each hypothesis's dialect.
var allBuilds = func() (out [hypothesisCount]wire.BuildSet) {
	for h := range hypotheses {
		out[h] = wire.BuildsOf(hypotheses[h].Dialect)
	}
	return out
}()

// hashSeed seeds the hashes that compare datagrams within one process. No result depends on its
// value.
var hashSeed = maphash.MakeSeed()

// Feed adds the evidence of one datagram.
func (c *classifier) Feed(d *machine.Datagram) {
	c.packets[d.From]++
	for h := range hypotheses {
		s, peer := &c.sides[h][d.From], &c.sides[h][d.From.Other()]
		if s.dead {
			continue
		}
		codec := hypotheses[h]
		if !codec.Fits(d.Bytes, d.Length, &c.m) {
			if len(d.Bytes) < d.Length && len(d.Bytes) < headerLen {
				continue // a snap length cut the header
			}
			s.misfits++
			s.bits += worthUnreadable
			s.dead = s.misfits > 2+s.fits/10
			continue
		}
		s.fits++
		if c.m.Oddities&(wire.UnknownReason|wire.DataUnasked|wire.Padding) != 0 {
			s.bits += worthOdd
		}
		c.weigh(codec, s, peer, d)
	}
}

// weigh looks for relations between the message in c.m and others of the flow.
func (c *weigher) weigh(codec wire.Codec, s, peer *sender, d *machine.Datagram) {
	m, dialect := &c.m, codec.Dialect
	switch m.Type {
	case wire.Connect:
		c.connect(dialect, s, peer, d)
	case wire.Reject:
		s.reject(dialect, peer, m, d.At)
	case wire.Heartbeat:
		if m.HasRTT {
			if peer.pinged && !dialect.RTTBothWays {
				s.bits += worthOddBeat // only one side may send pings
			}
			s.beat(m, d.At)
		} else {
			s.echo(dialect, peer, m)
		}
	case wire.Disconnect:
		s.disconnect(dialect, m)
	case wire.Ack, wire.AckExtra:
		s.ack(dialect, peer, m)
	case wire.Notify:
		c.notification(codec, s, peer, d)
	}
	if m.Type.Reliable() {
		s.reliable(m, maphash.Bytes(c.seed, d.Bytes))
		switch {
		case m.Type == wire.Welcome:
			s.welcome(peer, m)
		case m.Type == wire.Reliable && m.Sequence == 1 && !s.unwelcome && byCause(dialect):
			s.unwelcome = true
			s.bits += worthNoWelcome
		}
	}
}

// byCause reports whether an Ack of a dialect names the id that it answers, and both sides begin
// with a Welcome. It concerns the dialects that share their type numbers with the notes.
func byCause(d *wire.Dialect) bool { return d == wire.DevN || d == wire.DevD }

// counter adds evidence that a counter of any other protocol might also produce.
func (s *sender) counter(bits float64, r relation) {
	if bits > 0 {
		bits = min(bits, boundCounter-s.counters)
		s.counters += bits
	}
	s.bits += bits
	s.relations |= r
}

func (s *sender) narrow(keep func(*wire.Build) bool) {
	if left := s.builds & wire.Matching(keep); left != 0 {
		s.builds = left
	}
}
