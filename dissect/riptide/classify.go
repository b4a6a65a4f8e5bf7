package riptide

import (
	"fmt"
	"hash/maphash"
	"math"
	"strings"
	"time"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// What a relation between packets is worth, in bits: how much rarer it is among
// packets of other protocols. That a packet can be read at all is worth nothing,
// since other protocols have small first bytes too; a packet that cannot be read
// speaks against the dialect. What can repeat without meaning (a counter, a
// constant byte) counts up to a bound.
const (
	worthUnreadable   = -12
	worthOdd          = -8 // an unknown reason, data after a reason that brings none, filled padding
	worthConnect      = 3
	worthBareConnect  = 4 // one byte, and it is that
	worthConnectText  = 6 // its data begins with a text and its length
	worthConnectAgain = 5 // the same after a second
	worthConnectEcho  = 6
	worthHasty        = -4 // a Connect or an echo again before its time
	worthReject       = 12 // a known reason in answer to a Connect
	worthRejectCopy   = 4
	worthFirstWelcome = 8  // has the first sequence id
	worthWelcomeBack  = 14 // both sides name the same client id
	worthNextSequence = 6
	worthJump         = -6
	worthAck          = 8 // names a reliable message of the other side
	worthAckOfNothing = -5
	worthAckOfBefore  = -1 // an id from before the capture
	worthFirstBeat    = 10 // ping 0, RTT -1
	worthBeat         = 8  // ping counted up, a second later
	worthSameBeat     = 3  // the same ping, a second later
	worthOddBeat      = -6
	worthEcho         = 6 // the answer has the ping id
	worthSameEcho     = 1
	worthNotNotes     = -3 // a form that the dialect's document does not have
	worthNotify       = 7
	worthNotifyAck    = 5
	worthLeave        = 3 // a Disconnect after other relations

	boundCounter = 60 // of evidence by one side's own counters
)

// What a verdict needs.
const (
	claimBits     = 16 // with a relation between the two sides, or several Connects on time
	settledBits   = 80
	settledLead   = 16 // over the next dialect
	settledAfter  = 12 // datagrams
	settledAnyway = 48 // though nothing has told releases apart
	unsureLead    = 6  // below it another dialect is nearly as good
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

// hypotheses are the ways to read a flow that are weighed against each other,
// the likeliest first.
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

// sender is what one side's packets amount to under one hypothesis.
type sender struct {
	bits          float64
	counters      float64 // part of bits
	fits, misfits uint32
	relations     relation
	acks, beats   uint32 // how many of relAcks and relBeats
	builds        wire.BuildSet
	dead          bool    // does not read as the dialect
	headerBits    float64 // notes: evidence for the ack header of the library in Notify

	connects    uint8
	echoes      uint32
	connectHash uint64
	connectAt   machine.Instant
	rejects     uint8
	rejectAt    machine.Instant

	welcomed bool
	clientID uint16

	sequenced bool
	newest    uint16
	hash      uint64 // of the message with the newest id
	sameIDs   uint8  // messages with that id and another content
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
}

// classifier weighs a flow. It keeps figures, no bytes.
type classifier struct {
	sides   [hypothesisCount][2]sender
	seed    maphash.Seed
	packets [2]uint32
	user    *knowledge
	m       wire.Message
}

func newClassifier(k *knowledge) dissect.Classifier {
	c := &classifier{user: k}
	c.Reset()
	return c
}

// Reset forgets the flow.
func (c *classifier) Reset() {
	*c = classifier{seed: hashSeed, user: c.user}
	for h := range c.sides {
		for s := range c.sides[h] {
			c.sides[h][s].builds = allBuilds[h]
		}
	}
}

// allBuilds gives the builds of each hypothesis's dialect.
var allBuilds = func() (out [hypothesisCount]wire.BuildSet) {
	for h := range hypotheses {
		out[h] = wire.BuildsOf(hypotheses[h].Dialect)
	}
	return out
}()

// hashSeed tells equal datagrams from different ones within one process; no
// result depends on its value.
var hashSeed = maphash.MakeSeed()

// Feed weighs one datagram.
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

// weigh looks for what relates the message in c.m to others of the flow.
func (c *classifier) weigh(codec wire.Codec, s, peer *sender, d *machine.Datagram) {
	m, dialect := &c.m, codec.Dialect
	switch m.Type {
	case wire.Connect:
		c.connect(dialect, s, peer, d)
	case wire.Reject:
		s.reject(peer, m, d.At)
	case wire.Heartbeat:
		if m.HasRTT {
			if peer.pinged && !dialect.RTTBothWays {
				s.bits += worthOddBeat // one side asks, the other answers
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
		if m.Type == wire.Welcome {
			s.welcome(peer, m)
		}
	}
}

// counter adds evidence that a counter of any protocol might give too.
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

// onTime reports whether the time between two events of a 1 s timer fits n
// periods: the library's timer runs once per tick, so it is late, never early.
func onTime(from, to machine.Instant, n int) bool {
	gap, period := to.Sub(from), time.Duration(n)*time.Second
	return gap > period-80*time.Millisecond && gap < period+period/8+150*time.Millisecond
}

func (c *classifier) connect(dialect *wire.Dialect, s, peer *sender, d *machine.Datagram) {
	echo := peer.connects > 0 && len(d.Bytes) == 1
	if echo && s.connects == 0 {
		if s.echoes++; s.echoes == 1 {
			s.bits += worthConnectEcho
			s.relations |= relHandshake
		} else {
			s.bits += worthHasty // the client stops asking
		}
		return
	}
	sum := maphash.Bytes(c.seed, d.Bytes)
	switch {
	case s.connects == 0:
		s.bits += worthConnect
		if len(d.Bytes) == 1 {
			s.bits += worthBareConnect - worthConnect
		}
		if leadingText(dialect.Form, d.Bytes) {
			s.bits += worthConnectText
		}
	case sum == s.connectHash && onTime(s.connectAt, d.At, 1):
		s.counter(worthConnectAgain, 0)
		if s.connects >= 2 {
			s.relations |= relConnects
		}
	case sum == s.connectHash:
		if d.At.Sub(s.connectAt) > 100*time.Millisecond {
			s.bits += worthHasty
			s.connectAt = d.At
		}
		return // another copy
	default:
		s.bits += worthOdd
	}
	s.connects = min(s.connects+1, 100)
	s.connectHash, s.connectAt = sum, d.At
}

// leadingText reports whether the data of a Connect begins with a text of
// printable characters behind its length.
func leadingText(form wire.Form, b []byte) bool {
	at := func(i int) byte {
		if form == wire.BitPacked {
			v := b[i] >> 4
			if i+1 < len(b) {
				v |= b[i+1] << 4
			}
			return v
		}
		return b[i]
	}
	first, n := 1, len(b)-1
	if form == wire.BitPacked {
		first = 0
	}
	if n < 3 {
		return false
	}
	length := int(at(first))
	if length < 2 || length >= n {
		return false
	}
	for i := range length {
		if c := at(first + 1 + i); c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

func (s *sender) reject(peer *sender, m *wire.Message, at machine.Instant) {
	switch {
	case peer.connects == 0 || m.Oddities != 0:
	case s.rejects == 0:
		s.bits += worthReject
		s.relations |= relHandshake
	case at.Sub(s.rejectAt) < 20*time.Millisecond:
		s.counter(worthRejectCopy, 0)
		s.narrow(func(b *wire.Build) bool { return b.RejectCopies > 1 })
	}
	s.rejects, s.rejectAt = min(s.rejects+1, 100), at
}

// beat weighs a heartbeat with an RTT: a client's, or by the notes either side's.
func (s *sender) beat(m *wire.Message, at machine.Instant) {
	if m.RTT < -1 || m.RTT > 10_000 {
		s.bits += worthOddBeat
	}
	delta := int(m.Ping - s.ping)
	switch {
	case !s.pinged:
		if m.Ping == 0 && m.RTT == -1 {
			s.bits += worthFirstBeat
			s.narrow(func(b *wire.Build) bool { return !b.PingStays })
		}
	case delta == 0 && onTime(s.pingAt, at, 1):
		s.counter(worthSameBeat, relBeats)
		s.beats++
		if s.samePings = min(s.samePings+1, 100); s.samePings >= 2 && m.Ping == 1 {
			s.narrow(func(b *wire.Build) bool { return b.PingStays })
		}
	case delta == 0:
		return // another copy, or a gap
	case delta < 30 && onTime(s.pingAt, at, delta):
		s.counter(worthBeat, relBeats)
		s.beats++
		s.narrow(func(b *wire.Build) bool { return !b.PingStays })
	case delta > 250:
		return // overtaken
	default:
		s.bits += worthOddBeat
	}
	s.pinged, s.ping, s.pingAt = true, m.Ping, at
}

// echo weighs an answer to a heartbeat, which has no RTT but in the notes.
func (s *sender) echo(dialect *wire.Dialect, peer *sender, m *wire.Message) {
	if dialect.RTTBothWays {
		s.counter(worthNotNotes, 0)
	}
	back := peer.ping - m.Ping
	switch {
	case !peer.pinged:
		return
	case back > 3:
		s.bits += worthOddBeat
	case s.echoed && m.Ping == s.lastEcho:
		s.counter(worthSameEcho, relEchoes)
	default:
		s.bits += worthEcho
		s.relations |= relEchoes
	}
	s.echoed, s.lastEcho = true, m.Ping
}

func (s *sender) disconnect(dialect *wire.Dialect, m *wire.Message) {
	if m.Oddities != 0 {
		return
	}
	if s.relations != 0 {
		s.bits += worthLeave
	}
	if !m.HasReason {
		if dialect.RTTBothWays {
			s.bits += worthNotNotes // the notes give every Disconnect a reason
		}
		return
	}
	if m.Reason == wire.UnpackedStop || m.Reason == stopped {
		s.narrow(func(b *wire.Build) bool { return b.StopReason == m.Reason })
	}
}

const stopped = 5 // disconnect reason ServerStopped

func (s *sender) reliable(m *wire.Message, hash uint64) {
	if !s.sequenced {
		s.sequenced, s.newest, s.oldest, s.hash = true, m.Sequence, m.Sequence, hash
		s.seen.set(0)
		return
	}
	ahead := int16(m.Sequence - s.newest)
	switch {
	case ahead == 0:
		if hash != s.hash {
			s.hash = hash
			if s.sameIDs = min(s.sameIDs+1, 100); s.sameIDs >= 2 && m.Sequence == 1 {
				s.narrow(func(b *wire.Build) bool { return b.OneSequence })
			}
		}
	case ahead < 0:
		s.seen.set(-int(ahead))
		if int16(m.Sequence-s.oldest) < 0 && ahead > -windowSize {
			s.oldest = m.Sequence
		}
	default:
		s.seen.shift(int(ahead))
		s.acked.shift(int(ahead))
		s.seen.set(0)
		s.newest, s.hash = m.Sequence, hash
		s.narrow(func(b *wire.Build) bool { return !b.OneSequence })
		if ahead <= 2 {
			s.counter(worthNextSequence, relSequence)
		} else if ahead >= windowSize {
			s.bits += worthJump
		}
	}
}

// windowSize is how many ids back are remembered: applications send volleys of
// a hundred messages in a tick.
const windowSize = 256

// window is a row of bits behind a newest id.
type window [windowSize / 64]uint64

func (w *window) has(i int) bool { return i >= 0 && i < windowSize && w[i/64]>>(i%64)&1 == 1 }

func (w *window) set(i int) {
	if i >= 0 && i < windowSize {
		w[i/64] |= 1 << (i % 64)
	}
}

// shift moves every bit n places back.
func (w *window) shift(n int) {
	words, rest := n/64, n%64
	for i := len(w) - 1; i >= 0; i-- {
		v := uint64(0)
		if j := i - words; j >= 0 {
			v = w[j] << rest
			if rest > 0 && j > 0 {
				v |= w[j-1] >> (64 - rest)
			}
		}
		w[i] = v
	}
}

func (s *sender) welcome(peer *sender, m *wire.Message) {
	if s.welcomed {
		return
	}
	s.welcomed, s.clientID = true, m.ClientID
	if m.Sequence == 1 || m.Sequence == 2 {
		s.bits += worthFirstWelcome
		s.narrow(func(b *wire.Build) bool { return b.FirstSequence == m.Sequence })
	}
	if peer.welcomed {
		if peer.clientID == m.ClientID {
			s.bits += worthWelcomeBack
			s.relations |= relHandshake
		} else {
			s.bits += worthOdd
		}
	}
}

func (s *sender) ack(dialect *wire.Dialect, peer *sender, m *wire.Message) {
	if dialect == wire.V21 && !m.Flag {
		always := m.HasCause
		s.narrow(func(b *wire.Build) bool { return (b.Cause == wire.CauseAlways) == always })
	}
	if m.Type == wire.AckExtra {
		s.narrow(func(b *wire.Build) bool { return !b.OneSequence })
	}
	if m.Oddities&wire.NotesCause != 0 {
		s.counter(worthNotNotes, 0)
	}
	if !peer.sequenced {
		return
	}
	back := int(int16(peer.newest - m.Cause))
	switch {
	case int16(m.Cause-peer.oldest) < 0 && back < 1<<12:
		s.bits += worthAckOfBefore
	case !peer.seen.has(back):
		s.bits += worthAckOfNothing
	case !peer.acked.has(back):
		peer.acked.set(back)
		s.bits += worthAck
		s.acks++
		s.relations |= relAcks
	}
}

// notification weighs a Notify with the library's ack header. The notes have a
// bare message id in its place; there what the header would say is weighed
// apart, to tell which form it is.
func (c *classifier) notification(codec wire.Codec, s, peer *sender, d *machine.Datagram) {
	m := &c.m
	s.narrow(func(b *wire.Build) bool { return !b.NoNotify })
	worth := &s.bits
	if codec.Dialect == wire.Notes {
		codec.NotifyHeader = true
		if !codec.Fits(d.Bytes, d.Length, m) || m.Oddities&wire.NotesHeader == 0 {
			s.headerBits -= worthNotify
			return
		}
		worth = &s.headerBits
	}
	before := s.counters
	switch ahead := int16(m.Sequence - s.notify); {
	case !s.notified:
		s.notify, s.notifySeen = m.Sequence, 1
	case ahead > 0:
		if ahead <= 4 {
			s.counters = min(s.counters+worthNotify, boundCounter)
			s.relations |= relNotify
		} else if ahead > 64 {
			*worth += worthJump
		}
		s.notify, s.notifySeen = m.Sequence, s.notifySeen<<ahead|1
	case ahead < -64:
		*worth += worthJump
	default:
		s.notifySeen |= 1 << -ahead
	}
	s.notified = true
	switch back := int16(peer.notify - m.Last); {
	case !peer.notified:
	case back < 0:
		*worth += worthAckOfNothing
	case back < 64 && peer.notifySeen>>back&1 == 1:
		s.counters = min(s.counters+worthNotifyAck, boundCounter)
		s.relations |= relNotifyAck
	}
	*worth += s.counters - before
}

// total gives the evidence for a hypothesis, both sides together.
func (c *classifier) total(h int) float64 {
	sum := 0.0
	for side := range c.sides[h] {
		sum += c.sides[h][side].bits
	}
	return sum
}

// Verdict tells what the flow is taken for.
func (c *classifier) Verdict() dissect.Verdict {
	n := c.packets[0] + c.packets[1]
	if n == 0 {
		return dissect.Verdict{Reason: "no datagram yet"}
	}
	best, bestBits := c.best(nil)
	if best < 0 {
		return dissect.Verdict{Bits: 0, Reason: "not Riptide: " + c.unreadable(), Settled: n >= 4}
	}
	a, b := &c.sides[best][0], &c.sides[best][1]
	related := a.relations | b.relations
	if !c.claims(bestBits, related) {
		return dissect.Verdict{Bits: max(bestBits, 0), Reason: fmt.Sprintf(
			"not Riptide: %d of %d datagrams read as %s, but they do not relate to each other as its acks, heartbeats and handshakes do",
			a.fits+b.fits, n, hypotheses[best].Dialect.Name)}
	}
	s := c.settings(best)
	v := dissect.Verdict{Config: config(s), Bits: bestBits, Confidence: 1 - math.Exp2(-(bestBits-claimBits+6)/6)}
	v.Reason = c.reason(best, s)
	next, nextBits := c.best(hypotheses[best].Dialect)
	lead := bestBits - max(nextBits, 0)
	if next >= 0 && lead < unsureLead {
		v.Confidence = min(v.Confidence, 0.5)
		v.Reason += "; nothing seen so far tells it from " + hypotheses[next].Dialect.Name
	}
	v.Settled = c.settled(best, bestBits, lead)
	return v
}

// claims reports whether the evidence carries a verdict.
func (c *classifier) claims(bits float64, related relation) bool {
	return bits >= claimBits && (related&relCross != 0 || related&relConnects != 0 || c.oneWay(related))
}

// settled reports whether further datagrams would hardly change the verdict.
func (c *classifier) settled(best int, bits, lead float64) bool {
	n := c.packets[0] + c.packets[1]
	return n >= settledAfter && bits >= settledBits && lead >= settledLead &&
		(n >= settledAnyway || c.sides[best][0].told(best) && c.sides[best][1].told(best))
}

// Sure reports whether the dialect is found and settled.
func (c *classifier) Sure() bool {
	best, bits := c.best(nil)
	if best < 0 || !c.claims(bits, c.sides[best][0].relations|c.sides[best][1].relations) {
		return false
	}
	_, next := c.best(hypotheses[best].Dialect)
	return c.settled(best, bits, bits-max(next, 0))
}

// best gives the hypothesis with the most evidence, of another dialect than
// but; -1 where none reads both sides.
func (c *classifier) best(but *wire.Dialect) (best int, bits float64) {
	best, bits = -1, math.Inf(-1)
	for h := range hypotheses {
		if c.sides[h][0].dead || c.sides[h][1].dead || hypotheses[h].Dialect == but {
			continue
		}
		if sum := c.total(h); sum > bits {
			best, bits = h, sum
		}
	}
	return best, bits
}

// told reports whether what a side sent has told builds of its dialect apart.
func (s *sender) told(h int) bool {
	all := wire.BuildsOf(hypotheses[h].Dialect)
	return s.builds != all || all.Single()
}

// oneWay reports whether a flow of which only one direction was captured shows
// relations enough.
func (c *classifier) oneWay(r relation) bool {
	return (c.packets[0] == 0 || c.packets[1] == 0) && r&relBeats != 0 && r&(relSequence|relNotify) != 0
}

func (c *classifier) settings(h int) *Settings {
	s := &Settings{}
	for side := range s.Senders {
		s.Senders[side] = Sender{Codec: hypotheses[h], Builds: c.sides[h][side].builds}
		s.Senders[side].Codec.NotifyHeader = c.sides[h][side].headerBits > 2*worthNotify
	}
	s.bodies = c.user.bodiesOf(s)
	return s
}

func (c *classifier) unreadable() string {
	fits := uint32(0)
	name := ""
	for h := range hypotheses {
		if n := c.sides[h][0].fits + c.sides[h][1].fits; n >= fits {
			fits, name = n, hypotheses[h].Dialect.Name
		}
	}
	if fits == 0 {
		return "no datagram reads in any of its dialects"
	}
	return fmt.Sprintf("no dialect reads both sides' datagrams; %s most, %d of them", name, fits)
}

// reason puts the evidence into words.
func (c *classifier) reason(h int, s *Settings) string {
	a, b := &c.sides[h][0], &c.sides[h][1]
	var said []string
	both := a.relations | b.relations
	if both&relHandshake != 0 {
		switch {
		case a.welcomed && b.welcomed:
			said = append(said, "Welcome answered by Welcome")
		case a.rejects+b.rejects > 0:
			said = append(said, "Connect answered by Reject")
		default:
			said = append(said, "Connect answered")
		}
	}
	if n := a.acks + b.acks; n > 0 {
		said = append(said, fmt.Sprintf("%d acks name reliable messages of the other side", n))
	}
	if n := a.beats + b.beats; n > 0 {
		said = append(said, fmt.Sprintf("%d heartbeats a second apart", n))
	}
	if both&relNotifyAck != 0 {
		said = append(said, "notify headers name each other")
	}
	if both&relConnects != 0 {
		said = append(said, fmt.Sprintf("%d Connects a second apart", a.connects+b.connects))
	}
	read := fmt.Sprintf("%d of %d datagrams read as %s", a.fits+b.fits, c.packets[0]+c.packets[1], hypotheses[h].Dialect.Name)
	return read + versions(c, s) + ": " + strings.Join(said, ", ")
}

// versions names the builds that each side can be.
func versions(c *classifier, s *Settings) string {
	var out []string
	for side, n := range c.packets {
		if n > 0 {
			out = append(out, fmt.Sprintf("%s is %s", machine.Side(side), s.Version(machine.Side(side))))
		}
	}
	return " (" + strings.Join(out, ", ") + ")"
}
